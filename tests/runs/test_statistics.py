"""Tests of differences, against scipy, by hand, and at their limits; and what is made of several."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from drift.runs.comparing.statistics import TTest, holm, paired_t, welch_t

# Accuracies in steps of a thousandth, as test sets of a thousand rows give.
scores = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=2, max_size=40).map(
    lambda pairs: np.array(pairs) / 1000
)


@given(pairs=scores)
def test_against_scipy(pairs: np.ndarray) -> None:
    ours, theirs = pairs.T
    test = paired_t(ours, theirs)
    assert test.pairs == len(pairs)
    assert test.difference == pytest.approx((ours - theirs).mean(), abs=1e-12)
    assert test.standard_error == pytest.approx(stats.sem(ours - theirs), abs=1e-12)
    if np.ptp(ours - theirs) > 1e-9:
        expected = stats.ttest_rel(ours, theirs)
        assert (test.t, test.p) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-9)


def test_by_hand() -> None:
    # Gaps 1, 2, 3: mean 2, standard deviation 1, standard error 1/√3, t = 2√3 with 2 degrees of freedom.
    test = paired_t([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert test.difference == pytest.approx(2.0)
    assert test.standard_error == pytest.approx(1 / math.sqrt(3))
    assert test.t == pytest.approx(2 * math.sqrt(3))
    # With 2 degrees of freedom the two-sided p is 1 - t / √(t² + 2).
    assert test.p == pytest.approx(1 - math.sqrt(12 / 14))
    assert test.pairs == 3


@given(pairs=scores)
def test_the_other_way_round_is_the_same_test(pairs: np.ndarray) -> None:
    ours, theirs = pairs.T
    one, other = paired_t(ours, theirs), paired_t(theirs, ours)
    assert (one.difference, one.t) == pytest.approx((-other.difference, -other.t), abs=1e-12, nan_ok=True)
    assert (one.standard_error, one.p) == pytest.approx((other.standard_error, other.p), abs=1e-12, nan_ok=True)
    assert {one.verdict(), other.verdict()} in ({"tie"}, {"win", "loss"})


def test_equal_everywhere_is_a_tie() -> None:
    test = paired_t([0.9, 0.8, 0.7], [0.9, 0.8, 0.7])
    assert test == TTest(0.0, 0.0, 0.0, 1.0, 3)
    assert test.verdict() == "tie"


@pytest.mark.parametrize("ours", [[0.75] * 3, [0.25] * 3, [0.31, 0.61, 0.91]])
def test_the_same_gap_everywhere_is_no_proof(ours: list[float]) -> None:
    test = paired_t(ours, [0.5] * 3 if ours[0] == ours[1] else [0.3, 0.6, 0.9])
    assert test.difference == pytest.approx(np.mean(ours) - (0.5 if ours[0] == ours[1] else 0.6))
    assert math.isnan(test.p)
    assert (test.standard_error, test.verdict(), test.p_text()) == (0.0, "tie", "not known")


@pytest.mark.parametrize(
    ("difference", "p", "level", "verdict"),
    [
        (0.1, 0.049, 0.05, "win"),
        (-0.1, 0.049, 0.05, "loss"),
        (0.1, 0.05, 0.05, "tie"),
        (-0.1, 0.3, 0.05, "tie"),
        (0.1, 0.049, 0.01, "tie"),
        (0.1, math.nan, 0.05, "tie"),
    ],
)
def test_verdicts(difference: float, p: float, level: float, verdict: str) -> None:
    assert TTest(difference, 0.1, 1.0, p, 5).verdict(level) == verdict


@pytest.mark.parametrize(
    ("difference", "error", "text"),
    [(0.0015, 0.0008, "+0.15 ± 0.08"), (-0.0015, 0.0008, "-0.15 ± 0.08"), (-1e-9, 0.0, "+0.00 ± 0.00")],
)
def test_the_gap_in_points(difference: float, error: float, text: str) -> None:
    assert TTest(difference, error, 1.0, 0.5, 5).gap() == text


@pytest.mark.parametrize(
    ("p", "text"), [(0.0451, "0.045"), (1.0, "1.000"), (0.001, "0.001"), (0.00099, "< 0.001"), (0.0, "< 0.001")]
)
def test_p_as_text(p: float, text: str) -> None:
    assert TTest(0.1, 0.1, 1.0, p, 5).p_text() == text


def test_a_score_that_is_no_number_is_no_finding() -> None:
    test = paired_t([0.9, math.nan, 0.8], [0.8, 0.7, 0.7])
    assert test.verdict() == "tie"
    assert test.p_text() == "not known"


@pytest.mark.parametrize(("ours", "theirs"), [([1.0], [1.0]), ([], []), ([1.0, 2.0], [1.0]), ([[1.0, 2.0]] * 2,) * 2])
def test_too_few_or_unpaired_scores_are_refused(ours: list, theirs: list) -> None:
    with pytest.raises(ValueError, match="at least 2 scores on the same seeds"):
        paired_t(ours, theirs)


@pytest.mark.parametrize(
    ("difference", "p", "words"),
    [(0.02, 0.01, "DRIFT is better"), (-0.02, 0.01, "DRIFT is worse"), (0.02, 0.4, "not significant")],
)
def test_wins_ties_and_losses_are_all_said(difference: float, p: float, words: str) -> None:
    text = TTest(difference, 0.01, 1.0, p, 10).in_words("DRIFT")
    assert words in text
    assert f"{100 * difference:+.2f}" in text


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_is_monotone_between_the_p_values_and_bonferroni(p_values: list[float]) -> None:
    found = holm(p_values)
    assert all(p <= q <= min(1.0, len(p_values) * p) for p, q in zip(p_values, found, strict=True))
    assert all(found[i] <= found[j] for i in range(len(found)) for j in range(len(found)) if p_values[i] < p_values[j])


def test_holm_by_hand() -> None:
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])


def test_holm_leaves_alone_what_is_not_known() -> None:
    assert holm([0.01, np.nan, 0.03]) == pytest.approx([0.03, np.nan, 0.06], nan_ok=True)


def test_welch_without_any_spread() -> None:
    assert welch_t([0.5, 0.5], [0.5, 0.5]).p == 1.0
    for ours, theirs in ((0.6, 0.5), (0.9, 0.8), (0.1, 0.3)):  # the mean of three equal numbers need not be one of them
        for seeds in (2, 3):
            assert np.isnan(welch_t([ours] * seeds, [theirs] * seeds).p)
