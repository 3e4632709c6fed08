"""Which model is kept, and what is estimated without a test set."""

import numpy as np
import pytest
import torch
from scipy.special import softmax
from scipy.stats import binomtest
from torch import nn

from drift.data.examples import Labeled, Vectors
from drift.methods.shares import Shares
from drift.models.stacked import Stacked
from drift.runs.keeping import Kept, cross_fitted, estimate
from drift.tasks.scoring import wilson_interval
from drift.training.outcome import Outcome
from drift.training.start import LEFT_OUT


def outcome(
    rows: list[list[int]], labels: list[list[int]], final: np.ndarray, start: np.ndarray, **more: object
) -> Outcome:
    part = Labeled(Vectors(torch.zeros(100, 1)), torch.tensor(rows), torch.tensor(labels))
    predictions = {LEFT_OUT: torch.from_numpy(start)}
    return Outcome(
        10, 1.0, None, None, None, start_predictions=predictions, left_out=(part, torch.from_numpy(final)), **more
    )


def test_the_average_of_probabilities_is_that_of_the_averaged_linear_head() -> None:
    heads = [nn.Sequential(nn.Linear(5, 3)) for _ in range(4)]
    stacked, x = Stacked(heads), torch.randn(20, 5)
    with torch.no_grad():
        by_seed = stacked(x.expand(4, -1, -1)).softmax(-1).numpy()
        averaged = stacked.average()(x).softmax(-1).numpy()
    np.testing.assert_allclose(Kept(None, "").probabilities(by_seed), averaged, rtol=1e-5)
    np.testing.assert_array_equal(Kept(2, "").probabilities(by_seed), by_seed[2])


@pytest.mark.parametrize(("right", "rows"), [(0, 20), (13, 20), (20, 20), (870, 1000)])
def test_the_interval_is_wilsons(right: int, rows: int) -> None:
    expected = binomtest(right, rows).proportion_ci(method="wilson")
    assert wilson_interval(right / rows, rows) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_heads_that_left_out_the_same_label_are_combined() -> None:
    logits = np.random.default_rng(0).normal(size=(4, 1, 3))
    result = outcome([[7], [9], [7], [9]], [[0], [2], [0], [2]], softmax(logits, -1), softmax(-logits, -1))
    combined = cross_fitted(result)
    assert combined is not None
    assert combined.left_out.codes.tolist() == [0, 2]
    np.testing.assert_allclose(combined.final, softmax(logits[:2, 0] / 2 + logits[2:, 0] / 2, -1))
    np.testing.assert_allclose(combined.start, softmax(-logits[:2, 0] / 2 - logits[2:, 0] / 2, -1))


def test_the_estimate_weighs_classes_by_their_estimated_shares() -> None:
    # Ten labels per class; all of class 0 are right, none of class 1.
    labels = [[0] * 10 + [1] * 10]
    answers = np.tile([0.9, 0.1], (1, 20, 1))
    result = outcome([list(range(20))], labels, answers, answers)
    assert (estimate(result) or {})["accuracy"] == pytest.approx(0.5)
    skewed = outcome([list(range(20))], labels, answers, answers, shares=[Shares((0.9, 0.1), "")])
    found = estimate(skewed) or {}
    assert found["accuracy"] == pytest.approx(0.9)
    low, high = found["interval"]
    assert low < 0.9 < high
    assert high - low > np.subtract(*wilson_interval(0.9, 20)[::-1])  # uneven weights are worth fewer labels


def test_without_left_out_labels_nothing_is_estimated() -> None:
    assert estimate(Outcome(10, 1.0, None, None, None)) is None
