"""The ONNX file in int8: what it answers, and what a run says about it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from drift.models.onnx_int8 import probabilities
from drift.runs import result
from drift.runs.result import Run
from tests.runs.small import small_encoder, small_fit, small_table

pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'drift-ssl[text]'")
pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'drift-ssl[text]'")
TEST = small_table(40, seed=1)
AGREEING = {"initial_steps": 60, "learning_rate": 0.01}  # of a start on the labels


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_encoder(tmp_path_factory.mktemp("encoder"))


def exported(encoder: str, out: Path, **options: Any) -> Run:
    table = pd.DataFrame(small_table(24, labeled=16))
    settings = {"model": {"probe": False}}
    return small_fit(table, encoder, finetune=True, out=out, onnx=True, settings=settings, training=AGREEING, **options)


def test_both_files_are_compared_on_test_and_that_is_recorded(encoder: str, tmp_path: Path) -> None:
    run = exported(encoder, tmp_path / "run", test=pd.DataFrame(TEST))
    whole, small = (tmp_path / "run/model" / name for name in ("model.onnx", "model_int8.onnx"))
    found = run.record.int8
    assert (found.part, found.rows, found.kept) == ("test", 40, True)
    answers = [probabilities(file, run.model.tokenizer, TEST["body"], max_length=32) for file in (whole, small)]
    np.testing.assert_allclose(answers[0], run.predict_proba(TEST["body"]), atol=1e-4)
    codes = np.array([run.classes.index(name) for name in TEST["topic"]])
    classes = [each.argmax(-1) for each in answers]
    assert found.agreement == (classes[0] == classes[1]).mean()
    assert (found.float32_accuracy, found.accuracy) == tuple((each == codes).mean() for each in classes)
    assert found.megabytes < found.float32_megabytes or found.float32_megabytes < 1
    assert any(note.startswith("model_int8.onnx, ") and "40 test texts" in note for note in run.notes)
    assert json.loads((tmp_path / "run/metrics.json").read_text())["int8"]["kept"] is True


def test_a_file_that_answers_differently_is_not_kept(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result, "AGREEMENT", 1.01)
    run = exported(encoder, tmp_path / "run")
    assert (tmp_path / "run/model/model.onnx").exists()
    assert not (tmp_path / "run/model/model_int8.onnx").exists()
    assert (run.record.int8.part, run.record.int8.accuracy, run.record.int8.kept) == ("train", None, False)
    assert any(note.startswith("no model_int8.onnx: it gives ") for note in run.notes)
