"""The documentation's site: pages made from the code are whole, tutorials run, and a strict build passes."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import drift
from drift.cli.main import VERBS, app
from drift.methods import METHODS
from drift.models.catalogue import DEFAULT, ENCODERS
from drift.models.locating import local_folder
from drift.tasks import TASKS
from drift.training.settings import TrainingSettings
from tests.runs.small import STEPS, small_encoder
from tests.service.client import ask
from tests.test_docs_code import ROOT, printed_by, python_of

TUTORIALS = ROOT / "docs" / "tutorials"


def module() -> Any:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


reference = module()


def test_every_command_and_every_option_is_in_the_reference() -> None:
    page = reference.commands_page()
    assert {f"## drift {verb.__name__}" for verb in VERBS} <= set(page.splitlines())
    section = page[page.index("## drift predict") :]
    section = section[: section.index("\n## ")]
    assert all(option in section for option in ("`--out`, `-o`", "`--force`", "`--abstain-below`", "`run`", "`table`"))


def test_every_setting_is_in_the_reference_with_its_meaning() -> None:
    page = reference.settings_page()
    groups = [TrainingSettings, *(method.settings_type for method in METHODS.values())]
    groups += [settings for task in TASKS.values() for settings in (task.data_settings, task.model_settings)]
    for settings in groups:
        for name, field in settings.model_fields.items():
            assert f"| `{name}` |" in page
            assert reference._cell(field.description or "") in page


def test_every_public_name_is_in_the_reference() -> None:
    page = reference.api_page()
    for name in set(drift.__all__) - {"__version__"}:
        assert f"::: {drift._HOME[name]}.{name}\n" in page


def test_every_page_of_the_menu_is_there() -> None:
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    pages = re.findall(r"[\w/-]+\.md", yaml.safe_dump(menu))
    made = {"reference/commands.md", "reference/settings.md", "reference/python.md", *reference.ROOT_PAGES.values()}
    made |= {f"notebooks/{path.stem}.md" for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert [page for page in pages if page not in made and not (ROOT / "docs" / page).exists()] == []
    assert all((ROOT / name).exists() for name in reference.ROOT_PAGES)


def test_the_site_is_built_strictly(tmp_path: Path) -> None:
    pytest.importorskip("mkdocstrings", reason="needs mkdocs: pip install 'drift-ssl[docs]'")
    pytest.importorskip("material", reason="needs mkdocs: pip install 'drift-ssl[docs]'")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site" / "reference" / "python.html").read_text(encoding="utf-8")
    assert "abstain_below" in page
    assert (tmp_path / "site" / "index.html").is_file()
    notebook = (tmp_path / "site" / "notebooks" / "loop.html").read_text(encoding="utf-8")
    assert "after self-training" in notebook
    assert "data:image/png;base64," in notebook


def shell_of(page: str) -> list[str]:
    """All shell commands of a page, without the prompt."""
    blocks = re.findall(r"^```(?:sh|console)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]


def in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DRIFT_CACHE", str(folder / "cache"))


@pytest.mark.skipif(local_folder(ENCODERS[DEFAULT]) is None, reason="the default encoder is not here")
def test_the_tutorial_about_names_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("starlette", reason="needs starlette: pip install 'drift-ssl[serve]'")
    in_folder(tmp_path, monkeypatch)
    code = python_of((TUTORIALS / "names.md").read_text(encoding="utf-8"))
    lines = printed_by(code.replace("topic_texts(150, 80", "topic_texts(8, 3"))
    assert lines[0].startswith("Run(text, drift, 6 classes, accuracy ")
    assert len(lines) == 6
    label, curl = shell_of((TUTORIALS / "names.md").read_text(encoding="utf-8"))
    done = CliRunner().invoke(app, [*shlex.split(label)[1:], "--quiet"])
    assert done.exit_code == 0, done.output
    assert "Labelled: " in done.output
    address, body = shlex.split(curl)[1], shlex.split(curl)[-1]
    answer = ask(drift.app("runs/names"), address[address.index("/") :], body.encode())
    assert answer.content["predictions"][0]["label"] in code


def test_the_other_tutorials_have_no_commands_that_are_not_run() -> None:
    pages = [page for page in TUTORIALS.glob("*.md") if page.stem != "names"]
    assert pages
    assert [command for page in pages for command in shell_of(page.read_text(encoding="utf-8"))] == []


def test_the_tutorial_about_entities_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
    pytest.importorskip("datasets", reason="needs datasets: pip install 'drift-ssl[text]'")
    in_folder(tmp_path, monkeypatch)
    code = python_of((TUTORIALS / "entities.md").read_text(encoding="utf-8"))
    small = {"model": {"name": small_encoder(tmp_path / "encoder"), "max_length": 32}, "training": STEPS, "seeds": 2}
    lines = printed_by(code.replace("finetune=False,", f"finetune=False, settings={small!r},"))
    shown = re.findall(r"^# (\[.*)$", code, re.MULTILINE)
    assert lines[0] == shown[0]
    assert len(lines) == 2


def test_the_tutorial_about_graphs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch_geometric", reason="needs torch_geometric: pip install 'drift-ssl[graph]'")
    in_folder(tmp_path, monkeypatch)
    code = python_of((TUTORIALS / "graph.md").read_text(encoding="utf-8"))
    small = {"training": {**STEPS}, "seeds": 2}
    lines = printed_by(code.replace('task="nodes",', f'task="nodes", settings={small!r},'))
    assert re.fullmatch(r"\d+% of the other nodes are right", lines[-1])
    assert shutil.which("drift") is None or (tmp_path / "classes.csv").is_file()
