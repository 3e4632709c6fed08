"""State goes to JSON and tensors and comes back the same."""

import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load, save
from torch import nn

from drift.core.randomness import random_state, set_random_state
from drift.errors import StateError
from drift.training.packing import pack, unpack

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
NESTED = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.integers() | st.text(), inner, max_size=3)
    ),
    max_leaves=10,
)


def through_disk(state: object) -> object:
    packed, tensors = pack(state)
    return unpack(json.loads(json.dumps(packed)), load(save(tensors)))


@given(NESTED)
def test_nested_state_comes_back_with_its_types(state: object) -> None:
    found = through_disk(state)
    assert found == state
    assert type(found) is type(state)


def test_infinity_and_nan_come_back() -> None:
    best, gap = through_disk([-math.inf, math.nan])
    assert best == -math.inf
    assert math.isnan(gap)


def test_keys_that_look_alike_keep_their_tensors() -> None:
    found = through_disk({1: torch.zeros(1), "1": torch.ones(1)})
    assert float(found[1]) == 0.0
    assert float(found["1"]) == 1.0


def test_tied_weights_are_saved_though_they_share_memory() -> None:
    weight = torch.randn(3, 3)
    found = through_disk({"in": weight, "out": weight, "row": weight[0]})
    assert torch.equal(found["in"], weight)
    assert torch.equal(found["out"], weight)
    assert torch.equal(found["row"], weight[0])


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop])
def test_an_optimisers_state_goes_on_to_the_bit(kind: type[torch.optim.Optimizer]) -> None:
    ends = []
    for interrupted in (False, True):
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = kind(model.parameters(), lr=0.1)
        for step in range(6):
            if interrupted and step == 3:
                saved = through_disk(optimizer.state_dict())
                optimizer = kind(model.parameters(), lr=0.7)
                optimizer.load_state_dict(saved)
            model(torch.ones(1, 3)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        ends.append(model.weight.detach().clone())
    assert torch.equal(*ends)


def test_random_state_draws_the_same_again() -> None:
    saved = through_disk(random_state())
    first = torch.rand(5)
    set_random_state(saved)
    assert torch.equal(torch.rand(5), first)


def test_what_cannot_be_saved_is_named() -> None:
    with pytest.raises(StateError, match=r"state\.optimizer\.hook is a function"):
        pack({"optimizer": {"hook": lambda: None}})
