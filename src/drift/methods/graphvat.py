"""GraphVAT (Feng, He, Tang and Chua, 2019): a node's class should bear the worst small change of its features.

    L = L_sup + α mean_i KL(f_i(X) ‖ f_i(X + R^v)) + β mean_i mean_{j in N(i)} KL(f_j(X) ‖ f_i(X + R^g))
    R^v = argmax of the first KL, R^g = argmax of the second, both over ‖r_i‖ ≤ ε

Virtual adversarial training keeps each node's answer, and graph adversarial training keeps it near its neighbours'.
Both worst changes are found by one gradient: r = ε g / ‖g‖, where g is taken at a small random change ξ d for R^v,
which has no gradient at 0, and at 0 for R^g. Defaults: ξ = 1e-6 in the original work, which searches α, β and ε.

The first layer is linear, so a change R of the features is a change R W₁ of what it sums up, 16 numbers a node and not
1,433. With G the gradient there, g = G W₁ᵀ and r W₁ = ε G W₁ᵀ W₁ / ‖G W₁ᵀ‖: the features themselves are never touched,
and stay sparse.

Differs from paper: all neighbours count, where the original draws some: the same in expectation, without the noise.
Differs from paper: dropout is on in L_sup alone; changes are found and weighed without it.
Differs from paper: ξ = 0.01, as 1e-6 is lost in single precision.
"""

from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from drift.core.softmax import log_softmax
from drift.data.examples import Batch
from drift.methods.graph_branch import convolutional, from_first_layer, neighbours_mean
from drift.methods.method import Method
from drift.models.gcn import GCN
from drift.settings import Settings

SMALLEST = 1e-12  # a length below it is none
PROBE = 0.01  # ξ


class GraphVATSettings(Settings):
    """How far features may change, and what weight that has."""

    virtual_weight: float = Field(1.0, ge=0, description="Of the answer's own change, α in the original work.")
    graph_weight: float = Field(0.5, ge=0, description="Of the distance to the neighbours' answers, β there.")
    radius: float = Field(0.05, gt=0, description="The longest change of a node's features, ε there.")


class GraphVAT(Method):
    """See the module."""

    name = "graphvat"
    summary = "a node's class bears the worst small change of its features, and stays near its neighbours'"
    settings_type = GraphVATSettings
    tasks = ("nodes",)
    relative_cost = (
        14 / 3
    )  # the supervised step, one look at all, two searches without the weights' gradients, two terms

    def __init__(self, student: nn.Module, settings: GraphVATSettings, **options: Any) -> None:
        super().__init__(student, settings, **options)
        self.settings = settings
        self.network = convolutional(student, self.name)
        self.neighbours = neighbours_mean(self.network)

    def loss(self, batch: Batch) -> Tensor:
        loss = self.adversarial()
        return loss if batch.labeled is None else loss + self.initial_loss(batch)

    def adversarial(self) -> Tensor:
        """Both terms over all nodes, summed over trials."""
        network, settings = self.network, self.settings
        sums = network.features @ network.first_weight  # X W₁
        log_p = log_softmax(from_first_layer(network, sums)).detach()
        around = self.neighbours @ log_p.exp()  # mean over neighbours; KL to it and to each differ by a constant
        metric = network.first_weight.mT.detach() @ network.first_weight  # W₁ᵀ W₁, with the gradient of the right one
        start = _scaled(_directions(network), metric.detach(), PROBE)
        terms = [
            (settings.virtual_weight, log_p.exp(), start),
            (settings.graph_weight, around, torch.zeros_like(start)),
        ]
        found = [
            weight * _cross_entropy(target, from_first_layer(network, sums + self._worst(sums, target, shift, metric)))
            for weight, target, shift in terms
            if weight
        ]
        # With the targets' own entropy taken off, the terms are divergences: what the student sees is the same.
        return torch.stack(found).sum() if found else sums.sum() * 0

    def _worst(self, sums: Tensor, target: Tensor, shift: Tensor, metric: Tensor) -> Tensor:
        """R W₁ of the worst change, `(trials, nodes, hidden)`; a gradient goes through W₁ and not through R."""
        shift = shift.requires_grad_()
        logits = from_first_layer(self.network, sums.detach() + shift)
        (gradient,) = torch.autograd.grad(_cross_entropy(target, logits), shift)
        length = (gradient @ metric.detach() * gradient).sum(-1, keepdim=True).clamp(min=0).sqrt()  # ‖G W₁ᵀ‖
        step = self.settings.radius / torch.where(length > SMALLEST, length, torch.inf)
        return (gradient * step) @ metric


def _directions(network: GCN) -> Tensor:
    """A random direction a node, `(trials, nodes, hidden)`: z of d = z W₁ᵀ, so that the first layer sees all of it."""
    shape = (network.nodes, network.first_weight.shape[-1])
    drawn = [torch.randn(shape, generator=generator) for generator in network.streams.generators()]
    return torch.stack(drawn).to(network.first_weight)


def _scaled(z: Tensor, metric: Tensor, length: float) -> Tensor:
    """d W₁ for d = z W₁ᵀ of the given length."""
    shift = z @ metric
    norm = (shift * z).sum(-1, keepdim=True).clamp(min=SMALLEST).sqrt()
    return shift * (length / norm)


def _cross_entropy(target: Tensor, logits: Tensor) -> Tensor:
    """-Σ target log f, mean over nodes and summed over trials. target: constant, `(trials, nodes, C)`."""
    return -(target * log_softmax(logits)).sum(-1).mean(-1).sum()
