"""Labels spread over graphs of nearest neighbours, with an exact leave-one-out estimate for the labelled rows.

    F = (1 - a) Σ_t a^t S^t Y = (1 - a) (I - a S)^-1 Y,   S = D^-1/2 A D^-1/2

a: reach, below 1; the higher, the further labels spread. A: symmetric weights between neighbours, `(n, n)`, sparse. Y:
indicators of the labels, `(n, C)`. F is linear in Y, so the values of a row without its own label are F minus the row's
influence on itself.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

NEIGHBOURS = (4, 8, 16, 32)  # one graph per number: which one is best depends on the data
REACH = 0.95  # of labels: the mean path has about 1 / (1 - REACH) steps
MOST_ITERATIONS, TOLERANCE = 300, 1e-6
SHARPNESS = 3.0  # the weight of the last neighbour is about exp(-3)
COLUMNS_AT_ONCE = 64
SMALLEST = 1e-12


@dataclass(frozen=True)
class Neighbours:
    """The nearest neighbours of every row, nearest first. distances, indices: `(n, k)`."""

    distances: np.ndarray
    indices: np.ndarray


def nearest(X: Any, most: int = max(NEIGHBOURS)) -> Neighbours:
    """The `most` nearest other rows of every row, or all of them if there are fewer. X: dense or CSR."""
    search = NearestNeighbors(n_neighbors=min(most, X.shape[0] - 1)).fit(X)
    return Neighbours(*search.kneighbors())


def similarities(neighbours: Neighbours, k: int) -> sparse.csr_matrix:
    """S for the graph of the k nearest neighbours, with weights exp(-3 d_ij² / (s_i s_j)).

    s_i is the distance of row i to its k-th neighbour, so that dense and sparse regions are treated alike.
    """
    d, i = neighbours.distances[:, :k], neighbours.indices[:, :k]
    n, k = d.shape
    s = np.maximum(d[:, -1], SMALLEST)
    weights = np.exp(-SHARPNESS * np.minimum(d**2 / (s[:, None] * s[i]), 1.0))
    one_way = sparse.csr_matrix((weights.ravel(), i.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    both_ways = one_way.maximum(one_way.T)
    root = sparse.diags(1.0 / np.sqrt(np.maximum(np.asarray(both_ways.sum(axis=1)).ravel(), SMALLEST)))
    return sparse.csr_matrix(root @ both_ways @ root)


def spread(S: sparse.csr_matrix, Y: np.ndarray, reach: float = REACH) -> np.ndarray:
    """F for these columns of Y, by the method of conjugate gradients for all columns at once."""
    F = np.zeros_like(Y)
    residual = (1 - reach) * Y
    direction, size = residual.copy(), np.square(residual).sum(axis=0)
    enough = TOLERANCE**2 * size
    for _ in range(MOST_ITERATIONS):
        if (size <= enough).all():
            break
        image = direction - reach * (S @ direction)
        step = size / np.maximum((direction * image).sum(axis=0), np.finfo(float).tiny)
        F += step * direction
        residual -= step * image
        before, size = size, np.square(residual).sum(axis=0)
        direction = residual + size / np.maximum(before, np.finfo(float).tiny) * direction
    return F


def self_influence(S: sparse.csr_matrix, rows: np.ndarray, reach: float = REACH) -> np.ndarray:
    """What the label of each row contributes to its own value of F, `(len(rows),)`."""
    influence = np.empty(len(rows))
    for start in range(0, len(rows), COLUMNS_AT_ONCE):
        part = rows[start : start + COLUMNS_AT_ONCE]
        columns = np.zeros((S.shape[0], len(part)))
        columns[part, np.arange(len(part))] = 1.0
        influence[start : start + COLUMNS_AT_ONCE] = spread(S, columns, reach)[part, np.arange(len(part))]
    return influence


@dataclass(frozen=True)
class Spread:
    """Class values of all rows `(n, C)`, and those of the checked labelled rows without their own label `(m, C)`."""

    values: np.ndarray
    left_out: np.ndarray


def spread_labels(
    S: sparse.csr_matrix, rows: np.ndarray, labels: np.ndarray, shares: np.ndarray, checked: np.ndarray
) -> Spread:
    """Spread labels over a graph: the mean influence of the labels of each class, times the share of the class.

    rows, labels: the labelled rows and their class indices. shares: class shares `(C,)`. checked: positions in `rows`
    of those that are left out in turn.
    """
    Y = np.zeros((S.shape[0], len(shares)))
    Y[rows, labels] = 1.0
    sums, counts = np.maximum(spread(S, Y), 0.0), Y.sum(axis=0)
    own = np.zeros((len(checked), len(shares)))
    own[np.arange(len(checked)), labels[checked]] = 1.0
    left_sums = np.maximum(sums[rows[checked]] - own * self_influence(S, rows[checked])[:, None], 0.0)
    left_counts = counts - own
    values = sums / np.maximum(counts, 1.0) * shares
    return Spread(normalised(values, shares), normalised(left_sums / np.maximum(left_counts, 1.0) * shares, shares))


def normalised(values: np.ndarray, shares: np.ndarray, smoothing: float = 1e-3) -> np.ndarray:
    """Rows with sum 1, mixed with a little of the class shares; rows that no label reached get the shares."""
    total = values.sum(axis=1, keepdims=True)
    p = np.where(total > 0, values / np.maximum(total, np.finfo(float).tiny), shares)
    return np.asarray((1 - smoothing) * p + smoothing * shares)
