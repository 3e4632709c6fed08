"""GRAND, the graph random neural network of Feng et al. (2020), with many trials in one module."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from drift.core.labels import sample_weight
from drift.core.softmax import log_softmax
from drift.models.propagation import OnGraph, Streams, check_rate, select_rows


@dataclass(frozen=True)
class Recipe:
    """Hyperparameters of GRAND. The defaults are the published ones for Cora, except for `certain`.

    order: K, the number of propagation steps.
    views: S, augmentations per step.
    temperature: T, sharpens the mean of the views.
    consistency_weight: λ.
    certain: weigh each node in the consistency by the certainty ω of its mean prediction. The original work does not:
        with few labels, every node may then be pulled into one class before the labels are learned.
    hidden: width of the hidden layer.
    drop_node: δ, the probability that a node's features are dropped.
    input_dropout, hidden_dropout: dropout rates.
    batch_norm: whether input and hidden layer are batch-normalised.
    learning_rate, weight_decay: of the optimiser.
    patience: steps without a better dev loss or accuracy before training stops.
    """

    order: Annotated[int, Field(ge=0, le=1000)] = 8
    views: Annotated[int, Field(ge=1, le=1000)] = 4
    temperature: Annotated[float, Field(gt=0)] = 0.5
    consistency_weight: Annotated[float, Field(ge=0)] = 1.0
    certain: bool = True
    hidden: Annotated[int, Field(ge=1, le=10_000)] = 32
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


def consistency(log_p: Tensor, temperature: float, *, certain: bool = False) -> Tensor:
    """Return the distance of the views to their sharpened mean: mean over views and nodes of ω ‖p - p̄'‖², per trial.

        p̄'_j ∝ p̄_j^(1/T), p̄ the mean over views; ω = 1 - H(p̄)/log C, or 1 unless `certain`; both are constants

    log_p: `(views, ..., N, C)`. temperature: T.
    """
    log_sum = log_p.detach().logsumexp(0)  # log p̄ up to a constant
    log_power = log_sum / temperature
    target = (log_power - log_power.logsumexp(-1, keepdim=True)).exp()  # torch.softmax is slow over few classes
    distance = (log_p.exp() - target).square().sum(-1)
    if certain:
        distance = distance * sample_weight(log_sum - log_sum.logsumexp(-1, keepdim=True))
    return distance.mean(-1).mean(0)


class Grand(OnGraph):
    """A two-layer perceptron on features propagated over the graph, X̄ = 1/(K+1) Σ Â^k D X, for every trial.

    D drops nodes at random in training and is 1 - δ otherwise. Called with node indices, the module returns logits
    `(trials, N, C)`, in training those of one augmentation; `augmentations` returns those of S.

    features, edges, classes, seeds: as for `GCN`.
    recipe: hyperparameters.
    reordered: propagate X W₁ instead of X, 32 columns instead of 1,433. False is the original order; it stores X̄ per
        trial, so use it for few trials only.

    Differs from the official code: with `reordered`, input dropout is applied to X and not to X̄, and the input's
    batch normalisation uses the statistics of one draw throughout. With neither, the result is exact.
    Differs from the official code: the best step is chosen by dev accuracy; there by dev loss, and training ends when
    neither has improved for 200 steps.
    Differs from the official code: initial weights are Glorot's. Those of the published code have a negative mean, so
    that most hidden units are dead at first and training takes well over 1,000 steps; here it takes 300.
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
                bound = math.sqrt(6 / sum(weight.shape[1:]))  # Glorot initialisation
                nn.init.uniform_(weight.data[trial], -bound, bound, generator=generator)
        self.input_norm = StackedBatchNorm(trials, width) if recipe.batch_norm else None
        self.hidden_norm = StackedBatchNorm(trials, recipe.hidden) if recipe.batch_norm else None
        if self.input_norm is not None and reordered:
            self.input_norm.measure(self._propagated(Streams([0])))

    def forward(self, rows: Tensor) -> Tensor:
        """Return the logits of nodes `(N,)`, or of different nodes per trial, `(trials, N)`."""
        return self._view(rows) if self.training else self._finish(self._expected(), rows)

    def representations(self) -> Tensor:
        """Return the activated hidden layer of every node, without dropout: `(trials, nodes, hidden)`."""
        return torch.relu(self._expected())

    def augmentations(self, rows: Tensor) -> Tensor:
        """Return the logits of S augmentations, `(views, trials, N, C)`. rows: node indices."""
        return torch.stack([self._view(rows) for _ in range(self.recipe.views)])

    def own_loss(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Return GRAND's loss, `(trials,)`: cross-entropy of the labelled nodes over views, and λ times consistency.

        rows, labels: node indices and class indices of the labelled nodes, `(trials, N)`.
        """
        log_p = self._log_views()
        log_q = torch.stack([select_rows(view, rows) for view in log_p])  # (views, trials, N, C)
        supervised = -log_q.gather(-1, labels.expand(len(log_q), -1, -1).unsqueeze(-1)).mean((0, 2, 3))
        return supervised + self._consistency(log_p)

    def regularizer(self) -> Tensor:
        """Return λ times the consistency of S views of all nodes, `(trials,)`."""
        return self._consistency(self._log_views())

    def _consistency(self, log_p: Tensor) -> Tensor:
        recipe = self.recipe
        return recipe.consistency_weight * consistency(log_p, recipe.temperature, certain=recipe.certain)

    def _log_views(self) -> Tensor:
        """Return log p of every node in S views, `(views, trials, nodes, C)`."""
        return log_softmax(self.augmentations(torch.arange(self.nodes, device=self.first_weight.device)))

    def _view(self, rows: Tensor) -> Tensor:
        return self._finish(self._reordered() if self.reordered else self._original(), rows)

    def _expected(self) -> Tensor:
        """Return the first layer before its activation, with nodes scaled by 1 - δ instead of dropped at random."""
        weight, bias = self._first_layer()
        propagated = self.adjacency.propagate_mean(self.features @ weight, self.recipe.order)
        return propagated * (1 - self.recipe.drop_node) + bias

    def _reordered(self) -> Tensor:
        """Return the first layer before its activation, by propagating X W₁."""
        weight, bias = self._first_layer()
        rate = self.recipe.input_dropout
        values = self.streams.dropout(self.features.values, rate) if rate else None
        nodes = self.streams.kept(self.recipe.drop_node, self.nodes, 1)
        x = self.features.product(weight, values).mul_(nodes)
        return self.adjacency.propagate_mean(x, self.recipe.order).add_(bias)

    def _original(self) -> Tensor:
        """Return the first layer before its activation, by propagating X, `(trials, nodes, d)`."""
        x, rate = self._propagated(self.streams), self.recipe.input_dropout
        if self.input_norm is not None:
            x = self.input_norm(x)
        if rate:
            x = x * self.streams.kept(rate, *x.shape[1:]).div_(1 - rate)
        return x @ self.first_weight + self.first_bias

    def _propagated(self, streams: Streams) -> Tensor:
        """Return X̄, without the nodes that each stream drops."""
        nodes = streams.kept(self.recipe.drop_node, self.nodes, 1)
        return self.adjacency.propagate_mean(self.features.rows.to_dense() * nodes, self.recipe.order)

    def _first_layer(self) -> tuple[Tensor, Tensor]:
        """Return W₁ and b₁ with the input's batch normalisation folded into them."""
        if self.input_norm is None:
            return self.first_weight, self.first_bias
        scale, shift = self.input_norm.affine()  # (trials, 1, d)
        return scale.mT * self.first_weight, self.first_bias + shift @ self.first_weight

    def _finish(self, hidden: Tensor, rows: Tensor) -> Tensor:
        """Return the logits of these rows. hidden: the first layer before its activation, `(trials, nodes, hidden)`."""
        hidden, rate = torch.relu(hidden), self.recipe.hidden_dropout
        second: Tensor = self.second_weight
        if self.hidden_norm is not None:
            hidden = self.hidden_norm(hidden)
        if self.training and rate:
            hidden = hidden * self.streams.kept(rate, *hidden.shape[1:])
            second = second / (1 - rate)
        return select_rows(hidden, rows) @ second + self.second_bias


class StackedBatchNorm(nn.Module):
    """Batch normalisation over the nodes of each trial: `(trials, nodes, width)` to the same shape."""

    running_mean: Tensor
    running_var: Tensor
    momentum, epsilon = 0.1, 1e-5  # torch's defaults

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
        """Return scale and shift of the normalisation with the running statistics: x * scale + shift."""
        scale = self.weight * (self.running_var + self.epsilon).rsqrt()
        return scale, self.bias - self.running_mean * scale

    def measure(self, x: Tensor) -> None:
        """Set the running statistics of all trials to those of `x`, `(1, nodes, width)`."""
        self.running_var[:], self.running_mean[:] = torch.var_mean(x, dim=1, keepdim=True)
