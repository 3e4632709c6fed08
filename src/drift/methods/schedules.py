"""Weights that rise over the first steps of the second phase."""

import math


def ramp(step: int, length: int) -> float:
    """exp(-5 (1 - t)²), t = step / length up to 1."""
    return math.exp(-5 * (1 - min(1.0, step / length)) ** 2) if length else 1.0
