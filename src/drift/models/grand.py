"""GRAND, the graph random neural network of Feng et al. (2020), many trials of it as one module."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from drift.core.softmax import log_softmax
from drift.models.propagation import OnGraph, Streams, check_rate, select_rows


@dataclass(frozen=True)
class Recipe:
    """What GRAND is trained with. The defaults are the published ones for Cora.

    order: K, how far features travel. views: S, augmentations a step. temperature: T, sharpens the views' mean.
    consistency_weight: λ. patience: steps without a better dev loss or accuracy before it stops.
    """

    order: Annotated[int, Field(ge=0)] = 8
    views: Annotated[int, Field(ge=1)] = 4
    temperature: Annotated[float, Field(gt=0)] = 0.5
    consistency_weight: Annotated[float, Field(ge=0)] = 1.0
    hidden: Annotated[int, Field(ge=1)] = 32
    drop_node: float = 0.5
    input_dropout: float = 0.5
    hidden_dropout: float = 0.5
    batch_norm: bool = False
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    patience: int = 200


PUBLISHED = {
    "cora": Recipe(),
    "citeseer": Recipe(
        order=2, views=2, temperature=0.3, consistency_weight=0.7, input_dropout=0.0, hidden_dropout=0.2
    ),
    "pubmed": Recipe(
        order=5,
        temperature=0.2,
        input_dropout=0.6,
        hidden_dropout=0.8,
        batch_norm=True,
        learning_rate=0.2,
        patience=100,
    ),
}


def consistency(log_p: Tensor, temperature: float) -> Tensor:
    """How far the views are from their sharpened mean: mean over views and nodes of ‖p - p̄'‖², one value a trial.

        p̄'_j ∝ p̄_j^(1/T), p̄ the mean over views; no gradient goes through it

    log_p: `(views, ..., N, C)`.
    """
    log_power = log_p.detach().logsumexp(0) / temperature  # up to a constant, which the next line takes out
    target = (log_power - log_power.logsumexp(-1, keepdim=True)).exp()  # torch.softmax is slow over few classes
    return (log_p.exp() - target).square().sum(-1).mean(-1).mean(0)


class Grand(OnGraph):
    """A two-layer perceptron on features that have travelled over the graph, X̄ = 1/(K+1) Σ Â^k D X, for every trial.

    D drops nodes at random in training and is 1 - δ otherwise. Called with the numbers of nodes it gives logits
    `(trials, N, C)`, of one augmentation in training; `augmentations` gives those of S.

    features, edges, seeds: as for `GCN`. reordered: X W₁ travels in place of X, 32 columns in place of 1,433. Differs
    from the original work: input dropout falls on X, not X̄, and the input's batch-norm has the statistics of one draw
    throughout. With neither it is exact. False is the original order: for a few trials, as it holds X̄ for each.
    Differs from the original work: first weights are Glorot's. Those of the published code have a mean below 0, so that
    most hidden units begin dead and training takes well over 1,000 steps; from these it takes 300.
    """

    def __init__(
        self,
        features: Tensor,
        edges: Tensor | np.ndarray,
        classes: int,
        *,
        seeds: Sequence[int],
        recipe: Recipe = PUBLISHED["cora"],
        reordered: bool = True,
    ) -> None:
        super().__init__(features, edges, seeds)
        for name in ("drop_node", "input_dropout", "hidden_dropout"):
            check_rate(name, getattr(recipe, name))
        self.recipe, self.reordered = recipe, reordered
        trials, width = self.trials, features.shape[1]
        self.first_weight = nn.Parameter(torch.empty(trials, width, recipe.hidden))
        self.first_bias = nn.Parameter(torch.zeros(trials, 1, recipe.hidden))
        self.second_weight = nn.Parameter(torch.empty(trials, recipe.hidden, classes))
        self.second_bias = nn.Parameter(torch.zeros(trials, 1, classes))
        for trial, generator in enumerate(self.streams.generators()):
            for weight in (self.first_weight, self.second_weight):
                bound = math.sqrt(6 / sum(weight.shape[1:]))  # Glorot's
                nn.init.uniform_(weight.data[trial], -bound, bound, generator=generator)
        self.input_norm = StackedBatchNorm(trials, width) if recipe.batch_norm else None
        self.hidden_norm = StackedBatchNorm(trials, recipe.hidden) if recipe.batch_norm else None
        if self.input_norm is not None and reordered:
            self.input_norm.measure(self._travelled(Streams([0])))

    def forward(self, rows: Tensor) -> Tensor:
        """Logits of nodes `(N,)`, or of each trial's own `(trials, N)`."""
        return self._view(rows) if self.training else self._finish(self._expected(), rows)

    def representations(self) -> Tensor:
        """The hidden layer of every node, after its activation and without dropout: `(trials, nodes, hidden)`."""
        return torch.relu(self._expected())

    def augmentations(self, rows: Tensor) -> Tensor:
        """Logits of S augmentations, `(views, trials, N, C)`."""
        return torch.stack([self._view(rows) for _ in range(self.recipe.views)])

    def own_loss(self, rows: Tensor, labels: Tensor) -> Tensor:
        """What it is trained with: mean cross-entropy of the labelled nodes over views, and λ times their consistency.

        rows, labels: `(trials, N)`. Returns `(trials,)`.
        """
        log_p = self._log_views()
        own = torch.stack([select_rows(view, rows) for view in log_p])  # (views, trials, N, C)
        supervised = -own.gather(-1, labels.expand(len(own), -1, -1).unsqueeze(-1)).mean((0, 2, 3))
        return supervised + self.recipe.consistency_weight * consistency(log_p, self.recipe.temperature)

    def regularizer(self) -> Tensor:
        """λ times the consistency of S views of all nodes, `(trials,)`."""
        return self.recipe.consistency_weight * consistency(self._log_views(), self.recipe.temperature)

    def _log_views(self) -> Tensor:
        """log p of every node in S views, `(views, trials, nodes, C)`."""
        return log_softmax(self.augmentations(torch.arange(self.nodes, device=self.first_weight.device)))

    def _view(self, rows: Tensor) -> Tensor:
        return self._finish(self._reordered() if self.reordered else self._original(), rows)

    def _expected(self) -> Tensor:
        """The first layer before its activation, with 1 - δ of every node in place of a draw."""
        weight, bias = self._first_layer()
        travelled = self.adjacency.propagate_mean(self.features @ weight, self.recipe.order)
        return travelled * (1 - self.recipe.drop_node) + bias

    def _reordered(self) -> Tensor:
        """The first layer before its activation: X W₁ travels."""
        weight, bias = self._first_layer()
        rate = self.recipe.input_dropout
        values = self.streams.dropout(self.features.values, rate) if rate else None
        nodes = self.streams.kept(self.recipe.drop_node, self.nodes, 1)
        x = self.features.product(weight, values).mul_(nodes)
        return self.adjacency.propagate_mean(x, self.recipe.order).add_(bias)

    def _original(self) -> Tensor:
        """The first layer before its activation: X travels, `(trials, nodes, d)`."""
        x, rate = self._travelled(self.streams), self.recipe.input_dropout
        if self.input_norm is not None:
            x = self.input_norm(x)
        if rate:
            x = x * self.streams.kept(rate, *x.shape[1:]).div_(1 - rate)
        return x @ self.first_weight + self.first_bias

    def _travelled(self, streams: Streams) -> Tensor:
        """X̄, without the nodes that are dropped in each stream."""
        nodes = streams.kept(self.recipe.drop_node, self.nodes, 1)
        return self.adjacency.propagate_mean(self.features.rows.to_dense() * nodes, self.recipe.order)

    def _first_layer(self) -> tuple[Tensor, Tensor]:
        """W₁ and b₁ with the input's batch-norm in them."""
        if self.input_norm is None:
            return self.first_weight, self.first_bias
        scale, shift = self.input_norm.affine()  # (trials, 1, d)
        return scale.mT * self.first_weight, self.first_bias + shift @ self.first_weight

    def _finish(self, hidden: Tensor, rows: Tensor) -> Tensor:
        """From the first layer before its activation, `(trials, nodes, hidden)`, to logits."""
        hidden, rate = torch.relu(hidden), self.recipe.hidden_dropout
        second: Tensor = self.second_weight
        if self.hidden_norm is not None:
            hidden = self.hidden_norm(hidden)
        if self.training and rate:
            hidden = hidden * self.streams.kept(rate, *hidden.shape[1:])
            second = second / (1 - rate)
        return select_rows(hidden, rows) @ second + self.second_bias


