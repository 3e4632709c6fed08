"""Fine-tuned text runs: in which precision they are trained and scored, and what a time limit covers."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

import drift
from drift.models.precision import chosen_mixed_precision
from drift.runs.result import Run
from tests.runs.small import small_encoder, small_fit, small_table, write_csv

TEST = small_table(40, seed=1)


@pytest.fixture
def encoder(tmp_path: Path) -> str:
    return small_encoder(tmp_path / "encoder")


def finetuned(encoder: str, out: Path | None = None, **options: Any) -> Run:
    return small_fit(
        pd.DataFrame(small_table(24, labeled=8)), encoder, finetune=True, test=pd.DataFrame(TEST), out=out, **options
    )


@pytest.mark.parametrize("layers", ["all", 1])
@pytest.mark.parametrize("dev", [None, pd.DataFrame(small_table(10, seed=2))], ids=["no dev", "dev"])
def test_scores_of_a_bfloat16_run_are_those_of_evaluate(encoder: str, tmp_path: Path, layers: Any, dev: Any) -> None:
    out, settings = tmp_path / "run", {"model": {"train_layers": layers}}
    run = finetuned(encoder, out, dev=dev, training={"precision": "bf16"}, settings=settings)
    assert run.record.precision == "bfloat16"
    later = drift.evaluate(out, write_csv(tmp_path / "test.csv", TEST), label="topic")
    assert later["accuracy"] == run.record.test.model["accuracy"]
    assert later["calibration_error"] == pytest.approx(run.record.calibration.error_after, abs=1e-6)
    loaded = drift.load(out)
    assert torch.equal(*(torch.from_numpy(each.predict_proba(TEST["body"])) for each in (run, loaded)))


def test_the_precision_is_chosen_by_the_machine_and_recorded(encoder: str) -> None:
    run, plain = finetuned(encoder), finetuned(encoder, precision="float32")
    fast = chosen_mixed_precision("auto") == "bf16"
    assert run.record.precision == ("bfloat16" if fast else "float32")
    assert any("bfloat16" in note for note in run.notes) == fast
    assert plain.record.precision == "float32"
    assert not any("bfloat16" in note for note in plain.notes)


def test_how_many_layers_were_trained_is_said(encoder: str) -> None:
    run = finetuned(encoder, settings={"model": {"train_layers": 1}})
    assert any(note.startswith("the upper 1 of 2 layers were trained") for note in run.notes)
    assert not any(
        "layers were trained" in note for note in finetuned(encoder, settings={"model": {"train_layers": "all"}}).notes
    )


def test_peak_memory_is_recorded(encoder: str) -> None:
    assert 0.01 < finetuned(encoder).record.peak_memory < 100
