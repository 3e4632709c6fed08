"""Statistical tests: whether one method is better than another."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class TTest:
    """A test of two methods: mean difference, its standard error, t, two-sided p, and pairs (0 for Welch's test)."""

    difference: float
    standard_error: float
    t: float
    p: float
    pairs: int

    def gap(self) -> str:
        """The difference in percentage points with its standard error: "+0.15 ± 0.08"."""
        points = round(100 * self.difference, 2) + 0.0  # + 0.0 turns -0.0 into 0.0
        return f"{points:+.2f} ± {100 * self.standard_error:.2f}"

    def p_text(self) -> str:
        if math.isnan(self.p):
            return "not known"
        return "< 0.001" if self.p < 0.001 else f"{self.p:.3f}"

    def in_words(self, name: str) -> str:
        """Difference and p, and what they say about the method `name`."""
        meaning = {
            "win": f"{name} is better, and chance alone would rarely do that",
            "loss": f"{name} is worse, and chance alone would rarely do that",
            "tie": "the difference is not significant",
        }[self.verdict()]
        return f"{self.gap()} points ({self.p_words()}, {self.pairs} pairs): {meaning}"

    def p_words(self) -> str:
        return f"p = {self.p_text()}" if self.p >= 0.001 else f"p {self.p_text()}"

    def verdict(self, level: float = 0.05) -> str:
        """win, loss, or tie (not significant at this level)."""
        if not self.p < level:
            return "tie"
        return "win" if self.difference > 0 else "loss"


def without_spread(difference: float, *, pairs: int) -> TTest:
    """The test if the difference is the same in every pair: t = 0 and p = 1 if it is 0, otherwise both are unknown.

    Equal differences are common on a few hundred rows; t = ∞ and p = 0 would take two such seeds for certainty.
    """
    same = math.isclose(difference, 0.0, abs_tol=1e-12)
    return TTest(0.0 if same else difference, 0.0, 0.0 if same else math.nan, 1.0 if same else math.nan, pairs)


def paired_t(ours: Sequence[float] | np.ndarray, theirs: Sequence[float] | np.ndarray) -> TTest:
    """Student's paired t-test of ours against theirs, paired by seed."""
    a, b = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    if a.shape != b.shape or a.ndim != 1 or len(a) < 2:
        raise ValueError(
            f"a paired test needs two rows of at least 2 scores on the same seeds; got {a.shape} and {b.shape}"
        )
    gap = a - b
    error = float(gap.std(ddof=1)) / math.sqrt(len(gap))
    if math.isclose(error, 0.0, abs_tol=1e-12):
        return without_spread(float(gap.mean()), pairs=len(gap))
    test = stats.ttest_rel(a, b)
    return TTest(float(gap.mean()), error, float(test.statistic), float(test.pvalue), len(gap))


def welch_t(ours: Sequence[float], theirs: Sequence[float]) -> TTest:
    """Welch's t-test, which needs no pairs and no equal variances, as a test of 0 pairs."""
    difference = float(np.mean(ours) - np.mean(theirs))
    error = math.sqrt(np.var(ours, ddof=1) / len(ours) + np.var(theirs, ddof=1) / len(theirs))
    if math.isclose(error, 0.0, abs_tol=1e-12):
        return without_spread(difference, pairs=0)
    test = stats.ttest_ind(ours, theirs, equal_var=False)
    return TTest(difference, error, float(test.statistic), float(test.pvalue), 0)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: the k-th smallest of m p-values times m - k + 1, never below a smaller one's, at most 1.

    One that is not known, nan, stays so and counts among the m.
    """
    corrected = [math.nan] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(np.argsort(p_values, kind="stable")):
        if not math.isnan(p_values[index]):
            highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
            corrected[index] = highest
    return corrected
