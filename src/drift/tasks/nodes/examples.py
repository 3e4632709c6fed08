"""Nodes of a graph as examples: a model that holds the graph is called with node numbers."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor


@dataclass(frozen=True)
class Nodes:
    """All nodes of a graph; a row is the number of a node. One forward computes all of them."""

    count: int
    lengths: np.ndarray | None = None
    counts: np.ndarray | None = None

    @property
    def at_once(self) -> int:
        return self.count

    def __len__(self) -> int:
        return self.count

    def inputs(self, rows: Tensor) -> Tensor:
        return rows
