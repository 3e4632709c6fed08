"""Fine-tuned text runs: in which precision they are trained and scored, and what a time limit covers."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

import drift
from drift.models.precision import chosen_mixed_precision
from drift.runs.result import Run
from drift.runs.spec import RunSpec
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


def phases(run: Run) -> list[str]:
    return [end.phase for end in run.record.phases]


@pytest.mark.parametrize("layers", ["all", 1])
def test_it_begins_where_a_run_on_fixed_vectors_ends(encoder: str, layers: Any) -> None:
    """With no step of the game that changes anything, the last layer answers as the head does."""
    table = pd.DataFrame(small_table(300, labeled=20))
    options: dict[str, Any] = {"test": pd.DataFrame(TEST), "precision": "float32"}
    head = drift.fit(table, model=encoder, onnx=False, quiet=True, settings={"model.max_length": 32}, **options)
    fitted = small_fit(
        table,
        encoder,
        finetune=True,
        seeds=10,
        training={"steps": 1, "learning_rate": 1e-12},
        settings={"model": {"train_layers": layers}},
        **options,
    )
    answers, wanted = (run.predict_proba(TEST["body"]) for run in (fitted, head))
    assert (answers.argmax(1) == wanted.argmax(1)).mean() > 0.9
    assert phases(fitted) == ["game"]
    assert any("the last layer was fitted to a head on fixed vectors" in note for note in fitted.notes)


def test_without_the_head_or_a_game_there_is_a_first_phase(encoder: str) -> None:
    assert phases(finetuned(encoder, settings={"model": {"probe": False}})) == ["start", "game"]
    assert phases(finetuned(encoder, method="supervised")) == ["start"]


def test_labels_of_dev_alone_are_not_joined_by_those_of_the_head(encoder: str) -> None:
    run = finetuned(encoder, method="train-on-dev", dev=pd.DataFrame(small_table(10, seed=2)))
    assert not any("head on fixed vectors" in note for note in run.notes)


def test_the_plan_has_no_first_phase(encoder: str) -> None:
    plan = drift.plan(
        pd.DataFrame(small_table(24, labeled=8)),
        model=encoder,
        finetune=True,
        quiet=True,
        minutes=1,
        settings={"model.max_length": 32, "training.steps": 5},
    )
    assert (plan.initial_steps, plan.steps) == (0, 5)
    assert not any("to find the start" in line for line in plan.lines())


def test_an_encoder_of_shorter_texts_than_the_default_is_used_as_far_as_it_reads(encoder: str) -> None:
    assert finetuned(encoder, settings={"model": {"max_length": 256}}).model.max_length == 64


def test_the_jacobian_is_shared_unless_the_user_or_another_method_says_otherwise() -> None:
    def method(name: str = "drift", **settings: Any) -> dict[str, Any]:
        layers = [{"data": {"train": "t.csv"}, "method": {"name": name, **settings}}]
        return RunSpec.resolve(layers, method=name, finetune=True).config.method

    assert method()["coupling"] == "shared"
    assert method(coupling="differentiable")["coupling"] == "differentiable"
    assert "coupling" not in method("self-training")
    assert method("uda")["coupling"] == "detached"
