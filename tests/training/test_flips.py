"""Rows that change their class between θinit and the end: what both students say, and the same after a stop."""

from pathlib import Path

import numpy as np
import pytest
import torch

from drift.data.examples import Labeled, Unlabeled
from drift.errors import Interrupted
from drift.models.stacked import Stacked
from drift.training.data import TrainingData
from drift.training.flips import WATCHED
from tests.training.runs import small_data, small_run, small_student, stopped_after


def classes(run, rows: torch.Tensor) -> list[int]:
    x = run.data.unlabeled.examples.inputs(rows)
    with torch.no_grad():
        return run.method.student.eval()(x).argmax(-1).tolist()


def test_before_is_the_start_and_after_is_the_student_that_is_kept() -> None:
    run = small_run(data=small_data(gold=True), played={"prior": "uniform"})
    start = small_run(method="supervised")
    flips = run.run().flips
    start.run()
    rows = run.data.unlabeled.rows
    assert flips.targets.tolist() == rows.tolist()
    assert flips.after.tolist() == classes(run, rows)
    assert flips.before.tolist() == classes(start, rows)
    assert flips.gold.tolist() == run.data.unlabeled.gold.tolist()
    assert (flips.before != flips.after).any()


def test_only_the_first_rows_are_watched() -> None:
    data = small_data()
    many = TrainingData(data.labeled, Unlabeled(data.labeled.examples, torch.arange(240).repeat(3)), data.dev)
    assert len(small_run(data=many).run().flips.targets) == WATCHED


def test_a_method_that_does_not_go_on_has_none() -> None:
    assert small_run(method="supervised").run().flips is None


def test_stacked_trials_have_their_own() -> None:
    data = small_data()
    rows = torch.stack([data.unlabeled.rows, data.unlabeled.rows.flip(0)])
    stacked = TrainingData(
        Labeled(data.labeled.examples, data.labeled.rows.expand(2, -1), data.labeled.labels.expand(2, -1)),
        Unlabeled(data.labeled.examples, rows),
        data.dev,
    )
    student = Stacked([small_student(seed=seed) for seed in (0, 1)])
    run = small_run(student=student, data=stacked, seeds=(0, 1))
    flips = run.run().flips
    for trial in (0, 1):
        own = flips.of_trial(trial)
        assert own.targets.tolist() == rows[trial].tolist()
        alone = run.method.student.trial(trial).eval()
        with torch.no_grad():
            expected = alone(data.labeled.examples.inputs(rows[trial])).argmax(-1)
        assert own.after.tolist() == expected.tolist()


@pytest.mark.parametrize("after", [4, 14])
def test_a_run_that_was_stopped_tells_the_same(tmp_path: Path, after: int) -> None:
    whole = small_run(tmp_path / "whole").run().flips
    with pytest.raises(Interrupted):
        small_run(tmp_path / "run", kind=stopped_after(after)).run()
    again = small_run(tmp_path / "run").run(resume=True).flips
    assert np.array_equal(again.before, whole.before)
    assert np.array_equal(again.after, whole.after)
