"""GraphMix (Verma et al., 2021): a perceptron that shares the network's weights is trained on mixed nodes.

    L = L_sup(GCN) + λ [ ℓ(mixtures of labelled nodes) + γ(t) ℓ(mixtures of unlabelled nodes with guessed labels) ]
    ℓ = -mean over nodes and classes of y log q + (1 - y) log(1 - q)

The perceptron relu(X W₁ + b₁) W₂ + b₂ has the network's weights but not its graph, so nodes can be mixed in it
(manifold mixup): b h_i + (1 - b) h_j, b ~ Beta(a, a), at the hidden layer, as in the authors' code, or with `mix_input`
at the input or the hidden layer; labels are mixed the same way. Guessed labels are the mean of K predictions of the
network under dropout, sharpened (p̄^(1/T), normalised), without a gradient. As many unlabelled nodes are drawn as there
are labelled ones. γ rises as exp(-5 (1 - t)²). The authors' code has a = 1, K = 10, T = 0.1, λ = 1 and γ = 10 (1 on
PubMed), which rises from epoch 500 to 1,000 of 2,000.

Differs from the official code: network and perceptron are trained in one step on the sum of the losses; there one of
the two is trained in each step, at random.
Differs from the official code: the first phase is that of all methods here; there is no first phase. γ rises from step
75 to 150, because a run here has 300.
Differs from paper: the first layer is linear, so inputs are mixed as X W₁ and the features stay sparse.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from drift.core.softmax import log_softmax
from drift.data.examples import Batch
from drift.methods.gcn_layers import unwrapped_gcn
from drift.methods.mean_teacher import ramp
from drift.methods.method import GRAPH, Context, Method
from drift.models.gcn import GCN
from drift.models.propagation import select_rows
from drift.settings import Settings


class GraphMixSettings(Settings):
    """How nodes are mixed, and how labels are guessed."""

    perceptron_weight: float = Field(1.0, ge=0, description="Weight of the perceptron's loss, λ.")
    unlabeled_weight: float = Field(10.0, ge=0, description="Final weight of mixtures of unlabelled nodes, γ.")
    ramp_start: int = Field(75, ge=0, description="Step at which that weight begins to rise.")
    ramp_steps: int = Field(75, ge=0, description="Steps over which that weight rises.")
    mix_input: bool = Field(False, description="Mix at the input or the hidden layer, at random; default: hidden.")
    beta: float = Field(
        1.0, gt=0, description="Parameter a of the Beta(a, a) distribution of mixing shares; 1 is uniform."
    )
    passes: int = Field(10, ge=1, description="Predictions under dropout averaged for a guessed label, K.")
    temperature: float = Field(0.1, gt=0, description="Temperature that sharpens guessed labels, T.")


class GraphMix(Method):
    """Manifold mixup beside a GCN. See the module's docstring."""

    name = "graphmix"
    summary = "a perceptron that shares the network's weights is trained on mixed nodes (GraphMix)"
    settings_type = GraphMixSettings
    needs = frozenset({GRAPH})
    relative_cost = 16 / 3  # the network's step, ten forward passes of a third each, the perceptron's step
    settings: GraphMixSettings

    def __init__(self, student: nn.Module, settings: GraphMixSettings, context: Context = Context()) -> None:
        super().__init__(student, settings, context)
        self.steps = 0
        self.network = unwrapped_gcn(student, self.name)

    def loss(self, batch: Batch) -> Tensor:
        settings, losses = self.settings, []
        sums = self._dropped_sums()
        if batch.labeled is not None:
            rows, y = batch.labeled
            losses.append(self.initial_loss(batch))
            one_hot = nn.functional.one_hot(y, self.network.second_weight.shape[-1]).to(sums)
            losses.append(settings.perceptron_weight * self.mixed_loss(sums, rows, one_hot))
        if batch.unlabeled is not None:
            rows = batch.unlabeled if batch.labeled is None else _drawn(self.network, batch.unlabeled, y.shape[-1])
            risen = ramp(max(0, self.steps - settings.ramp_start), settings.ramp_steps)
            weight = settings.perceptron_weight * settings.unlabeled_weight * risen
            losses.append(weight * self.mixed_loss(sums, rows, self.guesses(rows)))
        return torch.stack(losses).sum()

    @torch.no_grad()
    def guesses(self, rows: Tensor) -> Tensor:
        """Return guessed labels: sharpened means of predictions under dropout, `(trials, N, C)`. rows: node indices."""
        predictions = [log_softmax(self.network(rows)).exp() for _ in range(self.settings.passes)]
        return (torch.stack(predictions).mean(0).log() / self.settings.temperature).softmax(-1)

    def mixed_loss(self, sums: Tensor, rows: Tensor, labels: Tensor) -> Tensor:
        """Return the binary cross-entropy of each node mixed with another one of the batch, summed over trials.

        sums: X W₁ of all nodes, `(trials, nodes, hidden)`. rows: indices of the batch's nodes. labels: their label
        distributions, `(trials, N, C)`.
        """
        network = self.network
        at_hidden, share, order = _draws(network, self.settings.beta, labels.shape[1])
        if not self.settings.mix_input:
            at_hidden = torch.ones_like(at_hidden)
        share = share.to(labels).view(-1, 1, 1)

        def mix(values: Tensor) -> Tensor:
            return share * values + (1 - share) * select_rows(values, order)

        x = select_rows(sums, rows) + network.first_bias
        activated = torch.relu(x)
        hidden = torch.where(at_hidden.view(-1, 1, 1), mix(activated), torch.relu(mix(x)))
        if network.training and network.dropout:
            hidden = hidden * network.streams.kept(network.dropout, *hidden.shape[1:]) / (1 - network.dropout)
        log_q = log_softmax(hidden @ network.second_weight + network.second_bias)
        return _binary_cross_entropy(mix(labels), log_q).mean((-2, -1)).sum()

    def _dropped_sums(self) -> Tensor:
        """Return X W₁ with dropout on X, `(trials, nodes, hidden)`."""
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


def _binary_cross_entropy(target: Tensor, log_q: Tensor) -> Tensor:
    """Return that of each node and class, `(trials, N, C)`. target: label distributions."""
    q = log_q.exp()
    others = q @ (1 - torch.eye(q.shape[-1], dtype=q.dtype, device=q.device))  # 1 - q, without cancellation
    return -(target * log_q + (1 - target) * others.clamp(min=torch.finfo(q.dtype).tiny).log())


def _drawn(network: GCN, rows: Tensor, size: int) -> Tensor:
    """Draw this many of the rows `(trials, N)`, or all if there are fewer; per trial, from its own stream."""
    if rows.shape[-1] <= size:
        return rows
    generators = network.streams.generators()
    orders = [torch.randperm(rows.shape[-1], generator=generator)[:size] for generator in generators]
    return rows.gather(-1, torch.stack(orders).to(rows.device))


def _draws(network: GCN, beta: float, nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Draw per trial, from its own stream: whether to mix at the hidden layer, a share from Beta, a permutation."""
    at_hidden, shares, orders = [], [], []
    for stream in network.streams.generators():
        generator = np.random.default_rng(stream.initial_seed())  # torch cannot draw from Beta with a generator
        at_hidden.append(generator.random() < 0.5)
        shares.append(generator.beta(beta, beta))
        orders.append(torch.from_numpy(generator.permutation(nodes)))
    return torch.tensor(at_hidden), torch.tensor(shares), torch.stack(orders)
