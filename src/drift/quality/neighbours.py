"""Nearest neighbours of vectors, block by block: near-copies and outliers from one pass."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

ROWS, COLUMNS = 1024, 8192  # of a block of similarities: 32 MB
NEIGHBOURS = 10


@dataclass(frozen=True)
class Nearest:
    """The nearest other rows of each row. rows: `(n, k)`, the nearest first; cosine: of the two vectors, `(n, k)`."""

    rows: np.ndarray
    cosine: np.ndarray

    def first(self, k: int) -> "Nearest":
        """The nearest k of them."""
        return Nearest(self.rows[:, :k], self.cosine[:, :k])


def nearest(vectors: np.ndarray, *, k: int = NEIGHBOURS, tick: Callable[[], None] = lambda: None) -> Nearest:
    """The k nearest rows of each row by cosine, exactly.

    All pairs are compared, so time grows with n² D; memory is linear in n. tick: called after each `ROWS` rows.
    """
    unit = unit_rows(vectors)
    count = len(unit)
    k = min(k, count - 1)
    rows, cosine = np.zeros((count, max(k, 0)), dtype=np.int64), np.zeros((count, max(k, 0)), dtype=np.float32)
    for start in range(0, count if k > 0 else 0, ROWS):
        block = unit[start : start + ROWS]
        best, where = np.full((len(block), 0), -2, dtype=np.float32), np.zeros((len(block), 0), dtype=np.int64)
        for first in range(0, count, COLUMNS):
            similar = block @ unit[first : first + COLUMNS].T
            own = np.arange(max(start, first), min(start + len(block), first + similar.shape[1]))
            similar[own - start, own - first] = -2  # not a neighbour of itself
            best, where = _merged(best, where, similar, first, k)
        rows[start : start + ROWS], cosine[start : start + ROWS] = where, best
        tick()
    return Nearest(rows, cosine)


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """The vectors at length 1, in float32; a zero vector stays zero."""
    vectors = np.asarray(vectors, dtype=np.float32)
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))


def _merged(
    best: np.ndarray, where: np.ndarray, similar: np.ndarray, first: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """The k best of those so far and of new columns, in falling order. first: number of the first new column."""
    take = min(k, similar.shape[1])
    columns = np.argpartition(-similar, take - 1, axis=1)[:, :take]
    best = np.concatenate([best, np.take_along_axis(similar, columns, 1)], 1)
    where = np.concatenate([where, columns + first], 1)
    order = np.argsort(-best, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(best, order, 1), np.take_along_axis(where, order, 1)


def outliers(near: Nearest, *, width: float = 4.0) -> tuple[np.ndarray, np.ndarray]:
    """Rows that are far from all others, the farthest first, and their mean cosine with their neighbours.

    A row is an outlier if that mean is more than `width` robust standard deviations (1.4826 MAD) below the median.
    """
    mean = near.cosine.mean(1) if near.cosine.size else np.zeros(len(near.rows))
    if not len(mean):
        return np.zeros(0, dtype=np.int64), mean
    middle = np.median(mean)
    spread = 1.4826 * np.median(np.abs(mean - middle))
    rows = np.flatnonzero(mean < middle - width * max(spread, 1e-6))
    order = np.argsort(mean[rows], kind="stable")
    return rows[order], mean[rows[order]]
