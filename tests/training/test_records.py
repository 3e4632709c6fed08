"""What a run writes down on its way: the trace, the bar, and predictions at chosen steps."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from drift.data.examples import Labeled, Unlabeled
from drift.models.stacked import Stacked
from drift.training import progress
from drift.training.callbacks import Callback, TrainingState
from drift.training.data import TrainingData
from drift.training.evaluation import predict
from drift.training.progress import Tick
from drift.training.progress_bar import ProgressBar
from drift.training.run_folder import TRACE
from drift.training.trace import read_trace
from drift.training.trainer import PROBE
from tests.training.runs import (
    FEATURES,
    dev_looks,
    final_state,
    same_bits,
    small_data,
    small_run,
    small_student,
)


def test_the_trace_tells_losses_diagnostics_and_dev_scores(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", data=small_data(gold=True), schedule="linear")
    outcome = run.run()
    entries = [json.loads(line) for line in (tmp_path / "run" / TRACE).read_text().splitlines()]
    assert entries == outcome.entries == read_trace(tmp_path / "run" / TRACE)
    losses = {phase: [e for e in entries if e["phase"] == phase and "loss" in e] for phase in ("start", "game")}
    assert [e["step"] for e in losses["start"]] == [4, 8]
    assert [e["step"] for e in losses["game"]] == [4, 8, 12]
    assert [e["step"] for e in dev_looks(entries, "start")] == [5, 8]
    assert [e["step"] for e in dev_looks(entries, "game")] == [0, 5, 10, 12]
    assert losses["start"][0]["lr"] == pytest.approx(0.02 * (1 - 3 / 8))
    for entry in losses["game"]:
        assert entry["loss"] == pytest.approx(entry["supervised"] + entry["self_trained"])
        assert entry["interaction_norm"] > 0
        assert 0 <= entry["mean_omega"] <= 1
        assert sum(entry["class_mass"]) == pytest.approx(1)
    assert [e["flips"] for e in losses["game"]].count(None) == 1  # there is nothing to compare the first look with


@pytest.mark.parametrize(("unknown", "known"), [([], PROBE), (range(1, 116, 2), PROBE // 2), (range(116), 0)])
def test_pseudo_label_accuracy_is_told_where_gold_is_known(unknown: list[int], known: int) -> None:
    data = small_data(gold=True)
    gold = data.unlabeled.gold.clone()
    gold[list(unknown)] = -1
    part = Unlabeled(data.unlabeled.examples, data.unlabeled.rows, gold)
    run = small_run(data=TrainingData(data.labeled, part, data.dev))
    last = [entry for entry in run.run().entries if "loss" in entry][-1]
    probed = run.method.probe_labels()  # of the first rows
    right = [int(p) == int(g) for p, g in zip(probed, gold[:PROBE], strict=True) if g >= 0]
    assert len(right) == known
    assert last.get("pseudo_label_accuracy") == (pytest.approx(sum(right) / known) if known else None)


def test_pseudo_label_accuracy_is_not_told_without_gold() -> None:
    assert not [entry for entry in small_run().run().entries if "pseudo_label_accuracy" in entry]


def test_predictions_at_chosen_steps_are_those_of_the_student_then(tmp_path: Path) -> None:
    seen: dict[int, Tensor] = {}

    class Asks(Callback):
        def on_step_end(self, state: TrainingState) -> None:
            part = run.data.unlabeled
            if state.playing:
                seen[state.step] = predict(run.method, part.examples, part.rows, run.machine)

        on_phase_begin = on_step_end

    student = small_student(dropout=0.3)
    run = small_run(tmp_path / "run", predictions_at=(0, 3, 10), callbacks=[Asks()], student=student)
    run.run()
    folder = tmp_path / "run" / "predictions"
    assert sorted(path.name for path in folder.iterdir()) == ["step-000000.npz", "step-000003.npz", "step-000010.npz"]
    for step in (0, 3, 10):
        with np.load(folder / f"step-{step:06d}.npz") as written:
            assert written["probabilities"].shape == (116, 3)
            assert np.array_equal(written["rows"], run.data.unlabeled.rows.numpy())
            assert np.array_equal(written["probabilities"], seen[step].numpy())
    assert not torch.equal(seen[0], seen[3])


def test_predictions_on_the_way_change_nothing(tmp_path: Path) -> None:
    runs = [small_run(tmp_path / str(at), student=small_student(dropout=0.3), predictions_at=at) for at in [(), (0, 3)]]
    for run in runs:
        run.run()
    assert same_bits(final_state(runs[0]), final_state(runs[1]))


def test_stacked_predictions_are_of_all_rows_for_every_trial(tmp_path: Path) -> None:
    data = small_data()
    stacked = TrainingData(
        Labeled(data.labeled.examples, data.labeled.rows.expand(2, -1), data.labeled.labels.expand(2, -1)),
        Unlabeled(data.labeled.examples, data.unlabeled.rows.expand(2, -1)),
    )
    student = Stacked([small_student(seed=seed) for seed in (0, 1)])
    run = small_run(tmp_path / "run", student=student, data=stacked, seeds=(0, 1), predictions_at=(12,))
    run.run()
    with np.load(tmp_path / "run" / "predictions" / "step-000012.npz") as written:
        assert np.array_equal(written["rows"], np.arange(240))
        direct = run.method.predict_proba(data.labeled.examples.inputs(torch.arange(240)).expand(2, 240, FEATURES))
        assert np.allclose(written["probabilities"], direct.numpy(), atol=1e-6)


def test_a_look_at_dev_is_told_as_a_mean_and_of_every_seed(tmp_path: Path) -> None:
    data = small_data()
    stacked = TrainingData(
        Labeled(data.labeled.examples, data.labeled.rows.expand(2, -1), data.labeled.labels.expand(2, -1)),
        Unlabeled(data.labeled.examples, data.unlabeled.rows.expand(2, -1)),
        data.dev,
    )
    student = Stacked([small_student(seed=seed) for seed in (0, 1)])
    outcome = small_run(tmp_path / "run", student=student, data=stacked, seeds=(0, 1)).run()
    looks = [entry for entry in outcome.entries if "dev" in entry]
    assert looks
    assert outcome.best is not None
    for entry in looks:
        assert len(entry["dev_by_seed"]["accuracy"]) == 2
        assert entry["dev"]["accuracy"] == pytest.approx(np.mean(entry["dev_by_seed"]["accuracy"]))
    game = [entry["dev_by_seed"]["accuracy"] for entry in looks if entry["phase"] == "game"]
    last_start = [entry["dev_by_seed"]["accuracy"] for entry in looks if entry["phase"] == "start"]
    assert [each["accuracy"] for each in outcome.best] == np.max(game + last_start, axis=0).tolist()


def test_the_bar_shows_the_loss_and_the_dev_score_once_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []

    @contextmanager
    def recorded(title: str, total: int, *, done: int = 0) -> Iterator[Tick]:
        yield lambda text="": texts.append(text)

    monkeypatch.setattr(progress, "progress", recorded)
    small_run(callbacks=[ProgressBar()], steps=0).run()
    assert len(texts) == 8
    assert [" dev " in text for text in texts] == [False] * 4 + [True] * 4  # the first evaluation is at step 5
    assert all(text.startswith("loss ") for text in texts)
