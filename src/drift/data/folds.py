"""Cross-fitting: which labels each trial leaves out, so that every label is judged by models not trained on it."""

import numpy as np

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
