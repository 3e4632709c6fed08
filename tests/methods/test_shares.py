"""Estimated class shares: a distribution, close to the evidence, in which no class vanishes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.methods.shares import estimate_shares


def hard(counts: list[int]) -> np.ndarray:
    """Predictions with these numbers of rows per class."""
    return np.eye(len(counts))[np.repeat(np.arange(len(counts)), counts)]


@given(
    st.lists(st.integers(0, 50), min_size=2, max_size=5),
    st.lists(st.integers(0, 4), min_size=1, max_size=30),
    st.sampled_from(["random", "per-class", None]),
)
def test_shares_are_a_positive_distribution(rows: list[int], labels: list[int], how: object) -> None:
    C = len(rows)
    shares = estimate_shares(hard(rows), np.array(labels) % C, C, labels_are=how)
    assert len(shares.values) == C
    assert sum(shares.values) == pytest.approx(1)
    assert min(shares.values) > 0


def test_equal_counts_say_nothing_and_unequal_counts_are_evidence() -> None:
    predicted = hard([900, 100])
    equal = estimate_shares(predicted, np.repeat([0, 1], 20), 2)
    assert equal == estimate_shares(predicted, np.repeat([0, 1], 20), 2, labels_are="per-class")
    assert "labels" not in equal.source
    assert equal.values == pytest.approx(((80 * 0.9 + 1) / 82, (80 * 0.1 + 1) / 82))
    unequal = estimate_shares(predicted, np.repeat([0, 1], [30, 10]), 2)
    assert "counts of 40 labels" in unequal.source
    assert unequal.values == pytest.approx(((80 * 0.9 + 30 + 1) / 122, (80 * 0.1 + 10 + 1) / 122))


def test_more_labels_mean_less_shrinkage() -> None:
    rare = [estimate_shares(hard([95, 5]), np.tile([0, 1], n), 2).values[1] for n in (1, 3, 10, 50)]
    assert rare == sorted(rare, reverse=True)
    assert 0.05 < rare[-1] < 0.07 < rare[0] < 0.5


def test_classes_in_another_order_get_the_same_shares() -> None:
    labels, order = np.array([0, 0, 0, 1, 2, 2]), np.array([2, 0, 1])
    shares = estimate_shares(hard([7, 2, 11]), labels, 3)
    moved = estimate_shares(hard([2, 11, 7]), order[labels], 3)
    assert np.allclose(np.array(moved.values)[order], shares.values)


def test_without_predictions_the_labels_decide() -> None:
    assert estimate_shares(np.empty((0, 0)), np.array([0] * 97 + [1] * 1), 2).values == pytest.approx((0.98, 0.02))
    assert estimate_shares(np.empty((0, 0)), np.array([0, 1]), 2).values == pytest.approx((0.5, 0.5))
