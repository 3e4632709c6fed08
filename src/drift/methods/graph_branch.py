"""What methods for graphs share: they look inside the graph convolutional network of this package."""

import torch
from torch import Tensor, nn

from drift.errors import ConfigError
from drift.models.gcn import GCN
from drift.models.propagation import Sparse


def convolutional(student: nn.Module, method: str) -> GCN:
    """The student, if it is the network that the method looks into."""
    module = getattr(student, "module", student)
    if not isinstance(module, GCN):
        raise ConfigError(f"{method} looks inside a graph convolutional network; use it with --model gcn")
    return module


def from_first_layer(network: GCN, sums: Tensor) -> Tensor:
    """Logits of all nodes, `(trials, nodes, C)`, without dropout. sums: X W₁ or what stands for it."""
    hidden = torch.relu(network.adjacency @ sums + network.first_bias)
    return network.adjacency @ (hidden @ network.second_weight) + network.second_bias


def neighbours_mean(network: GCN) -> Sparse:
    """The matrix that takes the mean over a node's neighbours, itself left out; a node without any has a row of 0."""
    rows = network.adjacency.rows
    target = rows.col_indices().long()
    source = torch.repeat_interleave(torch.arange(network.nodes), rows.crow_indices().diff())
    ends = torch.stack([source, target])[:, source != target]
    degree = torch.bincount(ends[0], minlength=network.nodes)
    values = 1 / degree[ends[0]].to(rows.dtype)
    shape = (network.nodes, network.nodes)
    return Sparse.of(torch.sparse_coo_tensor(ends, values, shape, check_invariants=False))
