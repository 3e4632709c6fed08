"""Out-of-fold probabilities: every label is judged by a linear classifier, and by neighbours, that did not see it."""

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from drift.data.folds import FOLDS
from drift.errors import LabelError
from drift.quality.neighbours import Nearest, nearest

STRENGTHS = (0.001, 0.01, 0.1, 1.0)  # of LogisticRegression (C), on standardised vectors
SAMPLE = 4000  # rows to choose the strength on
MOST_STEPS = 300
VOTERS = 30  # neighbours that vote on a label
COPY = 0.9999  # cosine from which a neighbour is a copy: a wrong label that was copied must not support itself
SMOOTHING = 0.1  # votes that every class has


def judged(
    vectors: np.ndarray,
    codes: np.ndarray,
    classes: int,
    *,
    seed: int,
    near: Nearest | None = None,
    tick: Callable[[], None] = lambda: None,
) -> np.ndarray:
    """Probabilities `(n, C)` of each row's class without its own label: the mean of `out_of_fold` and `votes`.

    Either finds errors that the other misses; on AG News with flipped labels their mean has a higher precision and
    recall than each of them.

    near: the `VOTERS` nearest neighbours, if they are known. The others are as for `out_of_fold`.
    """
    linear = out_of_fold(vectors, codes, classes, seed=seed, tick=tick)
    near = nearest(vectors, k=VOTERS) if near is None else near
    return np.asarray((linear + votes(near, codes, classes)) / 2)


def votes(near: Nearest, codes: np.ndarray, classes: int) -> np.ndarray:
    """Shares of the classes among the neighbours of each row, `(n, C)`; nearer ones count more, copies not at all.

    The weight of a neighbour is exp(-d/g): d is the difference of its cosine from that of the nearest one, g the median
    of this difference for the farthest.
    """
    if not near.rows.size:
        return np.full((len(codes), classes), 1 / classes)
    behind = near.cosine[:, :1] - near.cosine
    weights = np.exp(-behind / max(float(np.median(behind[:, -1])), 1e-6)) * (near.cosine < COPY)
    counts = np.full((len(codes), classes), SMOOTHING)
    for code in range(classes):
        counts[:, code] += (weights * (codes[near.rows] == code)).sum(1)
    return np.asarray(counts / counts.sum(1, keepdims=True))


def out_of_fold(
    vectors: np.ndarray,
    codes: np.ndarray,
    classes: int,
    *,
    seed: int,
    folds: int = FOLDS,
    tick: Callable[[], None] = lambda: None,
) -> np.ndarray:
    """Probabilities `(n, C)` of logistic regressions that were trained on the other folds.

    The strength of the penalty is the one with the lowest log loss out of fold, on at most `SAMPLE` rows. Copies of a
    vector are in the same fold, so that a wrong label that was copied with its text does not support itself. Time and
    memory are linear in the rows.

    vectors: `(n, D)`. codes: class indices `(n,)`, none missing. seed: of the folds. tick: called after each fold.
    """
    folds = min(folds, len(codes))
    if folds < 2 or len(np.unique(codes)) < 2:
        raise LabelError(f"{len(codes)} labels of {len(np.unique(codes))} classes cannot be cross-fitted; give more")
    fold_of = folds_of(vectors, codes, folds, seed)
    strength = chosen_strength(vectors, codes, fold_of, classes, seed=seed)
    probabilities = np.zeros((len(codes), classes))
    for fold in range(folds):
        held = fold_of == fold
        if held.any():  # not with fewer different rows than folds
            probabilities[held] = fitted(vectors[~held], codes[~held], vectors[held], classes, strength)
        tick()
    return probabilities


def fitted(
    vectors: np.ndarray, codes: np.ndarray, others: np.ndarray, classes: int, strength: float = 0.01
) -> np.ndarray:
    """Probabilities `(m, C)` of other rows, from a logistic regression on these.

    A class without labels has 0; without any label, all classes are equal.
    """
    from sklearn.linear_model import LogisticRegression

    probabilities = np.zeros((len(others), classes))
    known = np.unique(codes)
    if not len(known):  # all rows are copies of each other, so that each fold holds all or none
        probabilities[:] = 1 / classes
        return probabilities
    if len(known) == 1:
        probabilities[:, known[0]] = 1
        return probabilities
    mean, scale = vectors.mean(0), vectors.std(0)
    scale[scale < 1e-6] = 1  # a constant feature must not blow up on another row
    model = LogisticRegression(C=strength, max_iter=MOST_STEPS, tol=1e-3)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the last steps to convergence do not change which rows are suspected
        model.fit((vectors - mean) / scale, codes)
    probabilities[:, known] = model.predict_proba((others - mean) / scale)
    return probabilities


def folds_of(vectors: np.ndarray, codes: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """The fold of each row, `(n,)`: stratified by class; copies of a vector share a fold."""
    generator = np.random.default_rng(seed)
    copies = copies_of(vectors)
    first = np.zeros(copies.max() + 1, dtype=np.int64)
    first[copies[::-1]] = codes[::-1]  # the label of the first copy
    shuffled = generator.permutation(len(first))
    ordered = shuffled[np.argsort(first[shuffled], kind="stable")]
    fold_of = np.empty(len(first), dtype=np.int64)
    fold_of[ordered] = np.arange(len(first)) % folds
    return np.asarray(fold_of[copies])


def copies_of(vectors: np.ndarray) -> np.ndarray:
    """A number for each distinct row, `(n,)`."""
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in vectors])


def chosen_strength(vectors: np.ndarray, codes: np.ndarray, fold_of: np.ndarray, classes: int, *, seed: int) -> float:
    """The strength with the lowest log loss on one fold, trained on the others."""
    sample = np.random.default_rng(seed).permutation(len(codes))[:SAMPLE]
    vectors, codes, held = vectors[sample], codes[sample], fold_of[sample] == 0
    if not held.any() or held.all():
        return STRENGTHS[1]
    losses = {}
    for strength in STRENGTHS:
        with suppress(ValueError):
            predicted = fitted(vectors[~held], codes[~held], vectors[held], classes, strength)
            right = predicted[np.arange(held.sum()), codes[held]]
            losses[strength] = float(-np.log(np.maximum(right, 1e-12)).mean())
    return min(losses, key=lambda strength: losses[strength])
