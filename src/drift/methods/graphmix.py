"""GraphMix (Verma et al., 2021): a perceptron with the network's own weights learns beside it, from mixtures.

    L = L_sup(GCN) + λ [ ℓ(mixtures of labelled nodes) + γ(t) ℓ(mixtures of unlabelled nodes with guessed labels) ]

The perceptron relu(X W₁ + b₁) W₂ + b₂ has the network's weights and not its graph, so nodes can be mixed in it
(manifold mixup): b h_i + (1 - b) h_j, b ~ Beta(a, a), at the input or at the hidden layer, with the labels mixed alike.
Guessed labels are the mean of K answers of the network under dropout, sharpened, p̄^(1/T) normalised, without a
gradient. γ rises over the first steps as exp(-5 (1 - t)²). Defaults of the original work: a = 1, K = 10, T = 0.1, λ =
1.

Differs from paper: the steps of network and perceptron are one step on the sum of the losses, where the original's code
alternates between them at random.
Differs from paper: with the first layer linear, mixing inputs is mixing X W₁: features stay sparse.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from drift.core.softmax import log_softmax
from drift.data.examples import Batch
from drift.methods.graph_branch import convolutional
from drift.methods.method import Method
from drift.methods.schedules import ramp
from drift.models.gcn import GCN
from drift.models.propagation import select_rows
from drift.settings import Settings


class GraphMixSettings(Settings):
    """What the perceptron's mixtures are made of."""

    perceptron_weight: float = Field(1.0, ge=0, description="Of the perceptron's loss, λ in the original work.")
    unlabeled_weight: float = Field(1.0, ge=0, description="Of mixtures of unlabelled nodes, γ at its highest.")
    ramp_steps: int = Field(100, ge=0, description="Steps over which that weight rises.")
    beta: float = Field(1.0, gt=0, description="Of the distribution of shares; 1 is any share alike.")
    passes: int = Field(10, ge=1, description="Answers under dropout that a guessed label is the mean of.")
    temperature: float = Field(0.1, gt=0, description="Sharpens guessed labels.")


class GraphMix(Method):
    """See the module."""

    name = "graphmix"
    summary = "a perceptron with the network's own weights learns beside it, from mixed nodes"
    settings_type = GraphMixSettings
    tasks = ("nodes",)
    relative_cost = 16 / 3  # the network's step, ten looks of a third, the perceptron's step

    def __init__(self, student: nn.Module, settings: GraphMixSettings, **options: Any) -> None:
        super().__init__(student, settings, **options)
        self.settings, self.steps = settings, 0
        self.network = convolutional(student, self.name)

    def loss(self, batch: Batch) -> Tensor:
        settings, losses = self.settings, []
        sums = self._dropped_sums()
        if batch.labeled is not None:
            rows, y = batch.labeled
            losses.append(self.initial_loss(batch))
            one_hot = nn.functional.one_hot(y, self.network.second_weight.shape[-1]).to(sums)
            losses.append(settings.perceptron_weight * self.mixed_loss(sums, rows, one_hot))
        if batch.unlabeled is not None:
            weight = settings.perceptron_weight * settings.unlabeled_weight * ramp(self.steps, settings.ramp_steps)
            losses.append(weight * self.mixed_loss(sums, batch.unlabeled, self.guesses(batch.unlabeled)))
        return torch.stack(losses).sum()

    @torch.no_grad()
    def guesses(self, rows: Tensor) -> Tensor:
        """Sharpened means of the network's answers under dropout, `(trials, N, C)`."""
        answers = [log_softmax(self.network(rows)).exp() for _ in range(self.settings.passes)]
        return (torch.stack(answers).mean(0).log() / self.settings.temperature).softmax(-1)

    def mixed_loss(self, sums: Tensor, rows: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy of each node mixed with another of the batch, summed over trials. labels: `(trials, N, C)`."""
        network = self.network
        at_hidden, share, order = _draws(network, self.settings.beta, labels.shape[1])
        share = share.to(labels).view(-1, 1, 1)

        def mix(values: Tensor) -> Tensor:
            return share * values + (1 - share) * select_rows(values, order)

        x = select_rows(sums, rows) + network.first_bias
        activated = torch.relu(x)
        hidden = torch.where(at_hidden.view(-1, 1, 1), mix(activated), torch.relu(mix(x)))
        if network.training and network.dropout:
            hidden = hidden * network.streams.kept(network.dropout, *hidden.shape[1:]) / (1 - network.dropout)
        log_q = log_softmax(hidden @ network.second_weight + network.second_bias)
        return -(mix(labels) * log_q).sum(-1).mean(-1).sum()

    def _dropped_sums(self) -> Tensor:
        """X W₁ with dropout on X, `(trials, nodes, hidden)`."""
        network = self.network
        drops = network.training and network.dropout > 0
        values = network.streams.dropout(network.features.values, network.dropout) if drops else None
        return network.features.product(network.first_weight, values)

    def follow(self) -> None:
        self.steps += 1

    def state_dict(self) -> dict[str, Any]:
        return {"steps": self.steps}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.steps = int(state["steps"])


def _draws(network: GCN, beta: float, nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """For each trial from its own stream: whether to mix at the hidden layer, a share of Beta, and a permutation."""
    at_hidden, shares, orders = [], [], []
    for stream in network.streams.generators():
        generator = np.random.default_rng(stream.initial_seed())  # torch draws from no Beta with a generator of ours
        at_hidden.append(generator.random() < 0.5)
        shares.append(generator.beta(beta, beta))
        orders.append(torch.from_numpy(generator.permutation(nodes)))
    return torch.tensor(at_hidden), torch.tensor(shares), torch.stack(orders)
