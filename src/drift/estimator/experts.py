"""Experts for the start of `DriftClassifier`: what each of several simple models predicts for every row.

Each also predicts labelled rows without using their labels, so that experts can be compared.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from drift.estimator.gaussian import class_probabilities, projected
from drift.estimator.neighbours import NEIGHBOURS, Neighbours, normalised, similarities, spread_labels

FOLDS = 10
MOST_CHECKED = 200  # labelled rows that are left out in turn
MOST_FITTED = 5000  # labelled rows of the linear classifier and the Gaussians

Model = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Predicts all rows, `(n, K)`, from labelled rows, their classes 0 to K - 1, each with a label, and shares `(K,)`."""


@dataclass(frozen=True)
class Expert:
    """Predictions of all rows `(n, C)`, and those of the checked labelled rows without their labels `(m, C)`."""

    name: str
    values: np.ndarray
    left_out: np.ndarray


@dataclass(frozen=True)
class Labels:
    """rows: the labelled rows. codes: their class indices. shares: of the classes, `(C,)`.

    checked: positions of the labelled rows that are predicted without their label, `(m,)`.
    """

    rows: np.ndarray
    codes: np.ndarray
    shares: np.ndarray
    checked: np.ndarray

    @classmethod
    def of(cls, codes: np.ndarray, shares: np.ndarray, generator: np.random.Generator) -> "Labels":
        """codes: class index of every row, or -1."""
        rows = np.flatnonzero(codes >= 0)
        return cls(rows, codes[rows], shares, np.sort(generator.permutation(len(rows))[:MOST_CHECKED]))


def all_experts(X: Any, labels: Labels, neighbours: Neighbours, generator: np.random.Generator) -> Iterator[Expert]:
    """Labels spread over graphs of nearest neighbours, a mixture of Gaussians, and logistic regression.

    X: the scaled rows, dense or CSR. generator: for folds and projection.
    """
    for k in NEIGHBOURS:
        spread = spread_labels(similarities(neighbours, k), labels.rows, labels.codes, labels.shares, labels.checked)
        yield Expert(f"{k} neighbours", spread.values, spread.left_out)
    Z = projected(X, int(generator.integers(2**31)))

    def linear(rows: np.ndarray, codes: np.ndarray, shares: np.ndarray) -> np.ndarray:
        return np.asarray(LogisticRegression(max_iter=300).fit(X[rows], codes).predict_proba(X))

    def gaussian(rows: np.ndarray, codes: np.ndarray, shares: np.ndarray) -> np.ndarray:
        return class_probabilities(Z, rows, codes, shares)

    yield cross_fitted("linear", linear, labels, generator)
    yield cross_fitted("gaussian", gaussian, labels, generator)


def cross_fitted(name: str, model: Model, labels: Labels, generator: np.random.Generator) -> Expert:
    """The expert of a model, cross-fitted over folds with the classes spread evenly."""
    codes, shares, checked = labels.codes, labels.shares, labels.checked
    used = np.sort(generator.permutation(len(codes))[:MOST_FITTED])
    used = np.union1d(used, np.unique(codes, return_index=True)[1])  # every class stays
    by_class = np.lexsort((generator.random(len(codes)), codes))
    fold = np.empty(len(codes), dtype=int)
    fold[by_class] = np.arange(len(codes)) % min(FOLDS, len(codes))

    def predictions(train: np.ndarray, at: np.ndarray | slice) -> np.ndarray:
        """Probabilities of rows `at`. Classes without a label in `train` get almost none."""
        present, position = np.unique(codes[train], return_inverse=True)
        if len(present) < 2:
            found = np.ones((1, 1))
        else:
            found = model(labels.rows[train], position, shares[present] / shares[present].sum())[at]
        p = np.zeros((len(found), len(shares)))
        p[:, present] = found
        return normalised(p, shares)

    left_out = np.empty((len(checked), len(shares)))
    for number in np.unique(fold[checked]):
        inside = fold[checked] == number
        left_out[inside] = predictions(used[fold[used] != number], labels.rows[checked[inside]])
    return Expert(name, predictions(used, slice(None)), left_out)
