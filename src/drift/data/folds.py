"""Cross-fitting: which labels each trial leaves out, so that every label is judged by models not trained on it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

FOLDS = 5


def left_out(labels: np.ndarray, trials: int, *, seed: int) -> np.ndarray | None:
    """Positions of the labels that each trial leaves out, `(trials, h)`; None if there are too few labels.

    Labels are sorted by class, in random order within a class, and a trial takes every K-th of them, K = `FOLDS` or
    fewer: so each class is left out in proportion, all trials leave out equally many, and trials s and s + K the same.
    The only label of a class is never left out.

    labels: class indices, `(m,)`. trials: number of trials; one trial leaves out nothing. seed: for the order.
    """
    counts = np.bincount(labels)
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    eligible = shuffled[counts[labels[shuffled]] > 1]
    eligible = eligible[np.argsort(labels[eligible], kind="stable")]
    folds = min(FOLDS, len(eligible), trials)
    if folds < 2:
        return None
    size = len(eligible) // folds
    return np.stack([eligible[trial % folds : folds * size : folds] for trial in range(trials)])


@dataclass(frozen=True)
class LeftOut:
    """Labels that were left out, each once, although several trials may have left it out.

    codes: class index of each, `(m,)`. which: position in `codes` of every label of every trial, `(trials * h,)`.
    """

    codes: np.ndarray
    which: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, labels: np.ndarray) -> "LeftOut":
        """rows, labels: row numbers and class indices of the labels that each trial left out, `(trials, h)`."""
        _, first, which = np.unique(rows, return_index=True, return_inverse=True)
        return cls(labels.reshape(-1)[first], which.reshape(-1))

    def mean(self, values: np.ndarray) -> np.ndarray:
        """The mean over the trials that left out the same label. values: `(trials * h, ...)`; returns `(m, ...)`."""
        total = np.zeros((len(self.codes), *values.shape[1:]))
        np.add.at(total, self.which, values)
        return np.asarray(total / np.bincount(self.which).reshape(-1, *[1] * (values.ndim - 1)))

    def combined(self, probabilities: np.ndarray) -> np.ndarray:
        """What the trials that left out the same label predict together: the softmax of their mean log p, `(m, C)`.

        For linear heads this is the prediction of their averaged head. probabilities: `(trials, h, C)`.
        """
        flat = probabilities.reshape(-1, probabilities.shape[-1])
        return np.asarray(softmax(self.mean(np.log(np.maximum(flat, np.finfo(np.float32).tiny))), axis=-1))

    def weights(self, shares: Sequence[Sequence[float]]) -> np.ndarray:
        """Weights of the labels, with sum 1, `(m,)`. Those of a class together weigh its share.

        Labels that were chosen per class would otherwise say too much of rare classes.

        shares: class shares, one entry per trial; without any, all labels weigh the same.
        """
        weights = np.ones(len(self.codes))
        if len(shares):
            weights = np.mean(shares, axis=0)[self.codes] / np.bincount(self.codes)[self.codes]
        return np.asarray(weights / weights.sum())
