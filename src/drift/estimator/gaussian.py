"""A semi-supervised Gaussian mixture: one component per class, with a covariance that all classes share.

    log p_ic = log π_c + m_c' W^-1 x_i - m_c' W^-1 m_c / 2 + const,   p_ic = 1 for the label c of a labelled row

m_c: mean of the rows, weighted by p_ic. W: covariance around these means, shrunk towards a multiple of the identity. π:
class shares, which stay as they are. p and (m, W) are computed in turn, until p stays the same. The first means are
those of the labelled rows, and the first W is the covariance of all rows.
"""

from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.decomposition import TruncatedSVD

MOST_DIMENSIONS = 50
MOST_ROUNDS, TOLERANCE = 30, 1e-3  # of the mean absolute change of p
MOST_ROWS = 4000  # on which means and covariance are estimated
SHRINKAGE = 0.1


def projected(X: Any, seed: int) -> np.ndarray:
    """Rows of a dense or CSR matrix in at most `MOST_DIMENSIONS` dimensions, dense: its principal components."""
    if X.shape[1] > MOST_DIMENSIONS:
        X = TruncatedSVD(min(MOST_DIMENSIONS, *X.shape), random_state=seed).fit_transform(X)
    return np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=np.float64)


def class_probabilities(Z: np.ndarray, rows: np.ndarray, labels: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Class probabilities of all rows, `(n, C)`.

    Z: `(n, d)`. rows, labels: the labelled rows and their class indices; each class has one. shares: π, `(C,)`.
    """
    others = np.setdiff1d(np.arange(len(Z)), rows, assume_unique=True)
    step = max(1, -(-len(others) // MOST_ROWS))
    x = np.concatenate([Z[rows], Z[others[::step]]])
    given = np.eye(len(shares))[labels]
    p = np.concatenate([given, np.zeros((len(x) - len(given), len(shares)))])
    total = np.atleast_2d(np.cov(x.T, bias=True))
    for _ in range(MOST_ROUNDS):
        before = p
        discriminant = _discriminant(x, p, total, shares)
        p = softmax(x @ discriminant[0] + discriminant[1], axis=1)
        p[: len(given)] = given
        if np.abs(p - before).mean() < TOLERANCE:
            break
    return np.asarray(softmax(Z @ discriminant[0] + discriminant[1], axis=1))


def _discriminant(x: np.ndarray, p: np.ndarray, total: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights `(d, C)` and biases `(C,)` of the logits. total: covariance of all rows, `(d, d)`."""
    mass = np.maximum(p.sum(axis=0), np.finfo(float).tiny)
    means = (p.T @ x) / mass[:, None]
    within = total
    if p.any(axis=1).all():  # not in the first round, where most rows belong to no class
        centred = means - x.mean(axis=0)
        within = total - (centred.T * (mass / len(x))) @ centred
    size = np.trace(within) / len(within)
    within = (1 - SHRINKAGE) * within + SHRINKAGE * max(size, np.finfo(float).tiny) * np.eye(len(within))
    weights = np.linalg.solve(within, means.T)
    return weights, np.log(shares) - (means.T * weights).sum(axis=0) / 2
