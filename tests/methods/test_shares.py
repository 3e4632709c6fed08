"""Class shares that are estimated from the start's predictions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.methods.shares import FLOOR, estimate_shares, label_shares, likely_draw, predicted_shares


def predictions(counts: list[int], confidence: float = 0.999) -> np.ndarray:
    """Probabilities whose most likely classes have these counts."""
    C = len(counts)
    rest = (1 - confidence) / (C - 1)
    return np.where(np.eye(C, dtype=bool)[np.repeat(np.arange(C), counts)], confidence, rest)


def per_class(classes: int, each: int) -> np.ndarray:
    return np.repeat(np.arange(classes), each)


@given(
    st.lists(st.integers(0, 300), min_size=2, max_size=6).filter(lambda counts: sum(counts) > 0),
    st.integers(1, 30),
    st.sampled_from([None, "random", "per-class"]),
    st.booleans(),
)
def test_shares_are_positive_and_sum_to_one(counts: list[int], each: int, drawn: str | None, weak: bool) -> None:
    C = len(counts)
    shares = estimate_shares(predictions(counts, 0.7), per_class(C, each), labels_are=drawn, weak=weak).values
    assert sum(shares) == pytest.approx(1)
    assert min(shares) >= FLOOR / C / (1 + FLOOR) - 1e-12  # a rare class cannot vanish


def test_a_small_deviation_from_equal_shares_is_noise_with_few_labels() -> None:
    slightly = predictions([520, 480])
    assert estimate_shares(slightly, per_class(2, 5)).values == pytest.approx((0.5, 0.5))
    assert estimate_shares(slightly, per_class(2, 5000)).values[0] > 0.515


def test_skewed_predictions_are_believed_though_labels_are_balanced() -> None:
    shares = estimate_shares(predictions([870, 130]), per_class(2, 30)).values
    assert shares[1] == pytest.approx(0.13, abs=0.02)


def test_the_correction_inverts_errors_that_are_spread_evenly() -> None:
    true, right = np.array([0.8, 0.15, 0.05]), 0.9
    predicted_shares = right * true + (1 - right) / 2 * (1 - true)
    # A mean confidence of 0.8 stands for 90 % right predictions.
    predicted = predictions((predicted_shares * 1_000_000).astype(int).tolist(), confidence=0.8)
    assert estimate_shares(predicted, per_class(3, 10_000)).values == pytest.approx(tuple(true), abs=0.003)


def test_counts_of_random_labels_are_evidence_and_those_per_class_are_not() -> None:
    labels, predicted = np.repeat([0, 1], [90, 10]), predictions([700, 300])
    as_random = estimate_shares(predicted, labels, labels_are="random")
    as_chosen = estimate_shares(predicted, labels, labels_are="per-class")
    assert as_random.values[0] > 0.85 > as_chosen.values[0]
    assert "labels drawn at random;" in as_random.source
    assert as_chosen.source.endswith("labels chosen per class")
    assert estimate_shares(predicted, labels).source.startswith("counts of 100 labels drawn at random, as their counts")


@pytest.mark.parametrize(
    ("counts", "shares", "drawn"),
    [
        ([10, 10], [0.9, 0.1], "per-class"),
        ([12, 8], [0.85, 0.15], "per-class"),
        ([18, 2], [0.9, 0.1], "random"),
        ([17, 3], [0.95, 0.05], "random"),
        ([7, 5, 3], [0.5, 0.3, 0.2], "random"),
    ],
)
def test_how_labels_were_drawn_is_seen_in_their_counts(counts: list[int], shares: list[float], drawn: str) -> None:
    assert likely_draw(np.array(counts, dtype=float), np.array(shares)) == drawn


def test_the_bias_of_weak_labels_is_taken_out() -> None:
    """A start that has learned from skewed weak labels predicts their skew; without it, the rows are balanced."""
    even = np.clip(np.random.default_rng(0).normal(0.5, 0.2, 2000), 0.01, 0.99)
    fair = np.stack([even, 1 - even], 1)
    skewed = fair * [0.8, 0.2]
    skewed /= skewed.sum(1, keepdims=True)
    assert predicted_shares(skewed).values[0] > 0.8
    labels = np.repeat([0, 1], [800, 200])
    assert estimate_shares(skewed, labels, weak=True).values == pytest.approx((0.5, 0.5), abs=0.02)


def test_weak_labels_are_worth_few_labels_however_many_they_are() -> None:
    predicted = predictions([600, 400])
    few, many = (estimate_shares(predicted, np.repeat([0, 1], n), weak=True).values for n in ([50, 50], [9000, 9000]))
    assert few == pytest.approx(many)
    assert 0.5 < few[0] < 0.6


def test_classes_keep_their_order_if_they_are_renamed() -> None:
    predicted, labels = predictions([500, 300, 200], 0.8), np.repeat([0, 1, 2], [10, 6, 4])
    order = np.array([2, 0, 1])
    renamed = estimate_shares(predicted[:, order], np.argsort(order)[labels]).values
    assert renamed == pytest.approx(tuple(np.array(estimate_shares(predicted, labels).values)[order]))


def test_shares_of_the_labels_themselves() -> None:
    shares = label_shares(np.repeat([0, 1], [90, 10]), 3)
    assert shares.values[0] == pytest.approx(90.5 / 101.5, abs=0.02)
    assert min(shares.values) > 0
