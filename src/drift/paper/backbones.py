"""A modern graph model made of torch_geometric's layers, as a row of table 5: `--model drift.paper.backbones:appnp`.

It is passed by name as any user's own model is (see the guide on extending), so the row also shows that the game takes
a model that knows nothing of it.
"""

import torch
from torch import Tensor, nn

HIDDEN, DROPOUT = 64, 0.5
STEPS, RESTART = 10, 0.1  # K and α of the propagation


class APPNP(nn.Module):
    """Predict, then propagate (Klicpera et al., 2019): Z⁰ = MLP(X), Zᵏ⁺¹ = (1 - α) Â Zᵏ + α Z⁰, K = 10, α = 0.1.

    Differs from the official code: no dropout of edges; weight decay is the run's, 5e-4 on both layers in table 5, and
    not 5e-3 on the first only.
    """

    def __init__(self, width: int, classes: int) -> None:
        from torch_geometric import nn as layers  # late: it is not always installed

        super().__init__()
        self.first, self.second = nn.Linear(width, HIDDEN), nn.Linear(HIDDEN, classes)
        self.dropout = nn.Dropout(DROPOUT)
        self.propagate = layers.APPNP(STEPS, RESTART, cached=True)  # a module has one graph

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        hidden = torch.relu(self.first(self.dropout(x)))
        logits: Tensor = self.propagate(self.second(self.dropout(hidden)), edges)
        return logits


def appnp(width: int, classes: int) -> APPNP:
    """Make an APPNP. width: features per node. classes: number of logits."""
    return APPNP(width, classes)
