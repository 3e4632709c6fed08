"""GCN for graphs too large for a full step: trained on sampled neighbours, predicts in pieces."""

import torch
from torch import Tensor, nn

from drift.data.neighbours import Block, Neighbours, aggregate_neighbours
from drift.errors import ConfigError
from drift.models.gcn import GCN

NODES_PER_BATCH = 16384  # nodes that are predicted at once


class SampledGCN(nn.Module):
    """One trial of `GCN`, called with the inputs that `SampledNodes.inputs` returns.

    Its parameters have the same names, shapes and initial values as those of a GCN with this one seed: each loads the
    other's state. Differs from GCN: in training, dropout is applied to Â X and not to X, so that Â X is computed once
    for student and teacher.

    width: features per node. classes: number of logits. seed: seed for initial weights and dropout. hidden, dropout: as
    for `GCN`.
    """

    undecayed = GCN.undecayed

    def __init__(self, width: int, classes: int, *, seed: int, hidden: int = 16, dropout: float = 0.5) -> None:
        super().__init__()
        no_edges = torch.empty(2, 0, dtype=torch.long)
        start = GCN(torch.zeros(1, width), no_edges, classes, seeds=[seed], hidden=hidden, dropout=dropout)
        self.dropout, self.streams = start.dropout, start.streams
        self.first_weight, self.first_bias = start.first_weight, start.first_bias
        self.second_weight, self.second_bias = start.second_weight, start.second_bias

    def forward(self, features: Tensor, block: Block) -> Tensor:
        """Return the logits `(N, C)` of the block's rows. features: Â X of its sources."""
        return aggregate_neighbours(self.messages(features), block) + self.second_bias[0]

    def messages(self, features: Tensor) -> Tensor:
        """Return the messages of nodes to their neighbours: relu(Â X W₁ + b₁) W₂, `(nodes, C)`. features: Â X."""
        return self._dropped(self.hidden(features)) @ self.second_weight[0]

    def hidden(self, features: Tensor) -> Tensor:
        """Return the hidden layer, relu(Â X W₁ + b₁), `(nodes, hidden)`. features: Â X."""
        return torch.relu(self._dropped(features) @ self.first_weight[0] + self.first_bias[0])

    def _dropped(self, values: Tensor) -> Tensor:
        if not self.training or self.dropout == 0:
            return values
        return values * (self.streams.kept(self.dropout, *values.shape)[0] / (1 - self.dropout))


@torch.no_grad()
def layerwise(model: SampledGCN, features: Tensor, neighbours: Neighbours, *, piece: int = NODES_PER_BATCH) -> Tensor:
    """Return the exact logits of all nodes, `(nodes, C)`, without dropout, computed layer by layer.

    model: the network. features: X. neighbours: the whole graph. piece: number of nodes to compute at once.
    """
    if piece < 1:
        raise ConfigError(f"piece={piece}: take at least 1 node at a time")
    training = model.training
    model.eval()
    messages = torch.cat([model.messages(aggregate_neighbours(features, block)) for block in neighbours.pieces(piece)])
    logits = (
        torch.cat([aggregate_neighbours(messages, block) for block in neighbours.pieces(piece)]) + model.second_bias[0]
    )
    model.train(training)
    return logits


@torch.no_grad()
def layerwise_hidden(model: SampledGCN, features: Tensor, neighbours: Neighbours) -> Tensor:
    """Return the exact hidden layer of all nodes, `(nodes, hidden)`. The model must be in evaluation mode."""
    return torch.cat(
        [model.hidden(aggregate_neighbours(features, block)) for block in neighbours.pieces(NODES_PER_BATCH)]
    )
