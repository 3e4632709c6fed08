"""Class shares that are estimated from the start's predictions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from drift.methods.shares import (
    FLOOR,
    Shares,
    estimate_shares,
    held_shares,
    label_shares,
    likely_draw,
    predicted_shares,
    refine_shares,
)


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
    st.sampled_from([None, "random", "per-class", "suggested"]),
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


def test_half_of_what_counts_of_suggested_rows_say_is_taken_out() -> None:
    """A start that takes classes for as common as their labels, 4 to 1, has half of the log odds left."""
    fair = np.linspace(0.02, 0.98, 2000)
    p = np.stack([4 * fair, 1 - fair], 1) / (4 * fair + 1 - fair)[:, None]
    labels = np.repeat([0, 1], [800, 200])
    assert predicted_shares(p).values[0] == pytest.approx(0.8, abs=0.04)
    estimate = estimate_shares(p, labels, labels_are="suggested")
    assert estimate.values[0] == pytest.approx(2 / 3, abs=0.02)
    assert estimate.source.endswith("labels of suggested rows")
    equal = estimate_shares(p, per_class(2, 500), labels_are="suggested")  # equal counts say nothing: q as it is
    assert equal.values == pytest.approx(predicted_shares(p).values, abs=0.005)


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


def test_an_unsure_start_cannot_say_that_unequal_counts_were_chosen() -> None:
    counts, shares = np.array([13.0, 9.0, 5.0, 3.0]), np.array([0.05, 0.9, 0.04, 0.01])
    assert likely_draw(counts, shares, 0.95) == "per-class"
    assert likely_draw(counts, shares, 0.3) == "random"


@given(st.integers(2, 9), st.integers(1, 20), st.floats(0, 1), st.integers(0, 99))
def test_equal_counts_were_chosen_per_class(C: int, each: int, sure: float, seed: int) -> None:
    shares = np.random.default_rng(seed).dirichlet(np.ones(C)) * 0.99 + 0.01 / C
    assert likely_draw(np.full(C, float(each)), shares, sure) == "per-class"


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


def two_clusters(share: float, *, boundary: float, rows: int = 2000) -> np.ndarray:
    """Predictions on two well-separated clusters, `share` of them in the second, by a student with this boundary."""
    rng = np.random.default_rng(0)
    x = np.where(np.arange(rows) < share * rows, rng.normal(2, 0.7, rows), rng.normal(-2, 0.7, rows))
    return np.asarray(softmax(np.stack([boundary - x, x - boundary], 1), axis=-1))


@pytest.mark.parametrize("boundary", [-1.5, 0.0, 1.5])
def test_refined_shares_are_those_of_the_clusters_wherever_the_boundary_was(boundary: float) -> None:
    first = Shares((0.75, 0.25), "a guess", trust=1.0)
    refined = refine_shares(two_clusters(0.1, boundary=boundary), first)
    assert refined.values[1] == pytest.approx(0.1, abs=0.02)
    assert refined.source == "a guess; refined during the game"


def test_refinement_keeps_the_first_estimate_if_the_rows_say_nothing() -> None:
    """Predictions that are the same for every row have no boundary; the first estimate stands."""
    first = Shares((0.7, 0.2, 0.1), "a guess", trust=1.0)
    assert refine_shares(np.full((50, 3), 1 / 3), first).values == pytest.approx(first.values, abs=0.01)


def test_refinement_is_the_same_for_renamed_classes() -> None:
    predicted, order = np.random.default_rng(1).dirichlet([2, 1, 0.5], 400), [2, 0, 1]
    shares = np.array([0.5, 0.3, 0.2])
    plain = refine_shares(predicted, Shares(tuple(shares), "")).values
    renamed = refine_shares(predicted[:, order], Shares(tuple(shares[order]), "")).values
    assert renamed == pytest.approx(np.array(plain)[order], abs=1e-4)


def test_only_shares_that_labels_do_not_show_are_refined() -> None:
    predicted = predictions([700, 300])
    assert estimate_shares(predicted, per_class(2, 10), labels_are="per-class").refinable
    assert not estimate_shares(predicted, per_class(2, 10), labels_are="random").refinable
    assert not estimate_shares(predicted, per_class(2, 10), weak=True).refinable


def test_more_noise_shrinks_the_estimate_to_equal_shares_and_forbids_refinement() -> None:
    predicted, labels = predictions([700, 200, 100]), per_class(3, 5)
    largest, trusts = [], []
    for noise in (0.0, 0.1, 1.0, 100.0):
        shares = estimate_shares(predicted, labels, labels_are="per-class", noise=noise)
        largest.append(shares.values[0])
        trusts.append(shares.trust)
    assert largest == sorted(largest, reverse=True)
    assert trusts == sorted(trusts, reverse=True)
    assert (trusts[0], trusts[-1]) == (1.0, 0.0)
    assert shares.values == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert not shares.refinable


@pytest.mark.parametrize("trust", [0.0, 0.3, 1.0])
def test_a_refinement_moves_the_estimate_in_proportion_to_the_trust_in_it(trust: float) -> None:
    logits = np.random.default_rng(0).normal(size=(500, 3)) + np.array([1.5, 0.0, -0.5])
    predicted = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    first = np.array([0.5, 0.3, 0.2])
    moved = np.array(refine_shares(predicted, Shares(tuple(first), "a guess", trust=1.0)).values) - first
    refined = np.array(refine_shares(predicted, Shares(tuple(first), "a guess", trust=trust)).values)
    np.testing.assert_allclose(refined - first, trust * moved, atol=1e-9)


def test_labels_that_cover_all_classes_alike_keep_the_predicted_shares() -> None:
    """Class names label the same part of every class: dividing by their shares would hide that classes are skewed."""
    predicted = np.repeat([[0.7, 0.3], [0.2, 0.8]], [900, 100], axis=0)
    labels = np.repeat([0, 1], [450, 50])
    even = estimate_shares(predicted, labels, weak=True, biased=True).values
    plain = estimate_shares(predicted, labels, weak=True, biased=False).values
    assert plain[0] > 0.85
    assert even[0] < plain[0]


def test_held_classes_keep_their_predicted_share_and_the_others_divide_the_rest() -> None:
    predicted = np.repeat(np.eye(3), [80, 15, 5], axis=0)
    for estimate in (Shares((0.6, 0.2, 0.2), "counts"), Shares((0.735, 0.245, 0.02), "counts")):
        held = np.array(held_shares(estimate, predicted, np.array([False, False, True])).values)
        assert held[2] == pytest.approx(5.5 / 101.5)
        assert held[0] / held[1] == pytest.approx(3)
        assert held.sum() == pytest.approx(1)
        assert held_shares(estimate, predicted, np.zeros(3, bool)).values == pytest.approx(estimate.values)
        all_held = held_shares(estimate, predicted, np.ones(3, bool)).values
        assert all_held == pytest.approx(predicted_shares(predicted).values)


def test_uneven_counts_are_a_random_draw_even_if_the_start_predicts_few_classes() -> None:
    shares = np.full(10, 0.001)
    shares[0] = 0.991
    assert likely_draw(np.array([9, 1, 4, 2, 1, 6, 2, 3, 1, 5.0]), shares, 0.3) == "random"
    for counts in ([5] * 10, [5] * 9 + [4]):  # chosen per class
        assert likely_draw(np.array(counts, float), shares, 0.3) == "per-class"
