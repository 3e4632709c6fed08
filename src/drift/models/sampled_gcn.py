"""The graph convolutional network for graphs that do not fit a step: drawn neighbours to train, pieces to predict."""

import torch
from torch import Tensor, nn

from drift.data.neighbours import Block, Neighbours, aggregate_neighbours
from drift.errors import ConfigError
from drift.models.gcn import GCN

NODES_PER_BATCH = 16384  # nodes that are predicted at a time


class SampledGCN(nn.Module):
    """One trial of `GCN`, called with what `SampledNodes.inputs` gives.

    Its parameters have the names, shapes and first values that GCN has with the one seed: either loads the other's
    state. Differs from GCN: while training, dropout is on Â X and not on X, so that Â X is computed once for student
    and teacher.

    width: features of a node. seed: for first weights and dropout.
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
        """Logits `(N, C)` of the block's rows. features: Â X of its sources."""
        return aggregate_neighbours(self.messages(features), block) + self.second_bias[0]

    def messages(self, features: Tensor) -> Tensor:
        """What nodes tell their neighbours: relu(Â X W₁ + b₁) W₂, `(nodes, C)`. features: Â X."""
        return self._dropped(self.hidden(features)) @ self.second_weight[0]

    def hidden(self, features: Tensor) -> Tensor:
        """The hidden layer, relu(Â X W₁ + b₁), `(nodes, hidden)`. features: Â X."""
        return torch.relu(self._dropped(features) @ self.first_weight[0] + self.first_bias[0])

    def _dropped(self, values: Tensor) -> Tensor:
        if not self.training or self.dropout == 0:
            return values
        return values * (self.streams.kept(self.dropout, *values.shape)[0] / (1 - self.dropout))


@torch.no_grad()
def layerwise(model: SampledGCN, features: Tensor, neighbours: Neighbours, *, piece: int = NODES_PER_BATCH) -> Tensor:
    """Logits of all nodes, `(nodes, C)`, exactly: one layer after the other, `piece` nodes at a time, no dropout."""
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
    """The hidden layer of all nodes, `(nodes, hidden)`, exactly; the model must be in evaluation mode."""
    return torch.cat(
        [model.hidden(aggregate_neighbours(features, block)) for block in neighbours.pieces(NODES_PER_BATCH)]
    )
