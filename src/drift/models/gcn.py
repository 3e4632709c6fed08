"""The graph convolutional network of Kipf and Welling (2017), with many trials in one module."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from drift.models.propagation import OnGraph, check_rate, select_rows

Variant = Literal["paper", "pygcn"]


class GCN(OnGraph):
    """Z = Â relu(Â X W₁ + b₁) W₂ + b₂ for every trial, with dropout on X and on the hidden layer.

    Called with node indices, it returns their logits `(trials, N, C)`.

    features, edges: see `OnGraph`; the original work normalises features with `row_normalized`.
    classes: number of logits.
    seeds: one per trial, for its initial weights and its dropout.
    hidden: width of the hidden layer.
    dropout: dropout rate on both layers' inputs.
    variant: "paper", or "pygcn" for that of the authors' PyTorch code: Â normalised by rows, no dropout on X, and
        weight decay on both layers.

    Differs from the official code: "pygcn" there decays biases too.
    """

    undecayed: tuple[str, ...] = (
        "second_weight",
    )  # weight decay applies to the first layer only, as in the original work

    def __init__(
        self,
        features: Tensor,
        edges: Tensor | np.ndarray,
        classes: int,
        *,
        seeds: Sequence[int],
        hidden: int = 16,
        dropout: float = 0.5,
        variant: Variant = "paper",
    ) -> None:
        super().__init__(features, edges, seeds, by_rows=variant == "pygcn")
        self.drops_features = variant == "paper"
        if variant == "pygcn":
            self.undecayed = ()
        self.dropout = check_rate("dropout", dropout)
        self.first_weight = nn.Parameter(torch.empty(self.trials, features.shape[1], hidden))
        self.first_bias = nn.Parameter(torch.zeros(self.trials, 1, hidden))
        self.second_weight = nn.Parameter(torch.empty(self.trials, hidden, classes))
        self.second_bias = nn.Parameter(torch.zeros(self.trials, 1, classes))
        for trial, generator in enumerate(self.streams.generators()):
            for weight in (self.first_weight, self.second_weight):
                bound = math.sqrt(6 / sum(weight.shape[1:]))  # Glorot initialisation
                nn.init.uniform_(weight.data[trial], -bound, bound, generator=generator)

    def representations(self) -> Tensor:
        """Return the hidden layer of every node, relu(Â X W₁ + b₁), without dropout: `(trials, nodes, hidden)`."""
        return torch.relu(self.adjacency @ (self.features @ self.first_weight) + self.first_bias)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the logits of nodes `(N,)`, or of different nodes per trial, `(trials, N)`."""
        drops = self.training and self.dropout > 0
        drops_features = drops and self.drops_features
        values = self.streams.dropout(self.features.values, self.dropout) if drops_features else None
        hidden = self.adjacency @ self.features.product(self.first_weight, values)
        hidden = hidden.add_(self.first_bias)  # (trials, nodes, hidden)
        second: Tensor = self.second_weight
        if drops:  # equal to dropout after the activation, and can be done in place
            hidden = hidden.mul_(self.streams.kept(self.dropout, *hidden.shape[1:]))
            second = second / (1 - self.dropout)
        return select_rows(self.adjacency @ (hidden.relu_() @ second) + self.second_bias, rows)
