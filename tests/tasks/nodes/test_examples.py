"""Nodes as examples: a row is the number of a node, and one forward pass computes all of them."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from drift.data.examples import Labeled
from drift.methods.method import Context
from drift.methods.supervised import Supervised
from drift.models.propagation import select_rows
from drift.tasks.nodes.examples import Nodes
from drift.training.devices import SingleProcess
from drift.training.evaluation import predict


class Lookup(nn.Module):
    """Logits by node number, `(trials, nodes, C)`; it counts its calls."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits, self.calls = nn.Parameter(logits), 0

    def forward(self, rows: Tensor) -> Tensor:
        self.calls += 1
        return select_rows(self.logits, rows)


def test_a_row_is_a_nodes_number() -> None:
    rows = torch.tensor([[4, 0], [1, 3]])
    assert torch.equal(Nodes(5).inputs(rows), rows)
    assert len(Nodes(5)) == Nodes(5).at_once == 5


@given(st.permutations(range(7)), st.integers(1, 7))
def test_labels_go_with_their_nodes(order: list[int], count: int) -> None:
    rows = torch.tensor(order[:count])
    part = Labeled(Nodes(7), rows, 10 * rows)
    nodes, labels = part.pair(torch.arange(count).flip(0))
    assert torch.equal(10 * nodes, labels)
    assert nodes.tolist() == order[:count][::-1]


def test_any_number_of_nodes_is_predicted_by_one_forward_pass() -> None:
    logits = torch.randn(2, 5000, 3, generator=torch.Generator().manual_seed(0))
    student = Lookup(logits)
    method = Supervised(student, Supervised.settings_type(), Context(stacked=True, single_process=True))
    rows = torch.randperm(5000, generator=torch.Generator().manual_seed(1))
    probabilities = predict(method, Nodes(5000), rows, SingleProcess(), trials=2)
    torch.testing.assert_close(probabilities, logits[:, rows].softmax(-1))
    assert student.calls == 1
