"""Predictions come back in the order of the rows, however they were batched."""

import numpy as np
import pytest
import torch

from drift.data.examples import Labeled, Vectors
from drift.methods.method import Context, Method
from drift.methods.supervised import Supervised, SupervisedSettings
from drift.models.stacked import Stacked
from drift.tasks.scoring import classification_scores
from drift.training.devices import SingleProcess
from drift.training.evaluation import evaluate, predict
from tests.training.runs import clouds, small_student

ROWS = 128  # at once
X, Y = clouds(2 * ROWS + 50)
ROWS_OUT_OF_ORDER = torch.randperm(len(X), generator=torch.Generator().manual_seed(0))


def method_of(dropout: float = 0.0) -> Method:
    return Supervised(small_student(dropout=dropout), SupervisedSettings(), Context(single_process=True))


def direct(method: Method, rows: torch.Tensor) -> torch.Tensor:
    method.student.eval()
    probabilities = torch.softmax(method.student(X[rows]), dim=-1).detach()
    method.student.train()
    return probabilities


@pytest.mark.parametrize("lengths", [None, np.arange(len(X)) % 9])
@pytest.mark.parametrize("count", [1, ROWS, ROWS + 1, len(X)])
def test_predictions_are_in_row_order(lengths: np.ndarray | None, count: int) -> None:
    method, rows = method_of(), ROWS_OUT_OF_ORDER[:count]
    found = predict(method, Vectors(X, lengths, at_once=ROWS), rows, SingleProcess())
    assert torch.allclose(found, direct(method, rows), atol=1e-6)


def test_rows_of_like_length_go_together() -> None:
    class Noted(Vectors):
        asked: list[torch.Tensor] = []  # noqa: RUF012

        def inputs(self, rows: torch.Tensor) -> torch.Tensor:
            self.asked.append(rows)
            return super().inputs(rows)

    lengths = np.random.default_rng(0).integers(1, 100, len(X))
    examples = Noted(X, lengths, at_once=ROWS)
    predict(method_of(), examples, ROWS_OUT_OF_ORDER, SingleProcess())
    assert [len(rows) for rows in examples.asked] == [ROWS, ROWS, 50]
    in_order = lengths[torch.cat(examples.asked).numpy()]
    assert (np.diff(in_order) >= 0).all()


def test_dropout_is_off_and_the_student_is_in_training_again() -> None:
    method = method_of(dropout=0.5)
    found = [predict(method, Vectors(X, at_once=ROWS), ROWS_OUT_OF_ORDER, SingleProcess()) for _ in range(2)]
    assert torch.equal(*found)
    assert all(module.training for module in method.student.modules())


def test_every_trial_is_scored_by_itself() -> None:
    students = [small_student(seed=seed) for seed in range(3)]
    method = Supervised(Stacked(students), SupervisedSettings(), Context(stacked=True, single_process=True))
    dev = Labeled(Vectors(X, at_once=ROWS), ROWS_OUT_OF_ORDER, Y[ROWS_OUT_OF_ORDER])
    found = evaluate(method, dev, classification_scores, SingleProcess(), trials=3)
    expected = [
        evaluate(Supervised(s, SupervisedSettings()), dev, classification_scores, SingleProcess()) for s in students
    ]
    assert found == [scores for (scores,) in expected]
    assert len({scores["accuracy"] for scores in found}) == 3
