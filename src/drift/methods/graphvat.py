"""GraphVAT (Feng, He, Tang and Chua, 2019): predictions should be robust to the worst small perturbation of features.

    L = L_sup + α mean_i KL(f_i(X) ‖ f_i(X + R^v)) + β mean_i mean_{j in N(i)} KL(f_j(X) ‖ f_i(X + R^g))
    R^v = argmax of the first KL, R^g = argmax of the second, ‖r_i‖ ≤ ε_v in the first and ε_g in the second

Virtual adversarial training keeps a node's prediction stable; graph adversarial training keeps it close to the
predictions of its neighbours. Each worst perturbation is approximated with one gradient: r = ε g / ‖g‖. For R^v, whose
gradient vanishes at 0, g is taken at a small random perturbation ξ d; for R^g it is taken at 0. The authors' code has
ε_v = 1, ε_g = 0.01, α = 0.5, β = 1 on Cora and 0.5 on CiteSeer, ξ = 1e-5 and 1e-6, and no dropout.

The first layer is linear, so a perturbation R of the features is a perturbation R W₁ of its output: 16 values per node
instead of 1,433. With G the gradient there, g = G W₁ᵀ and r W₁ = ε G W₁ᵀ W₁ / ‖G W₁ᵀ‖: the features are never
perturbed themselves, and stay sparse.

Differs from the official code: all neighbours count; there two are sampled, which is equal in expectation but noisier.
Differs from the official code: the first phase is that of all methods here and has dropout; there is no first phase.
Differs from the official code: layers have biases, and weight decay is on the first layer only.
Differs from the official code: ξ = 0.01, because 1e-6 is lost in single precision.
"""

from collections.abc import Mapping
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from drift.core.softmax import log_softmax
from drift.core.teacher import in_evaluation
from drift.data.examples import Batch
from drift.methods.gcn_layers import from_first_layer, neighbours_mean, unwrapped_gcn
from drift.methods.method import GRAPH, Context, Method
from drift.models.gcn import GCN
from drift.settings import Settings

SMALLEST = 1e-12  # lengths below it count as 0
PROBE = 0.01  # ξ


class GraphVATSettings(Settings):
    """Sizes of the perturbations, and weights of the two terms."""

    renamed: ClassVar[Mapping[str, str]] = {"radius": "virtual_radius"}

    virtual_weight: float = Field(0.5, ge=0, description="Weight of the virtual adversarial term, α.")
    graph_weight: float = Field(1.0, ge=0, description="Weight of the graph adversarial term, β.")
    virtual_radius: float = Field(
        1.0, gt=0, description="Norm of the virtual adversarial perturbation of a node's features, ε_v."
    )
    graph_radius: float = Field(
        0.01, gt=0, description="Norm of the graph adversarial perturbation of a node's features, ε_g."
    )


class GraphVAT(Method):
    """Virtual and graph adversarial training of a GCN. See the module's docstring."""

    name = "graphvat"
    summary = "predictions robust to the worst small perturbation of features and close to the neighbours' (GraphVAT)"
    settings_type = GraphVATSettings
    needs = frozenset({GRAPH})
    # The supervised step, one forward pass, two searches without gradients of the weights, two terms.
    relative_cost = 14 / 3
    settings: GraphVATSettings

    def __init__(self, student: nn.Module, settings: GraphVATSettings, context: Context = Context()) -> None:
        super().__init__(student, settings, context)
        self.network = unwrapped_gcn(student, self.name)
        self.neighbours = neighbours_mean(self.network)

    def loss(self, batch: Batch) -> Tensor:
        loss = self.adversarial()
        if batch.labeled is None:
            return loss
        with in_evaluation(self.network):  # without dropout
            return loss + self.initial_loss(batch)

    def adversarial(self) -> Tensor:
        """Return both adversarial terms over all nodes, summed over trials."""
        network, settings = self.network, self.settings
        sums = network.features @ network.first_weight  # X W₁
        log_p = log_softmax(from_first_layer(network, sums)).detach()
        around = self.neighbours @ log_p.exp()  # mean over neighbours: KL to it is the mean KL, up to a constant
        metric = network.first_weight.mT.detach() @ network.first_weight  # W₁ᵀ W₁; only the right factor has a gradient
        start = _scaled(_directions(network), metric.detach(), PROBE)
        terms = [
            (settings.virtual_weight, settings.virtual_radius, log_p.exp(), start),
            (settings.graph_weight, settings.graph_radius, around, torch.zeros_like(start)),
        ]
        losses = []
        for weight, radius, target, shift in terms:
            if weight:
                worst = self._worst(sums, target, shift, metric, radius)
                losses.append(weight * _cross_entropy(target, from_first_layer(network, sums + worst)))
        # Cross-entropies differ from the divergences by the targets' entropy, which is constant: same gradient.
        return torch.stack(losses).sum() if losses else sums.sum() * 0

    def _worst(self, sums: Tensor, target: Tensor, shift: Tensor, metric: Tensor, radius: float) -> Tensor:
        """Return R W₁ of the worst perturbation, `(trials, nodes, hidden)`, differentiable in W₁ but not through R."""
        shift = shift.requires_grad_()
        logits = from_first_layer(self.network, sums.detach() + shift)
        (gradient,) = torch.autograd.grad(_cross_entropy(target, logits), shift)
        length = (gradient @ metric.detach() * gradient).sum(-1, keepdim=True).clamp(min=0).sqrt()  # ‖G W₁ᵀ‖
        step = radius / torch.where(length > SMALLEST, length, torch.inf)
        return (gradient * step) @ metric


def _directions(network: GCN) -> Tensor:
    """Draw one random direction per node: z of d = z W₁ᵀ, `(trials, nodes, hidden)`; W₁ maps no part of d to 0."""
    shape = (network.nodes, network.first_weight.shape[-1])
    drawn = [torch.randn(shape, generator=generator) for generator in network.streams.generators()]
    return torch.stack(drawn).to(network.first_weight)


def _scaled(z: Tensor, metric: Tensor, length: float) -> Tensor:
    """Return d W₁, where d = z W₁ᵀ is scaled to `length`. metric: W₁ᵀ W₁."""
    shift = z @ metric
    norm = (shift * z).sum(-1, keepdim=True).clamp(min=SMALLEST).sqrt()
    return shift * (length / norm)


def _cross_entropy(target: Tensor, logits: Tensor) -> Tensor:
    """Return -Σ target log f, averaged over nodes and summed over trials. target: constant, `(trials, nodes, C)`."""
    return -(target * log_softmax(logits)).sum(-1).mean(-1).sum()
