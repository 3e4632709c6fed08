"""`use.py` in the folder of a model gives the predictions of the run, where this package cannot be imported."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from drift.runs.result import MODEL, ONNX, Run
from tests.runs.small import small_encoder, small_fit, small_table, write_csv
from tests.runs.small_tokens import small_sentences, small_word_encoder, write_jsonl

pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'drift-ssl[text]'")
TEXTS = ["stock market profit", "team goal goal", "bank " * 60]
ALONE = """\
import json, runpy, sys
sys.modules["drift"] = None  # an import of it fails
used = runpy.run_path(sys.argv[1])
print(json.dumps(used[sys.argv[2]](json.loads(sys.argv[3]))))
"""


def alone(run: Run, place: Path, function: str, *rows: Any, without: str = "") -> Any:
    """The function of use.py in a process without this package, from a folder that was moved."""
    assert run.path is not None
    folder = shutil.copytree(run.path / MODEL, place / "moved")
    if without:
        (folder / without).unlink()
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", ALONE, str(folder / "use.py"), function, json.dumps(*rows)]
    done = subprocess.run(command, capture_output=True, text=True, env={**outside, "HF_HUB_OFFLINE": "1"}, cwd=place)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "options",
    [
        {"onnx": False},
        {"onnx": False, "self_contained": True},
        {"onnx": True},
        {"onnx": False, "finetune": True, "seeds": 1},
        {"onnx": False, "settings": {"model": {"pool": "mean"}}},
    ],
    ids=["reference", "self-contained", "onnx", "finetuned", "mean"],
)
def test_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    table = write_csv(tmp_path / "t.csv", small_table(24, labeled=12))
    encoder = small_encoder(tmp_path / "encoder")
    run = small_fit(table, encoder, out=tmp_path / "run", precision="float32", **options)
    assert (tmp_path / "run" / MODEL / ONNX).exists() == options["onnx"]
    found = alone(run, tmp_path, "classify", TEXTS)
    shares = np.array([[row[name] for name in run.classes] for row in found])
    np.testing.assert_allclose(shares, run.predict_proba(TEXTS), atol=1e-4)


@pytest.mark.parametrize("onnx", [True, False])
def test_words(tmp_path: Path, onnx: bool) -> None:
    source = write_jsonl(tmp_path / "t.jsonl", small_sentences(12, labeled=8))
    options = {"task": "tokens", "finetune": True, "seeds": 1, "onnx": onnx}
    run = small_fit(source, small_word_encoder(tmp_path / "encoder"), out=tmp_path / "run", **options)
    script = (tmp_path / "run" / MODEL / "use.py").read_text(encoding="utf-8")
    assert ("pipeline" in script) != onnx
    if onnx:
        words = ["john", "lives", "in", "new", "york"]
        assert alone(run, tmp_path, "tag", words) == run.predict([words])[0]
    compile(script, "use.py", "exec")


def test_models_that_only_this_package_opens_have_none(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "t.csv", small_table(24, labeled=12))
    run = small_fit(table, "textcnn", out=tmp_path / "run", seeds=1)
    assert not (run.path / MODEL / "use.py").exists()  # type: ignore[operator]


def test_joblib_keeps_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    table = write_csv(tmp_path / "t.csv", small_table(24, labeled=12))
    run = small_fit(table, small_encoder(tmp_path / "encoder"), out=tmp_path / "run")
    joblib.dump(run, tmp_path / "run.joblib")
    again = joblib.load(tmp_path / "run.joblib")
    np.testing.assert_allclose(again.predict_proba(TEXTS), run.predict_proba(TEXTS), atol=1e-6)
    assert again.explain(TEXTS[:1])[0].nearest == run.explain(TEXTS[:1])[0].nearest
