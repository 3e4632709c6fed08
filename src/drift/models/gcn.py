"""The graph convolutional network of Kipf and Welling (2017), many trials of it as one module."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from drift.models.propagation import OnGraph, check_rate, select_rows


class GCN(OnGraph):
    """Z = Â relu(Â X W₁ + b₁) W₂ + b₂ for every trial, with dropout on X and on the hidden layer.

    Called with the numbers of nodes, it gives their logits `(trials, N, C)`.

    features, edges: see `OnGraph`; the original work has features `row_normalized`.
    seeds: one a trial, for its first weights and its dropout.
    """

    undecayed = ("second_weight",)  # weight decay is for the first layer alone, as in the original work

    def __init__(
        self,
        features: Tensor,
        edges: Tensor | np.ndarray,
        classes: int,
        *,
        seeds: Sequence[int],
        hidden: int = 16,
        dropout: float = 0.5,
    ) -> None:
        super().__init__(features, edges, seeds)
        self.dropout = check_rate("dropout", dropout)
        self.first_weight = nn.Parameter(torch.empty(self.trials, features.shape[1], hidden))
        self.first_bias = nn.Parameter(torch.zeros(self.trials, 1, hidden))
        self.second_weight = nn.Parameter(torch.empty(self.trials, hidden, classes))
        self.second_bias = nn.Parameter(torch.zeros(self.trials, 1, classes))
        for trial, generator in enumerate(self.streams.generators()):
            for weight in (self.first_weight, self.second_weight):
                bound = math.sqrt(6 / sum(weight.shape[1:]))  # Glorot's
                nn.init.uniform_(weight.data[trial], -bound, bound, generator=generator)

    def representations(self) -> Tensor:
        """The hidden layer of every node, relu(Â X W₁ + b₁), without dropout: `(trials, nodes, hidden)`."""
        return torch.relu(self.adjacency @ (self.features @ self.first_weight) + self.first_bias)

    def forward(self, rows: Tensor) -> Tensor:
        """Logits of nodes `(N,)`, or of each trial's own `(trials, N)`."""
        drops = self.training and self.dropout > 0
        values = self.streams.dropout(self.features.values, self.dropout) if drops else None
        hidden = self.adjacency @ self.features.product(self.first_weight, values)
        hidden = hidden.add_(self.first_bias)  # (trials, nodes, hidden)
        second: Tensor = self.second_weight
        if drops:  # before the activation it is the same as after, and can be done in place
            hidden = hidden.mul_(self.streams.kept(self.dropout, *hidden.shape[1:]))
            second = second / (1 - self.dropout)
        return select_rows(self.adjacency @ (hidden.relu_() @ second) + self.second_bias, rows)
