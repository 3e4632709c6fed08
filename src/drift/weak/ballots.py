"""Votes as distributions over the classes: which classes they favour or exclude, and how often they are right.

A vote names a class (1, 0, 0), has probabilities (0.7, 0.2, 0.1), excludes a class (0.5, 0.5, 0) or abstains (0, 0, 0).
"""

from collections.abc import Sequence

import numpy as np

from drift.weak.casting import ABSTAIN


def leaders(votes: np.ndarray) -> np.ndarray:
    """The classes with the largest vote of each row, `(..., C)`; none in a row of zeros, or if all classes tie.

    Several classes lead where others are excluded.
    """
    best = votes.max(-1, keepdims=True, initial=0.0)
    lead = np.isclose(votes, best, rtol=1e-6, atol=0) & (best > 0)
    return np.asarray(lead & ~lead.all(-1, keepdims=True))


def hard(votes: np.ndarray) -> np.ndarray:
    """The class with the largest vote in each row, `(N,)`; `ABSTAIN` where there is none, or several are largest."""
    lead = leaders(votes)
    return np.where(lead.sum(-1) == 1, lead.argmax(-1), ABSTAIN)


def exclusions(votes: np.ndarray) -> np.ndarray:
    """The class that each row excludes, `(...)`; `ABSTAIN` for none. With two classes, a vote is for the other one."""
    lead = leaders(votes)
    C = votes.shape[-1]
    return np.where((lead.sum(-1) == C - 1) & (C > 2), (~lead).argmax(-1), ABSTAIN)


def split(votes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Votes for classes and votes against them, both `(..., C)`; together they sum to 1 in each row with a vote.

    "Not j" with confidence p is a vote of p against j, and of 1 - p for j.
    """
    C = votes.shape[-1]
    excludes = exclusions(votes)[..., None] == np.arange(C)
    any_excluded = excludes.any(-1, keepdims=True)
    against = np.where(excludes, 1 - votes, 0.0)
    return np.where(any_excluded, np.where(excludes, votes, 0.0), votes), against


def right_share(votes: np.ndarray, labels: np.ndarray) -> float:
    """The mean probability that the class of a row is among those that its vote favours; NaN without votes.

    votes: of one source, `(n, C)`. labels: distributions, `(n, C)`.
    """
    lead = leaders(votes)
    voted = lead.any(-1) & labels.any(-1)
    return float((lead * labels).sum(-1)[voted].mean()) if voted.any() else float("nan")


def spoken(vote: np.ndarray, classes: Sequence[str]) -> str:
    """One vote in words: a class, "not" a class, several classes, or nothing. vote: `(C,)`."""
    excluded = int(exclusions(vote))
    if excluded != ABSTAIN:
        return f"not {classes[excluded]}"
    return " or ".join(name for name, leads in zip(classes, leaders(vote).tolist(), strict=True) if leads)
