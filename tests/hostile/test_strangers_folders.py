"""A run folder of somebody else: no verb runs code that only the folder names, or follows its links."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Call

CODE: dict[str, dict[str, Any]] = {
    "task": {"task": "trap.py:Task"},
    "method": {"method": {"name": "trap.py:Method"}},
    "model": {"model": {"name": "trap.py:make"}},
    "rules": {"data": {"rules": "trap.py"}},
    "a module": {"method": {"name": "trap:Method"}},
}
FITS = (
    "fit --resume -o {run}",
    "fit --from {run} -o {out}",
    "fit --from {run} --dry-run -o {out}",
    "fit {table} --config {run}/config.yaml -o {out}",
    "fit {table} --config {run}/config.yaml --tune --trials 2 -o {out}",
)
USES = (
    "predict {run} {table} -o {out}.csv",
    "evaluate {run} {table}",
    "suggest {run} {table}",
    "report {run}",
    "compare {run}",
    "tsne {run} -o {out}",
)


@pytest.fixture
def run(places: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a finished run, beside code that shows that it was run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "trap.py").write_text(
        "open('code-ran', 'w').close()\nclass Task: name = 'text'\nMethod = Task\ndef make(d, c): ...\nrules = None\n"
    )
    shutil.copytree(places["run"], tmp_path / "run")
    return tmp_path / "run"


def called(call: Call, verb: str, run: Path, places: dict[str, str]) -> tuple[int, str]:
    """The exit code and the message of a command. It must not have run the code."""
    names = {"run": str(run), "table": places["table"], "out": str(run.with_name("out"))}
    code, _, err = call(*[part.format(**names) for part in verb.split(" ")])
    assert not run.with_name("code-ran").exists()
    assert "Traceback" not in err
    lines = [line for line in err.splitlines() if not line.startswith("warning: ")]
    assert code == 0 or len(lines) == 1, err
    return code, err


def change(file: Path, changes: dict[str, Any]) -> None:
    """Change settings or fields, by group."""
    content = yaml.safe_load(file.read_text()) if file.suffix == ".yaml" else json.loads(file.read_text())
    for name, value in changes.items():
        content[name] = {**content[name], **value} if isinstance(value, dict) else value
    file.write_text(yaml.safe_dump(content) if file.suffix == ".yaml" else json.dumps(content))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("named", CODE)
def test_training_refuses_code_that_only_the_folder_names(
    call: Call, places: dict[str, str], run: Path, named: str
) -> None:
    change(run / "config.yaml", CODE[named])
    for verb in FITS:
        code, err = called(call, verb, run, places)
        assert code == 2
        assert "its code is run only if you name it: give --" in err, verb


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("named", CODE)
@pytest.mark.parametrize("file", ["config.yaml", "metrics.json", "model/drift.json"])
def test_using_a_run_never_runs_code_that_it_names(
    call: Call, places: dict[str, str], run: Path, named: str, file: str
) -> None:
    changes: dict[str, Any] = CODE[named]
    if file != "config.yaml":
        changes = {
            "task": changes.get("task", "text"),
            "method": "trap.py:Method",
            "kind": "made",
            "encoder": "trap.py:make",
        }
    change(run / file, changes)
    for verb in USES[:1] if file.startswith("model") else USES:
        called(call, verb, run, places)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["report.html", "metrics.json", "trace.jsonl", "config.yaml", "checkpoints", "new"])
def test_a_link_out_of_the_folder_is_refused(call: Call, places: dict[str, str], run: Path, name: str) -> None:
    mine = run.with_name("mine")
    if (run / name).is_dir():
        shutil.rmtree(run / name)
        mine.mkdir()
    elif (run / name).exists():
        shutil.move(run / name, mine)
    else:
        mine.write_text("mine")
    before = mine.read_bytes() if mine.is_file() else None
    (run / name).symlink_to(mine)
    for verb in ("fit --resume -o {run}", *USES):
        code, err = called(call, verb, run, places)
        assert code == 2, verb
        assert "is a link that leads out of" in err
    assert before == (mine.read_bytes() if mine.is_file() else None)


def test_links_inside_the_folder_and_to_the_folder_are_followed(
    call: Call, places: dict[str, str], run: Path, tmp_path: Path
) -> None:
    (run / "again.html").symlink_to("report.html")
    (tmp_path / "latest").symlink_to(run)
    assert called(call, "report {run}", tmp_path / "latest", places)[0] == 0
