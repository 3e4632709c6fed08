"""Combine several sources of noisy labels into one soft weak label per row, and estimate how good each source is.

A source gives each row a vote, a distribution over the C classes: one class, probabilities, all classes but one, or
nothing (a row of zeros). See `drift.weak.sources`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from drift.errors import ConfigError, LabelError
from drift.weak.ballots import hard, leaders, right_share, split
from drift.weak.casting import ABSTAIN
from drift.weak.votes import label_model

Combining = Literal["auto", "majority", "weighted", "dawid-skene", "label-model"]

ROUNDS, TOLERANCE = 100, 1e-4  # of expectation maximisation: at most, and until no posterior moves by more
ASSUMED_ACCURACY = 0.7  # of a source before anything is known of it
PRIOR_VOTES = 10.0  # votes that this assumption, or the average source, counts for
SHARED_ERRORS = 20.0  # votes of a class that a source's mean accuracy counts for in its confusion of that class
LEAST_ACCURACY, MOST_ACCURACY = 0.02, 0.98  # no finite number of votes shows that a source is never right or wrong
OVERLAP = 30  # rows with votes of two sources that are needed to estimate anything from their agreement
CLEARLY = 2.0  # standard errors by which one way to combine must be better on gold labels to be preferred
GOLD = 10  # votes on rows with a gold label from which the accuracy of a source is measured, not estimated


@dataclass(frozen=True)
class Combined:
    """Weak labels from several sources.

    probabilities: `(N, C)`; a row of zeros has no label. method: the one that was used, for a reader.
    accuracies: estimated share of right votes of each source, `(S,)`; NaN where nothing can be said.
    """

    probabilities: np.ndarray
    method: str
    accuracies: np.ndarray

    @property
    def codes(self) -> np.ndarray:
        """The most likely class of each row, `(N,)`; `ABSTAIN` where there is no label, or classes tie."""
        return hard(self.probabilities)


def combine(votes: Sequence[np.ndarray], *, method: Combining = "auto", gold: np.ndarray | None = None) -> Combined:
    """Combine the votes of S sources.

    votes: one array `(N, C)` per source. gold: known classes, `(N,)`, `ABSTAIN` for none; they help to estimate how
    good the sources are, and do not become labels here.

    auto: one source is taken as it is. Three or more are combined as by Dawid and Skene if they voted together often
    enough to compare them; two are weighted, because how often two sources agree does not tell which one is better.
    Sources that hardly overlap are combined by majority. If gold labels show that votes weighted by the accuracies on
    them are clearly better, as where sources copy each other, it is these.
    """
    if not len(votes):
        raise ConfigError("there is no source to combine")
    stacked = np.stack([np.asarray(each, dtype=np.float64) for each in votes])
    known = np.full(stacked.shape[1], ABSTAIN) if gold is None else np.asarray(gold)
    if not stacked.any():
        raise LabelError("no source has a vote for any row; check their columns, rules and class names")
    chosen = _chosen(stacked, known) if method == "auto" else method
    if chosen not in COMBINERS:
        raise ConfigError(f"{method!r} is no way to combine sources; use auto, {', '.join(COMBINERS)}")
    return COMBINERS[chosen](stacked, known)


def _chosen(votes: np.ndarray, gold: np.ndarray) -> str:
    if len(votes) == 1:
        return "majority"
    voted = votes.any(-1)
    overlapping = (voted.astype(float) @ voted.T >= OVERLAP) & ~np.eye(len(votes), dtype=bool)
    three = np.trace(np.linalg.matrix_power(overlapping.astype(int), 3)) > 0  # any three that overlap pairwise
    chosen = "dawid-skene" if three else "weighted" if overlapping.any() else "majority"
    judged = (gold != ABSTAIN) & voted.any(0)
    if judged.sum() < GOLD:
        return chosen
    # Without the gold labels themselves, which would always be right.
    without = hard(COMBINERS[chosen](votes, np.full(len(gold), ABSTAIN)).probabilities) == gold
    weighted = hard(weighted_vote(votes, gold).probabilities) == gold
    only_one = (without != weighted)[judged].sum()
    ahead = int(weighted[judged].sum()) - int(without[judged].sum())
    return "weighted" if ahead > CLEARLY * np.sqrt(only_one) else chosen


def majority_vote(votes: np.ndarray, gold: np.ndarray) -> Combined:
    """The mean of the votes of each row. votes: `(S, N, C)`."""
    return Combined(_normalised(votes.sum(0)), "majority", _agreement(votes, gold))


def weighted_vote(votes: np.ndarray, gold: np.ndarray) -> Combined:
    """The mean of the votes, weighted by the log odds of each source's accuracy a: log(a (C - 1) / (1 - a)).

    A vote against a class counts log(a / ((1 - a) (C - 1))) for each of the others. That is the most likely class if
    sources err independently, and evenly over the classes. Accuracies are estimated in turn with the labels, as in
    `dawid_skene`. Those of two sources that cannot be told apart are set equal.
    """
    C = votes.shape[-1]
    named, against = split(votes)
    assumed, covered = _assumed(votes), _covered(votes)
    accuracies = _agreement(votes, gold)
    labels = majority_vote(votes, gold).probabilities
    for _ in range(ROUNDS):
        accuracies = _indistinct(votes, accuracies, gold)
        a = np.clip(np.where(np.isnan(accuracies), assumed, accuracies), LEAST_ACCURACY, MOST_ACCURACY)
        odds = a / (1 - a)
        scores = np.einsum("s,snc->nc", np.log(odds * (C - 1)), named)
        if against.any():
            scores += np.einsum("s,snc->nc", np.log(odds / (C - 1)), against.sum(-1, keepdims=True) - against)
        before, labels = labels, _softmax(scores, covered)
        accuracies = _measured(votes, labels, gold)
        if np.abs(labels - before).max() < TOLERANCE:
            break
    return Combined(labels, "weighted vote", accuracies)


def _indistinct(votes: np.ndarray, accuracies: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """The accuracies of two sources, set equal if they differ by no more than chance; others as they are."""
    measured = (votes.any(-1) & (gold != ABSTAIN)).sum(-1) >= GOLD
    if len(votes) != 2 or np.isnan(accuracies).any() or measured.any():
        return accuracies
    mean, overlap = accuracies.mean(), votes.any(-1).all(0).sum()
    error = np.sqrt(mean * (1 - mean) / max(overlap, 1))
    return np.full(2, mean) if np.ptp(accuracies) <= CLEARLY * error else accuracies


def dawid_skene(votes: np.ndarray, gold: np.ndarray) -> Combined:
    """The posterior of each row's class under the model of Dawid and Skene (1979), by expectation maximisation.

    Each source s has a confusion matrix θ_s[k, j], the probability of the vote j where the class is k:

        p(k | row) ∝ π_k Π_s Π_j θ_s[k, j]^v_sj,   θ_s[k, j] ∝ Σ_rows p(k | row) v_sj + m θ'_s[k, j]

    with the vote v_s, which may be a distribution, and m = `SHARED_ERRORS`. θ'_s has the mean accuracy of the source on
    its diagonal and equal errors elsewhere, so that classes with few votes do not overfit. Votes against a class are
    further values of j, with a matrix of their own, which is right off its diagonal. Rows with a gold label have that
    class in place of the posterior. A row of zeros is an abstention, which says nothing.
    """
    C = votes.shape[-1]
    covered, assumed = _covered(votes), _assumed(votes)
    parts = [(part, right) for part, right in zip(split(votes), (np.eye(C), 1 - np.eye(C)), strict=True) if part.any()]
    labels = _with_gold(majority_vote(votes, gold).probabilities, gold)
    rows = covered | (gold != ABSTAIN)
    for _ in range(ROUNDS):
        counts = [np.einsum("nk,snj->skj", labels, part) for part, _ in parts]
        correct = sum((each * right).sum((1, 2)) for each, (_, right) in zip(counts, parts, strict=True))
        total = sum(each.sum((1, 2)) for each in counts)
        accuracy = ((correct + PRIOR_VOTES * assumed) / (total + PRIOR_VOTES))[:, None, None]
        prior = (labels[rows].sum(0) + 1) / (labels[rows].sum() + C)
        log_p = np.log(prior) * np.ones_like(labels)
        for each, (part, right) in zip(counts, parts, strict=True):
            even = accuracy * right / right.sum(-1, keepdims=True)
            even = even + (1 - accuracy) * (1 - right) / (1 - right).sum(-1, keepdims=True)
            theta = each + SHARED_ERRORS * even
            log_p += np.einsum("snj,skj->nk", part, np.log(theta / theta.sum(-1, keepdims=True)))
        before, labels = labels, _with_gold(_softmax(log_p, covered), gold)
        if np.abs(labels - before).max() < TOLERANCE:
            break
    accuracies = _measured(votes, labels, gold)
    return Combined(_softmax(log_p, covered), "Dawid-Skene", accuracies)


def snorkel(votes: np.ndarray, gold: np.ndarray) -> Combined:
    """Snorkel's label model, on the most likely class of each vote."""
    codes = np.stack([hard(each) for each in votes], axis=1)
    labels = label_model(codes, votes.shape[-1])
    probabilities = _one_hot(labels, votes.shape[-1])
    return Combined(probabilities, "label model", _measured(votes, probabilities, gold))


