"""Linear heads on fixed vectors."""

from collections import OrderedDict

import numpy as np
from torch import nn

from drift.models.dropout import Dropout

SMALLEST_SCALE = 1e-6
MANY = 20  # classes up to which the default weight decay was measured


def linear_head(features: int, classes: int, dropout: float = 0.0) -> nn.Sequential:
    """A linear layer that starts at zero, in a Sequential so that many seeds stack into one product."""
    layer = nn.Linear(features, classes)
    nn.init.zeros_(layer.weight)  # a random start adds noise that few labels do not train away
    nn.init.zeros_(layer.bias)
    layers: dict[str, nn.Module] = {"dropout": Dropout(dropout)} if dropout else {}
    return nn.Sequential(OrderedDict(layers | {"0": layer}))  # weights have the same name with and without dropout


def decay_scale(classes: int) -> float:
    """The part of the weight decay that a head with so many classes gets: beyond `MANY`, in proportion to 1/C.

    Decay pulls at all of the head's weights, but a class has only 1/C of the loss to hold its own against it: with
    1,000 classes the same decay keeps a head at zero.
    """
    return min(1.0, MANY / max(1, classes))


def scaling(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each feature, `(D,)`."""
    mean = vectors.mean(0, dtype=np.float64).astype(np.float32)
    scale = vectors.std(0, dtype=np.float64).astype(np.float32)
    scale[scale < SMALLEST_SCALE] = 1  # a constant feature carries no information, and must not blow up on a new text
    return mean, scale
