"""Choosing on dev: the best so far, a best a trial, and an end to waiting."""

import pytest
import torch
from torch import nn

from drift.training.packing import pack, unpack
from drift.training.selection import Selection


class Numbers(nn.Module):
    """A student that is one parameter and one buffer, a value a trial."""

    def __init__(self, trials: int = 1) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(trials))
        self.register_buffer("mean", torch.zeros(trials))

    def become(self, value: float) -> None:
        with torch.no_grad():
            self.weight.fill_(value)
            self.mean.fill_(-value)


def looked(selection: Selection, student: Numbers, *scores: list[float]) -> Selection:
    """One look after another; at look k every value of the student is k."""
    for step, row in enumerate(scores, start=1):
        student.become(step)
        selection.look(step, [{"accuracy": score, "f1": -score} for score in row])
    return selection


def test_the_best_comes_back_and_the_first_of_equals_stays() -> None:
    student = Numbers()
    selection = looked(Selection(student), student, [0.5], [0.7], [0.7], [0.6])
    assert selection.steps.tolist() == [2]
    assert selection.best_scores == [{"accuracy": 0.7, "f1": -0.7}]  # by the first, whatever the others say
    selection.restore()
    assert student.weight.tolist() == [2.0]
    assert student.mean.tolist() == [-2.0]


def test_what_is_kept_does_not_move_with_the_student() -> None:
    student = Numbers()
    selection = looked(Selection(student), student, [0.5])
    student.become(9)
    selection.restore()
    student.become(8)
    selection.restore()
    assert student.weight.tolist() == [1.0]


def test_without_a_look_the_student_stays() -> None:
    student = Numbers()
    student.become(4)
    selection = Selection(student)
    selection.restore()
    assert student.weight.tolist() == [4.0]
    assert not selection.exhausted


def test_every_trial_has_a_best_of_its_own() -> None:
    student = Numbers(3)
    selection = looked(Selection(student, trials=3), student, [0.1, 0.9, 0.5], [0.3, 0.2, 0.5], [0.2, 0.1, 0.8])
    selection.restore()
    assert student.weight.tolist() == [2.0, 1.0, 3.0]
    assert student.mean.tolist() == [-2.0, -1.0, -3.0]
    assert selection.steps.tolist() == [2, 1, 3]
    assert [score["accuracy"] for score in selection.best_scores] == [0.3, 0.9, 0.8]


def test_patience_ends_when_every_trial_has_waited() -> None:
    student = Numbers(2)
    selection = Selection(student, trials=2, patience=2)
    ended = []
    for row in ([0.5, 0.5], [0.4, 0.6], [0.4, 0.5], [0.4, 0.5]):
        looked(selection, student, row)
        ended.append(selection.exhausted)
    assert ended == [False, False, False, True]


def test_a_score_that_is_no_number_is_never_best() -> None:
    student = Numbers()
    selection = looked(Selection(student), student, [float("nan")], [0.1], [float("nan")])
    assert selection.steps.tolist() == [2]


@pytest.mark.parametrize("trials", [None, 2])
def test_a_selection_goes_on_from_what_was_saved(trials: int | None) -> None:
    student, other = Numbers(trials or 1), Numbers(trials or 1)
    scores = [[0.5] * (trials or 1), [0.4] * (trials or 1)]
    selection = looked(Selection(student, trials=trials, patience=2), student, *scores)
    again = Selection(other, trials=trials, patience=2)
    again.load_state_dict(unpack(*pack(selection.state_dict())))
    again.restore()
    assert torch.equal(other.weight, torch.ones(trials or 1))
    assert not again.exhausted
    looked(again, other, scores[1])
    assert again.exhausted
