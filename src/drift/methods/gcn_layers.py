"""Access to the layers of `drift.models.gcn.GCN`, shared by methods for graphs."""

import torch
from torch import Tensor, nn

from drift.errors import ConfigError
from drift.models.gcn import GCN
from drift.models.propagation import Sparse


def unwrapped_gcn(student: nn.Module, method: str) -> GCN:
    """Return the student as a GCN, without a data-parallel wrapper; ConfigError if it is another model.

    method: name of the method, for the message.
    """
    module = getattr(student, "module", student)
    if not isinstance(module, GCN):
        raise ConfigError(f"{method} works on the layers of a graph convolutional network; use it with --model gcn")
    return module


def from_first_layer(network: GCN, sums: Tensor) -> Tensor:
    """Return the logits of all nodes, `(trials, nodes, C)`, without dropout. sums: X W₁, or a perturbed X W₁."""
    hidden = torch.relu(network.adjacency @ sums + network.first_bias)
    return network.adjacency @ (hidden @ network.second_weight) + network.second_bias


def neighbours_mean(network: GCN) -> Sparse:
    """Return the matrix that averages over a node's neighbours, without the node itself.

    The row of a node without neighbours is 0.
    """
    rows = network.adjacency.rows
    target = rows.col_indices().long()
    source = torch.repeat_interleave(torch.arange(network.nodes), rows.crow_indices().diff())
    ends = torch.stack([source, target])[:, source != target]
    degree = torch.bincount(ends[0], minlength=network.nodes)
    values = 1 / degree[ends[0]].to(rows.dtype)
    shape = (network.nodes, network.nodes)
    return Sparse.of(torch.sparse_coo_tensor(ends, values, shape, check_invariants=False))
