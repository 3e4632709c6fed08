"""Two moons: the data of the paper's first example, drawn separately for every seed."""

from dataclasses import dataclass

import numpy as np
import torch
from sklearn.datasets import make_moons
from torch import Tensor


@dataclass(frozen=True)
class Moons:
    """Points `(n, 2)` and classes `(n,)`; `y_unlabeled` is never trained on."""

    x_labeled: Tensor
    y_labeled: Tensor
    x_unlabeled: Tensor
    y_unlabeled: Tensor
    x_test: Tensor
    y_test: Tensor


def two_moons(*, seed: int, noise: float, labeled: int = 12, unlabeled: int = 500, test: int = 250) -> Moons:
    """Draw points in three disjoint parts.

    labeled, unlabeled, test: points per class; the paper has 12 labelled and 500 unlabelled. noise: standard deviation.

    The paper does not say on which points accuracy is measured. Here test points are separate from both other parts.
    """
    counts = np.array([labeled, unlabeled, test])
    X, y = make_moons(n_samples=(counts.sum(), counts.sum()), noise=noise, random_state=seed)
    of_class = [np.split(np.flatnonzero(y == c), counts.cumsum()[:-1]) for c in (0, 1)]
    tensors = []
    for part in range(3):
        rows = np.concatenate([parts[part] for parts in of_class])
        tensors += [torch.tensor(X[rows], dtype=torch.float32), torch.tensor(y[rows])]
    return Moons(*tensors)
