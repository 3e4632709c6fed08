"""Two moons: the paper's warm-up data, drawn anew for every seed."""

from dataclasses import dataclass

import numpy as np
import torch
from sklearn.datasets import make_moons
from torch import Tensor


@dataclass(frozen=True)
class Moons:
    """Points `(n, 2)` and classes `(n,)`; unlabelled classes are kept for measuring only."""

    x_labeled: Tensor
    y_labeled: Tensor
    x_unlabeled: Tensor
    y_unlabeled: Tensor
    x_test: Tensor
    y_test: Tensor


def two_moons(*, seed: int, noise: float, labeled: int = 12, unlabeled: int = 500, test: int = 250) -> Moons:
    """Draw so many points a class; the three parts are disjoint. The paper has 12 labelled and 500 unlabelled.

    Differs from paper: it does not say what accuracy is measured on; we draw test points apart from both.
    """
    counts = np.array([labeled, unlabeled, test])
    X, y = make_moons(n_samples=(counts.sum(), counts.sum()), noise=noise, random_state=seed)
    of_class = [np.split(np.flatnonzero(y == c), counts.cumsum()[:-1]) for c in (0, 1)]
    tensors = []
    for part in range(3):
        rows = np.concatenate([parts[part] for parts in of_class])
        tensors += [torch.tensor(X[rows], dtype=torch.float32), torch.tensor(y[rows])]
    return Moons(*tensors)
