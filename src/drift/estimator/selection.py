"""The start of `DriftClassifier`: soft labels for the pool, from experts weighted by their cross-fitted likelihood.

Experts: labels spread over graphs of nearest neighbours (see `GRAPHS`), and a linear classifier. Each predicts every
labelled row without using its label. The weights of the mixture maximise the likelihood of these predictions, with a
Dirichlet prior that keeps the weights equal while there are few labels.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from drift.estimator.neighbours import (
    FAR,
    NEAR,
    NEIGHBOURS,
    Neighbours,
    nearest,
    normalised,
    similarities,
    spread_labels,
)

GRAPHS = {
    "4 neighbours": (4, NEAR),
    "8 neighbours": (8, NEAR),
    "16 neighbours": (16, NEAR),
    "clusters": (8, FAR),
}
POWERS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # sharpening of an expert's probabilities, chosen by likelihood
PRIOR_COUNT = 0.5  # observations that the prior gives to each expert
EM_STEPS = 100
FOLDS = 10
MOST_CHECKED = 200  # labelled rows that are left out in turn
MOST_FITTED = 5000  # labelled rows of the linear classifier
SMALLEST_LIKELIHOOD = 0.01  # one row cannot decide


@dataclass(frozen=True)
class Expert:
    """Predictions of all rows `(n, C)`, and cross-fitted predictions of the checked labelled rows `(m, C)`."""

    name: str
    values: np.ndarray
    left_out: np.ndarray


@dataclass(frozen=True)
class Start:
    """Soft labels of rows of X, and what they are made of.

    rows: row numbers `(n,)`. targets: class probabilities `(n, C)`. neighbours: of these rows. weights: of the experts.
    """

    rows: np.ndarray
    targets: np.ndarray
    neighbours: Neighbours
    weights: dict[str, float]

    def __str__(self) -> str:
        return ", ".join(f"{name} {weight:.2f}" for name, weight in self.weights.items())


def make_start(
    X: Any, rows: np.ndarray, codes: np.ndarray, shares: np.ndarray, generator: np.random.Generator
) -> Start:
    """Soft labels for `rows`.

    X: the scaled rows, dense or CSR, `(n, features)`. rows: their numbers. codes: class index of each, or -1. shares:
    class shares among the labels, equal if every class has as many. generator: chooses the rows that are checked.
    """
    labeled = np.flatnonzero(codes >= 0)
    labels = codes[labeled]
    checked = np.sort(generator.permutation(len(labeled))[:MOST_CHECKED])
    neighbours = nearest(X)
    experts = []
    for name, (k, reach) in GRAPHS.items():
        result = spread_labels(similarities(neighbours, k), labeled, labels, shares, checked, reach)
        experts.append(Expert(name, result.values, result.left_out))
    experts.append(linear_expert(X, labeled, labels, shares, checked, generator))
    experts = [sharpened(expert, labels[checked]) for expert in experts]
    weights = stacked([of_labels(expert.left_out, labels[checked]) for expert in experts])
    targets = sum(weight * expert.values for weight, expert in zip(weights, experts, strict=True))
    targets[labeled] = np.eye(len(shares))[labels]
    named = {expert.name: float(weight) for expert, weight in zip(experts, weights, strict=True)}
    return Start(rows, np.asarray(targets), neighbours, named)


def linear_expert(
    X: Any,
    rows: np.ndarray,
    labels: np.ndarray,
    shares: np.ndarray,
    checked: np.ndarray,
    generator: np.random.Generator,
) -> Expert:
    """Logistic regression on the labelled rows, cross-fitted over folds with the classes spread evenly."""
    classes = len(shares)
    used = np.sort(generator.permutation(len(rows))[:MOST_FITTED])
    used = np.union1d(used, np.unique(labels, return_index=True)[1])  # every class stays
    by_class = np.lexsort((generator.random(len(rows)), labels))
    fold = np.empty(len(rows), dtype=int)
    fold[by_class] = np.arange(len(rows)) % min(FOLDS, len(rows))

    def fitted(train: np.ndarray, at: Any) -> np.ndarray:
        p = np.zeros((at.shape[0], classes))
        present = np.unique(labels[train])
        if len(present) < 2:
            p[:, present] = 1.0
        else:
            model = LogisticRegression(max_iter=300).fit(X[rows[train]], labels[train])
            p[:, model.classes_] = model.predict_proba(at)
        return normalised(p, shares)

    left_out = np.empty((len(checked), classes))
    for number in np.unique(fold[checked]):
        inside = fold[checked] == number
        left_out[inside] = fitted(used[fold[used] != number], X[rows[checked[inside]]])
    return Expert("linear", fitted(used, X), left_out)


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