COMBINERS: dict[str, Callable[[np.ndarray, np.ndarray], Combined]] = {
    "majority": majority_vote,
    "weighted": weighted_vote,
    "dawid-skene": dawid_skene,
    "label-model": snorkel,
}


def _agreement(votes: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """The accuracy of each source against gold labels, or else against the mean of the other sources' votes, `(S,)`."""
    total = votes.sum(0)
    return np.array([_accuracy(own, _normalised(total - own), gold) for own in votes])


def _measured(votes: np.ndarray, labels: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """The accuracy of each source against soft labels, or against gold labels where it has enough of them, `(S,)`."""
    return np.array([_accuracy(own, labels, gold) for own in votes])


def _accuracy(own: np.ndarray, labels: np.ndarray, gold: np.ndarray) -> float:
    judged = leaders(own).any(-1) & (gold != ABSTAIN)
    if judged.sum() >= GOLD:
        return right_share(own[judged], _one_hot(gold[judged], own.shape[-1]))
    return right_share(own, labels)


def _assumed(votes: np.ndarray) -> np.ndarray:
    """The accuracy of each source before anything is known, `(S,)`: votes against a class are more easily right."""
    C = votes.shape[-1]
    against = split(votes)[1].sum((1, 2)) / np.maximum(votes.sum((1, 2)), 1e-9)
    return np.asarray(1 - (1 - ASSUMED_ACCURACY) * (1 - against * (C - 2) / max(C - 1, 1)))


def _with_gold(labels: np.ndarray, gold: np.ndarray) -> np.ndarray:
    known = gold != ABSTAIN
    if not known.any():
        return labels
    return np.asarray(np.where(known[:, None], _one_hot(gold, labels.shape[-1]), labels))


def _covered(votes: np.ndarray) -> np.ndarray:
    """Which rows have a vote of any source, `(N,)`. votes: `(S, N, C)`."""
    return np.asarray(votes.any(axis=(0, 2)))


def _one_hot(codes: np.ndarray, C: int) -> np.ndarray:
    return np.asarray((codes[:, None] == np.arange(C)).astype(np.float64))


def _normalised(votes: np.ndarray) -> np.ndarray:
    total = votes.sum(-1, keepdims=True)
    return np.asarray(np.divide(votes, total, out=np.zeros_like(votes), where=total > 1e-9))


def _softmax(scores: np.ndarray, covered: np.ndarray) -> np.ndarray:
    """The softmax of each row; zeros where no source votes."""
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(p / p.sum(-1, keepdims=True) * covered[:, None])
