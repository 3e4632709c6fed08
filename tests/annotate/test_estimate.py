"""The accuracy estimate: an interval that covers, and advice that follows from it."""

import numpy as np
import pytest
from scipy.stats import binomtest

from drift.annotate.estimate import Round, advice, estimate, wilson


@pytest.mark.parametrize(("right", "of"), [(0, 10), (3, 10), (19, 20), (20, 20), (47, 100)])
def test_the_interval_is_wilsons(right: int, of: int) -> None:
    expected = binomtest(right, of).proportion_ci(0.95, method="wilson")
    assert wilson(right, of) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize("accuracy", [0.6, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("audited", [10, 20, 40, 80])
def test_it_covers_the_true_accuracy(accuracy: float, audited: int) -> None:
    generator = np.random.default_rng(0)
    right = generator.binomial(audited, accuracy, size=4000)
    intervals = np.array([wilson(int(count), audited) for count in right])
    covered = ((intervals[:, 0] <= accuracy) & (accuracy <= intervals[:, 1])).mean()
    assert covered >= 0.9


def test_no_audit_is_no_estimate() -> None:
    at = estimate(np.array([], dtype=bool))
    assert (at.accuracy, at.low, at.high) == (None, 0.0, 1.0)
    assert "no estimate" in str(at)
    assert advice(at, [])[0] == "early"


def rounds(*changed: float) -> list[Round]:
    return [Round(10 * at, 0.9, 0.8, 1.0, share) for at, share in enumerate(changed)]


def test_advice() -> None:
    good = estimate(np.arange(100) > 2)
    assert advice(estimate(np.ones(9, dtype=bool)), rounds(0.0, 0.0, 0.0))[0] == "early"
    assert advice(good, rounds(0.2, 0.1, 0.05)) == (
        "go on",
        "Keep going: the last round changed 5.0 % of the predictions.",
    )
    assert advice(good, rounds(0.2, 0.01, 0.005, 0.002))[0] == "level"
    assert advice(good, rounds(0.2, 0.1, 0.05), target=0.9)[0] == "enough"
    assert advice(good, rounds(0.2, 0.1, 0.05), target=0.95)[0] == "go on"
