"""What students may offer besides logits, and how wrappers change that."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from drift.models.gcn import GCN
from drift.models.grand import Grand
from drift.models.mlp import mlp
from drift.models.propagation import Streams
from drift.models.protocols import (
    FullGraph,
    HasOwnLoss,
    HasRegularizer,
    HasUndecayed,
    Rekeyable,
    computes_full_graph,
    has_own_loss,
    has_regularizer,
)
from drift.models.sampled_gcn import SampledGCN

X, EDGES = torch.eye(4), torch.tensor([[0, 1], [1, 2]])


def new_grand() -> Grand:
    return Grand(X, EDGES, 2, seeds=[0])


# Assignments that only a type checker judges: the models have what the protocols describe.
def protocols_of_the_models(grand: Grand, gcn: GCN, streams: Streams) -> tuple[Any, ...]:
    own_loss: HasOwnLoss = grand
    regularizer: HasRegularizer = grand
    full_graph: FullGraph = gcn
    undecayed: HasUndecayed = gcn
    rekeyable: Rekeyable = streams
    return own_loss, regularizer, full_graph, undecayed, rekeyable


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (new_grand, (True, True, True, False)),
        (lambda: GCN(X, EDGES, 2, seeds=[0]), (False, False, True, True)),
        (lambda: SampledGCN(4, 2, seed=0), (False, False, False, True)),
        (lambda: mlp(4, 2), (False, False, False, False)),
    ],
    ids=["grand", "gcn", "sampled gcn", "mlp"],
)
def test_what_each_model_offers(make: Callable[[], nn.Module], expected: tuple[bool, ...]) -> None:
    student = make()
    offers = (has_own_loss(student), has_regularizer(student), computes_full_graph(student))
    assert (*offers, isinstance(student, HasUndecayed)) == expected


class Hiding(nn.Module):
    """A wrapper that does not forward attributes, like DistributedDataParallel."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module


class Forwarding(Hiding):
    """A wrapper that forwards attributes, like the one of torch.compile."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)


@pytest.mark.parametrize(("wrap", "offered"), [(Hiding, False), (Forwarding, True)])
def test_a_wrapper_offers_what_it_forwards(wrap: type[Hiding], offered: bool) -> None:
    wrapped = wrap(new_grand())
    assert has_own_loss(wrapped) is offered
    assert has_regularizer(wrapped) is offered
    assert computes_full_graph(wrapped) is offered


def test_a_full_graph_can_be_switched_off() -> None:
    student = mlp(4, 2)
    student.full_graph = False  # type: ignore[assignment]
    assert not computes_full_graph(student)
