"""The start of `DriftClassifier`: soft labels for the pool, from experts weighted by their cross-fitted likelihood.

The weights of the mixture maximise the likelihood of the labels, predicted without using them, with a Dirichlet prior
that keeps an expert from being dropped because of few labels.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from drift.estimator.experts import Expert, Labels, all_experts
from drift.estimator.neighbours import NEIGHBOURS, Neighbours, nearest
from drift.methods.shares import estimate_shares

POWERS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # sharpening of an expert's probabilities, chosen by likelihood
PRIOR_COUNT = 0.2  # observations that the prior gives to each expert
EM_STEPS = 100
SMALLEST_LIKELIHOOD = 0.01  # one row cannot decide


@dataclass(frozen=True)
class Start:
    """Soft labels of rows of X, and what they are made of.

    rows: row numbers `(n,)`. targets: class probabilities `(n, C)`. neighbours: of these rows. weights: of the experts.
    lifts: for each class, how well its labels are recognised without being seen, `(C,)`; see `class_lifts`.
    likelihood: mean log-likelihood of the labels, each predicted without being seen.
    divisor: of the features, `(features,)`, if the start prefers them divided by it.
    """

    rows: np.ndarray
    targets: np.ndarray
    neighbours: Neighbours
    weights: dict[str, float]
    lifts: np.ndarray
    likelihood: float
    divisor: np.ndarray | None = None

    def __str__(self) -> str:
        return ", ".join(f"{name} {weight:.2f}" for name, weight in self.weights.items())


def make_start(
    X: Any,
    rows: np.ndarray,
    codes: np.ndarray,
    shares: np.ndarray,
    generator: np.random.Generator,
    prior: np.ndarray | None = None,
) -> Start:
    """Soft labels for `rows`.

    X: the scaled rows, dense or CSR, `(n, features)`. rows: their numbers. codes: class index of each, or -1. shares:
    class shares among the labels, equal if every class has as many. generator: chooses the rows that are checked.
    prior: class shares of the rows, `(C,)`; None: estimated.
    """
    labels, neighbours = Labels.of(codes, shares, generator), nearest(X)
    checked = labels.codes[labels.checked]
    experts = [sharpened(expert, checked) for expert in all_experts(X, labels, neighbours, generator)]
    weights = stacked([of_labels(expert.left_out, checked) for expert in experts])
    mixture = np.asarray(sum(weight * expert.values for weight, expert in zip(weights, experts, strict=True)))
    targets = _unbiased(mixture, codes, shares) if prior is None else with_shares(mixture, shares, prior)
    targets[labels.rows] = np.eye(len(shares))[labels.codes]
    left_out = sum(weight * expert.left_out for weight, expert in zip(weights, experts, strict=True))
    lifts = class_lifts(np.asarray(left_out), checked, labels.codes, shares)
    named = {expert.name: float(weight) for expert, weight in zip(experts, weights, strict=True)}
    likelihood = float(np.log(of_labels(np.asarray(left_out), checked)).mean())
    return Start(rows, targets, neighbours, named, lifts, likelihood)


def with_shares(p: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Class probabilities `(n, C)` by models that took the class shares for `before`, if they are `after`: Bayes."""
    q = p * (after / before)
    return np.asarray(q / q.sum(axis=1, keepdims=True))


def _unbiased(p: np.ndarray, codes: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Soft labels `(n, C)` without the bias of labels that were chosen per class: their shares are not those of rows.

    Experts that are given as many labels of each class predict too many rows of rare classes. The class shares are
    estimated from these predictions. Labels that were drawn at random have the shares of the rows, and change nothing.
    codes: class index of each row, or -1.
    """
    estimate = estimate_shares(p[codes < 0], codes[codes >= 0])
    return with_shares(p, shares, np.array(estimate.values)) if estimate.labels_are == "per-class" else p


def of_labels(p: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The probability of each row's label, `(m,)`."""
    return np.asarray(np.maximum(p[np.arange(len(labels)), labels], SMALLEST_LIKELIHOOD))


def sharpened(expert: Expert, labels: np.ndarray) -> Expert:
    """The expert with its probabilities to the power that makes the left-out labels most likely."""

    def power(p: np.ndarray, b: float) -> np.ndarray:
        q = p**b
        return np.asarray(q / q.sum(axis=1, keepdims=True))

    best = max(POWERS, key=lambda b: np.log(of_labels(power(expert.left_out, b), labels)).sum())
    return Expert(expert.name, power(expert.values, best), power(expert.left_out, best))


def stacked(likelihoods: list[np.ndarray]) -> np.ndarray:
    """Weights of a mixture by EM. likelihoods: for each expert, the probability of every left-out label."""
    L = np.stack(likelihoods, axis=1)  # (m, experts)
    weights = np.full(L.shape[1], 1 / L.shape[1])
    for _ in range(EM_STEPS):
        posterior = weights * L
        posterior /= posterior.sum(axis=1, keepdims=True)
        weights = posterior.sum(axis=0) + PRIOR_COUNT
        weights /= weights.sum()
    return weights


def class_lifts(left_out: np.ndarray, checked: np.ndarray, labels: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Mean log of how much more likely a label's class is by its features than by the class shares alone, `(C,)`.

    0 or less for a class that is not recognised, -inf for one with a single label, because nothing is known of the
    class without it, and inf for one of which no label was checked, because there are many labels.

    left_out: predictions `(m, C)` of labels by models that were not given them. checked: their classes `(m,)`. labels:
    classes of all labels. shares: of the classes, `(C,)`.
    """
    counts = np.bincount(labels, minlength=len(shares))
    lifts = np.where(counts > 1, np.inf, -np.inf)
    gains = np.log(of_labels(left_out, checked) / shares[checked])
    for c in np.unique(checked[counts[checked] > 1]):
        lifts[c] = gains[checked == c].mean()
    return lifts


def near_labels(p: np.ndarray, start: Start, codes: np.ndarray) -> float:
    """How well predictions of the pool agree with the labels nearby: mean log-likelihood of the labels.

    Each labelled row gets the mean prediction of its nearest unlabelled neighbours. p: predictions `(n, C)` of the
    rows of `start`. codes: class index of each, or -1.
    """
    labeled = np.flatnonzero(codes >= 0)
    near = start.neighbours.indices[labeled, : NEIGHBOURS[0]]
    weight = (codes[near] < 0).astype(float)  # (m, k)
    known = weight.sum(axis=1) > 0
    if not known.any():
        return 0.0
    mean = (p[near] * weight[:, :, None]).sum(axis=1)[known] / weight.sum(axis=1)[known, None]
    return float(np.log(of_labels(mean, codes[labeled][known])).mean())
