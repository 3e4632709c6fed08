"""Poor environments: another locale, no home, a home that cannot be written to, packages that are not installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs.small import small_encoder, small_table, write_csv
from tests.runs.small_graphs import small_graph, write_npz

SHORT = ("--set", "model.max_length=32", "--set", "training.steps=2", "--set", "training.initial_steps=2", "--no-onnx")
RULES = "rules:\n- {name: a, label: money, has: [stöck]}\n- {name: b, label: sport, has: [team]}\n"
# Imports of these packages fail, as if they were not installed; then the command is run.
WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
sys.argv[0] = "drift"
from drift.cli.main import run
run()
"""
TEXT_PACKAGES = ("transformers", "datasets", "re2", "ahocorasick", "onnx", "onnxscript", "onnxruntime", "pyarrow")
EXTRAS = {
    "text": (TEXT_PACKAGES, ("fit t.csv -o o", "fit s.jsonl --task tokens -o o", "label t.csv --rules r.yaml")),
    "tune": (("optuna",), ("fit --task nodes --graph g.npz --tune --trials 2 -o o",)),
    "annotate": (("starlette", "uvicorn"), ("annotate t.csv --classes a,b -o l.csv",)),
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    table = small_table(24, labeled=12)
    write_csv(tmp_path / "t.csv", {"text": [f"stöck {text}" for text in table["body"]], "label": table["topic"]})
    small_encoder(tmp_path / "encoder")
    write_npz(tmp_path / "g.npz", small_graph(30))
    (tmp_path / "r.yaml").write_text(RULES, encoding="utf-8")
    (tmp_path / "s.jsonl").write_text('{"tokens": ["a", "b"], "labels": ["B-X", "O"]}\n' * 4)
    return tmp_path


def drift(
    folder: Path, *arguments: str, code: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, with nothing in its environment but this."""
    start = ["-m", "drift"] if code is None else ["-c", code]
    source = str(Path(__file__).parents[2] / "src")
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "OMP_NUM_THREADS") if name in os.environ}
    return subprocess.run(
        [sys.executable, *start, *arguments],
        cwd=folder,
        env={**kept, "PYTHONPATH": source, "PYTHONIOENCODING": "utf-8", **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )


@pytest.mark.skipif(os.name == "nt", reason="Windows has other locales and homes")
def test_the_c_locale_without_a_home(files: Path) -> None:
    """Tables are UTF-8 whatever the locale is; Python alone would take another locale for UTF-8 too."""
    strict = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment = {"LC_ALL": "C", "DRIFT_CACHE": str(files / "cache"), **strict}
    for call in (
        ("fit", "t.csv", "--model", "./encoder", *SHORT, "-o", "run"),
        ("predict", "run", "t.csv", "-o", "p.csv"),
        ("label", "t.csv", "--rules", "r.yaml", "-o", "l.csv"),
    ):
        done = drift(files, *call, **environment)
        assert done.returncode == 0, done.stderr
    assert "stöck" in (files / "p.csv").read_text(encoding="utf-8")
    assert (files / "l.csv").read_text(encoding="utf-8").count("money") > 20  # the rule matched


@pytest.mark.skipif(sys.platform != "linux", reason="a home that cannot be written to is made with its permissions")
def test_a_home_that_cannot_be_written_to(files: Path) -> None:
    """A file in place of the home: root may write everywhere else."""
    (files / "home").write_text("")
    environment = {"HOME": str(files / "home"), "MPLCONFIGDIR": str(files / "mpl")}
    fit = ("fit", "t.csv", "--model", "./encoder", *SHORT)
    done = drift(files, *fit, "-o", "run", **environment)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "set DRIFT_CACHE to a folder that can be written to" in done.stderr
    assert not (files / "run").exists()
    assert drift(files, *fit, "-o", "run", DRIFT_CACHE=str(files / "cache"), **environment).returncode == 0
    done = drift(files, "predict", "run", "t.csv", "-o", "p.csv", **environment)
    assert done.returncode == 0, done.stderr  # predicting needs no cache
    done = drift(files, "fit", "--task", "nodes", "--graph", "g.npz", *SHORT[2:6], "-o", "nodes", **environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_missing_extra_is_named_in_one_line(files: Path, extra: str) -> None:
    packages, calls = EXTRAS[extra]
    for call in calls:
        done = drift(files, *call.split(" "), code=WITHOUT.format(packages=set(packages)), HOME=str(files))
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert f"pip install 'drift-ssl[{extra}]'" in done.stderr