class StackedBatchNorm(nn.Module):
    """Batch-norm over the nodes of each trial: `(trials, nodes, width)` to the same."""

    running_mean: Tensor
    running_var: Tensor
    momentum, epsilon = 0.1, 1e-5  # torch's

    def __init__(self, trials: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(trials, 1, width))
        self.bias = nn.Parameter(torch.zeros(trials, 1, width))
        self.register_buffer("running_mean", torch.zeros(trials, 1, width))
        self.register_buffer("running_var", torch.ones(trials, 1, width))

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            scale, shift = self.affine()
            return x * scale + shift
        var, mean = torch.var_mean(x, dim=1, correction=0, keepdim=True)
        with torch.no_grad():
            nodes = x.shape[1]
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(var * (nodes / (nodes - 1)), self.momentum)
        return (x - mean) * (var + self.epsilon).rsqrt() * self.weight + self.bias

    def affine(self) -> tuple[Tensor, Tensor]:
        """What it does with the statistics it has: x * scale + shift."""
        scale = self.weight * (self.running_var + self.epsilon).rsqrt()
        return scale, self.bias - self.running_mean * scale

    def measure(self, x: Tensor) -> None:
        """Take the statistics of `x` for all trials, `(1, nodes, width)`."""
        self.running_var[:], self.running_mean[:] = torch.var_mean(x, dim=1, keepdim=True)
