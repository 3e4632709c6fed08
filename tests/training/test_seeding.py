"""Seeded blocks: the seed alone decides inside, and outside nothing happened."""

import pytest
import torch
from torch import nn

from drift.training.seeding import seeded


def draw() -> torch.Tensor:
    return torch.cat([torch.rand(5), torch.randn(5), nn.Linear(3, 2).weight.detach().flatten()])


def test_the_seed_alone_decides() -> None:
    draws = []
    for before in (1, 2):
        torch.manual_seed(before)
        with seeded(7):
            draws.append(draw())
    with seeded(8):
        other = draw()
    assert torch.equal(*draws)
    assert not torch.equal(draws[0], other)


def test_it_is_the_stream_of_torch_manual_seed() -> None:
    with seeded(7):
        inside = draw()
    torch.manual_seed(7)
    assert torch.equal(inside, draw())


def test_the_callers_stream_goes_on_as_if_the_block_were_not_there() -> None:
    torch.manual_seed(3)
    expected = [draw(), draw()]
    torch.manual_seed(3)
    first = draw()
    with seeded(7):
        draw()
    assert torch.equal(first, expected[0])
    assert torch.equal(draw(), expected[1])


def test_the_callers_stream_survives_a_fault() -> None:
    before = torch.random.get_rng_state()
    with pytest.raises(ZeroDivisionError), seeded(7):
        _ = 1 / torch.rand(1).mul(0).int().item()
    assert torch.equal(before, torch.random.get_rng_state())


def test_blocks_nest() -> None:
    with seeded(1):
        expected = [torch.rand(3), torch.rand(3)]
    with seeded(1):
        first = torch.rand(3)
        with seeded(2):
            inner = torch.rand(3)
        second = torch.rand(3)
    assert torch.equal(first, expected[0])
    assert torch.equal(second, expected[1])
    assert not torch.equal(inner, first)
