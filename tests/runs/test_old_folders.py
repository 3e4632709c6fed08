"""Folders that version 0.1 wrote still open, predict the same, have a page, compare, and can be resumed to the bit.

`version_0_1` was written by that version: three finished runs, one that was stopped, and what they predicted.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import drift
from drift.runs.record import read_record
from drift.tasks import TASKS
from drift.training.run_folder import RunFolder

OLD = Path(__file__).parent / "version_0_1"
EXPECTED = json.loads((OLD / "expected.json").read_text())


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy that may be written to, as the working directory: its runs name their data by relative paths."""
    pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
    shutil.copytree(OLD, tmp_path / "old")
    monkeypatch.chdir(tmp_path / "old")
    return tmp_path / "old"


@pytest.mark.parametrize("task", TASKS)
def test_a_record_without_a_version_is_version_1(task: str) -> None:
    task_type, record = read_record(RunFolder(OLD / task))
    assert task_type is TASKS[task]
    assert record.version == 1
    assert record.content() == json.loads((OLD / task / "metrics.json").read_text())  # nothing is lost


def test_texts_sentences_and_nodes_are_predicted_as_before(old: Path) -> None:
    texts = drift.load("text").predict_proba(EXPECTED["texts"])
    np.testing.assert_allclose(texts, np.array(EXPECTED["text"]), rtol=1e-5)
    for found, expected in zip(
        drift.load("tokens").predict_proba(EXPECTED["sentences"]), EXPECTED["tokens"], strict=True
    ):
        np.testing.assert_allclose(found, np.array(expected), rtol=1e-5)
    assert drift.predict("nodes", "graph.npz") == EXPECTED["nodes"]


@pytest.mark.parametrize("task", TASKS)
def test_an_old_run_has_a_page_and_can_be_compared(old: Path, task: str) -> None:
    assert "Results" in drift.write_report(task).read_text(encoding="utf-8")
    assert list(drift.compare([task]).rows) == [f"{task}: drift"]


def test_a_stopped_run_is_resumed_to_the_bit(old: Path) -> None:
    """Its configuration has the old name of a setting; its checkpoint is of the old trainer."""
    assert "spared" in (old / "stopped" / "config.yaml").read_text()
    with pytest.warns(FutureWarning, match="spared"):
        run = drift.fit(out="stopped", resume=True, quiet=True)
    assert {name: run.metrics["test"][name] for name in ("rows", "scores")} == EXPECTED["stopped"]
