"""Whether one method is ahead of another, or it may be chance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class TTest:
    """Two methods: mean difference, its standard error, t, two-sided p, number of pairs; 0 of Welch's."""

    difference: float
    standard_error: float
    t: float
    p: float
    pairs: int

    def gap(self) -> str:
        """The difference in points with its standard error, for scores that are shares: "+0.15 ± 0.08"."""
        points = round(100 * self.difference, 2) + 0.0  # + 0.0 turns -0.0 into 0.0
        return f"{points:+.2f} ± {100 * self.standard_error:.2f}"

    def p_text(self) -> str:
        if math.isnan(self.p):
            return "not known"
        return "< 0.001" if self.p < 0.001 else f"{self.p:.3f}"

    def verdict(self, level: float = 0.05) -> str:
        """win, loss, or tie (not significant at this level)."""
        if not self.p < level:
            return "tie"
        return "win" if self.difference > 0 else "loss"


def without_spread(difference: float, *, pairs: int) -> TTest:
    """The same difference in every pair: t = 0 and p = 1 if there is none, else neither is known.

    Of a few hundred rows equal gaps are common, and t = ∞, p = 0 would call two such seeds sure.
    """
    same = math.isclose(difference, 0.0, abs_tol=1e-12)
    return TTest(0.0 if same else difference, 0.0, 0.0 if same else math.nan, 1.0 if same else math.nan, pairs)


def paired_t(ours: Sequence[float] | np.ndarray, theirs: Sequence[float] | np.ndarray) -> TTest:
    """Student's paired t-test of ours against theirs, seed by seed."""
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
