"""How good the model is, from the texts that were drawn at random, and whether more labels are worth it.

The audit goes through all texts in one random order, fixed at the beginning. The texts it has passed are a uniform
sample of all texts, however the others were chosen. For each, the prediction of heads that were not trained on its
label is compared with the label. With k of m right, the interval is Wilson's:

    (k + z²/2 ± z √(k (m - k)/m + z²/4)) / (m + z²)

The heads that judge a text were trained on four fifths of the labels, so the estimate is slightly low.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

LEVEL = 0.95
ENOUGH = 10  # audited labels before an estimate is shown
NARROW = 0.05  # half the width of an interval that decides
STEADY = 0.01  # share of predictions that change between two rounds of training when little is left to learn
LOOK_BACK = 3  # rounds


@dataclass(frozen=True)
class Estimate:
    """Accuracy on all texts. accuracy: None before there is an audited label. low, high: the 95 % interval.

    right, audited: what it is based on.
    """

    accuracy: float | None
    low: float
    high: float
    right: int
    audited: int

    def __str__(self) -> str:
        if self.accuracy is None:
            return "no estimate yet: no text of the random audit has a label and a prediction"
        return (
            f"{100 * self.accuracy:.0f} % (95 % interval {100 * self.low:.0f} to {100 * self.high:.0f} %,"
            f" {self.audited} drawn at random)"
        )


@dataclass(frozen=True)
class Round:
    """One round of training. labels: trained on. changed: share of predictions that changed; None in the first."""

    labels: int
    accuracy: float | None
    low: float
    high: float
    changed: float | None

    def content(self) -> dict[str, Any]:
        return asdict(self)


def wilson(right: int, of: int, level: float = LEVEL) -> tuple[float, float]:
    """The interval for a share of which `right` of `of` were right; (0, 1) for none."""
    if not of:
        return 0.0, 1.0
    z = float(ndtri((1 + level) / 2))
    middle, spread = right + z * z / 2, z * np.sqrt(right * (of - right) / of + z * z / 4)
    return max(0.0, float((middle - spread) / (of + z * z))), min(1.0, float((middle + spread) / (of + z * z)))


def estimate(correct: np.ndarray) -> Estimate:
    """The estimate from audited texts. correct: whether the prediction was the label, `(m,)`."""
    right, of = int(np.sum(correct)), len(correct)
    return Estimate(right / of if of else None, *wilson(right, of), right, of)


def advice(now: Estimate, rounds: list[Round], target: float | None = None) -> tuple[str, str]:
    """What to do next: one of "early", "go on", "level" and "enough", and a sentence that says why."""
    if now.accuracy is None or now.audited < ENOUGH:
        missing = ENOUGH - now.audited
        return "early", f"Too early to say: an estimate needs {missing} more drawn at random."
    if target is not None and now.low >= target:
        return "enough", f"Good enough: even the low end of the interval is above {100 * target:.0f} %."
    changes = [each.changed for each in rounds[-LOOK_BACK:] if each.changed is not None]
    wide = now.high - now.low > 2 * NARROW
    if len(changes) == LOOK_BACK and max(changes) <= STEADY:
        more = " More of them at random would only narrow the interval." if wide else ""
        return "level", f"Levelling off: the last {LOOK_BACK} rounds changed at most 1 % of the predictions.{more}"
    if changes:
        return "go on", f"Keep going: the last round changed {100 * changes[-1]:.1f} % of the predictions."
    return "go on", "Keep going: the model has just begun to learn."
