"""The power law: recovered where it holds, never negative; and the verdict."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.errors import LabelError
from drift.quality.crossfit import out_of_fold
from drift.quality.curves import EXPONENTS, Curve, Law, fit_law, learning_curve

SIZES = np.array([10, 22, 46, 100, 215, 464])


@given(st.sampled_from(list(EXPONENTS)), st.floats(0.1, 2), st.floats(0, 0.2))
def test_a_power_law_is_recovered(b: float, a: float, c: float) -> None:
    law = fit_law(SIZES, (c + a * SIZES**-b)[None])
    assert law.error(1000)[0] == pytest.approx(c + a * 1000**-b, abs=1e-3)


@given(st.integers(0, 1000))
def test_errors_of_a_law_are_never_negative_and_never_rise(seed: int) -> None:
    errors = np.random.default_rng(seed).uniform(size=(5, len(SIZES)))
    law = fit_law(SIZES, errors)
    ahead = np.stack([law.error(size) for size in (10, 100, 1000, 10_000)])
    assert (ahead >= 0).all()
    assert (np.diff(ahead, axis=0) <= 1e-12).all()


def test_a_curve_of_separated_classes_says_that_more_labels_hardly_help() -> None:
    codes = np.arange(90) % 3
    x = 6 * np.eye(3)[codes] + np.random.default_rng(0).normal(size=(90, 3))
    ticks: list[int] = []
    drawn = learning_curve(x, codes, 3, name="table", tick=lambda: ticks.append(1))
    assert len(ticks) == 20
    assert drawn.verdict.startswith("more labels would hardly help")
    assert [point.labels for point in drawn.points if not point.measured] == [90, 180, 360]
    assert all(point.low <= point.high for point in drawn.points)


@pytest.mark.parametrize(
    ("gain", "start"),
    [((0.05, 0.02, 0.08), "more labels would help"), ((0.02, 0.0, 0.05), "more labels may help")],
)
def test_the_verdict_follows_the_interval(gain: tuple[float, float, float], start: str) -> None:
    law = Law(np.array(1), np.array(1), np.array(0))
    assert Curve("table", 50, 2, [], law, gain).verdict.startswith(start)


def test_too_few_labels_are_refused() -> None:
    with pytest.raises(LabelError, match="table has 6 labels of 2 classes"):
        learning_curve(np.zeros((6, 2)), np.arange(6) % 2, 2, name="table")


def test_copies_are_no_curve_and_tell_nothing_about_each_other() -> None:
    copies, codes = np.ones((40, 3)), np.arange(40) % 2
    with pytest.raises(LabelError, match="only 1 rows with a label in copies are different; a curve takes 30"):
        learning_curve(copies, codes, 2, name="copies")
    np.testing.assert_array_equal(out_of_fold(copies, codes, 2, seed=0), np.full((40, 2), 0.5))
