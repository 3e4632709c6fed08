"""Rows of the normalised graph are exact, sampled rows are unbiased, and the sample depends on the seed."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from drift.data.neighbours import Block, Neighbours, SampledNodes, aggregate_neighbours, distinct
from drift.errors import ConfigError, DataError, ShapeError

NODES = 8
EDGES = np.array([[0, 0, 0, 0, 0, 0, 1, 2, 1, 3], [1, 2, 3, 4, 5, 6, 2, 1, 2, 3]])  # 0 is a hub, 7 is isolated
ALL = torch.arange(NODES)
edge_lists = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=30).map(
    lambda pairs: np.array(pairs, dtype=np.int64).reshape(-1, 2).T
)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normalized(edges: np.ndarray) -> np.ndarray:
    """Â as a dense matrix, from its definition."""
    a = np.eye(NODES)
    a[edges[0], edges[1]] = a[edges[1], edges[0]] = 1
    degree = a.sum(0)
    return a / np.sqrt(np.outer(degree, degree))


def dense(block: Block) -> np.ndarray:
    return aggregate_neighbours(torch.eye(NODES, dtype=torch.float64), block).numpy()


def members(block: Block) -> list[list[int]]:
    return [part.tolist() for part in torch.split(block.sources, block.starts.diff().tolist())]


@given(edge_lists, st.lists(st.integers(0, NODES - 1), min_size=1, max_size=12))
def test_rows_are_those_of_the_normalised_graph(edges: np.ndarray, nodes: list[int]) -> None:
    """For edges in either direction, with repetitions, and for nodes in any order, with repetitions."""
    block = Neighbours(edges, NODES).rows(torch.tensor(nodes))
    np.testing.assert_allclose(dense(block), normalized(edges)[nodes], rtol=1e-6)


@given(edge_lists, st.integers(1, 4), st.integers(0, 99))
def test_drawn_neighbours_are_different_and_the_node_is_always_there(edges: np.ndarray, fanout: int, seed: int) -> None:
    a = normalized(edges) > 0
    block = Neighbours(edges, NODES).draw(ALL, fanout, seeded(seed))
    for node, (own, *drawn) in enumerate(members(block)):
        assert own == node
        assert len(set(drawn)) == len(drawn) == min(fanout, a[node].sum() - 1)
        assert node not in drawn
        assert a[node, drawn].all()


@given(edge_lists)
def test_enough_draws_are_all_neighbours(edges: np.ndarray) -> None:
    neighbours = Neighbours(edges, NODES)
    for one, other in zip(neighbours.draw(ALL, NODES, seeded(0)), neighbours.rows(ALL), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("fanout", [1, 2, 5])
def test_the_mean_over_draws_is_the_full_row(fanout: int) -> None:
    neighbours, draws = Neighbours(EDGES, NODES), 4000
    values = torch.randn(NODES, 3, generator=seeded(0), dtype=torch.float64)
    many = aggregate_neighbours(values, neighbours.draw(ALL.repeat(draws), fanout, seeded(1))).view(draws, NODES, 3)
    full = aggregate_neighbours(values, neighbours.rows(ALL))
    error = many.std(0) / draws**0.5
    assert bool(((many.mean(0) - full).abs() <= 4.5 * error + 1e-7).all())
    assert bool((error[0] > 0).all())  # the hub's neighbours were not all drawn


def test_every_set_is_equally_likely() -> None:
    draws = 20000
    actual, counts = np.unique(np.sort(distinct(np.full(draws, 5), 3, seeded(0)), 1), axis=0, return_counts=True)
    assert actual.tolist() == [list(each) for each in combinations(range(5), 3)]
    chi_square = ((counts - draws / 10) ** 2 / (draws / 10)).sum()
    assert chi_square < 27.9  # exceeded with probability 0.001, at nine degrees of freedom


def test_blocks_of_two_layers_fit_together() -> None:
    """With all neighbours in both layers, the product of the two blocks is Â² on the requested rows."""
    first, second = Neighbours(EDGES, NODES).sample(torch.tensor([4, 7, 4]), (None, None), seeded(0))
    a = normalized(EDGES)
    two_steps = aggregate_neighbours(aggregate_neighbours(torch.eye(NODES, dtype=torch.float64), first), second)
    np.testing.assert_allclose(two_steps.numpy(), (a @ a)[[4, 7, 4]], rtol=1e-6, atol=1e-12)
    assert len(first.starts) - 1 == 3  # 4, 7 and the hub: nothing is computed that is not needed


def test_fanouts_are_those_of_the_first_layer_first() -> None:
    first, second = Neighbours(EDGES, NODES).sample(torch.tensor([0]), (1, 4), seeded(0))
    assert second.starts.diff().tolist() == [5]
    assert int(first.starts.diff().max()) == 2


@pytest.mark.parametrize("size", [1, 3, 8, 100])
def test_pieces_are_all_rows_in_order(size: int) -> None:
    rows = np.concatenate([dense(block) for block in Neighbours(EDGES, NODES).pieces(size)])
    np.testing.assert_allclose(rows, normalized(EDGES), rtol=1e-6)


def test_gradients_go_back_through_the_block() -> None:
    block = Neighbours(EDGES, NODES).rows(ALL)
    values = torch.randn(NODES, 2, dtype=torch.float64, generator=seeded(0), requires_grad=True)
    assert torch.autograd.gradcheck(lambda values: aggregate_neighbours(values, block), values)


def examples(**options: object) -> SampledNodes:
    features = torch.randn(NODES, 3, generator=seeded(2))
    return SampledNodes(features, Neighbours(EDGES, NODES), (2, 2), **options)  # type: ignore[arg-type]


def same(one: tuple[Tensor, Block], other: tuple[Tensor, Block]) -> bool:
    tensors = zip((one[0], *one[1]), (other[0], *other[1]), strict=True)
    return all(a.shape == b.shape and torch.equal(a, b) for a, b in tensors)


def test_inputs_depend_on_seed_and_rows_and_nothing_else() -> None:
    before = torch.get_rng_state()
    one = examples(seed=3)
    assert same(one.inputs(ALL), one.inputs(ALL))
    assert same(one.inputs(ALL), examples(seed=3).inputs(ALL))
    assert not same(one.inputs(ALL), examples(seed=4).inputs(ALL))
    # Every node is a source, so row numbers are node numbers. The hub is requested first and last.
    forth, back = members(one.inputs(ALL)[1])[0], members(one.inputs(ALL.flip(0))[1])[-1]
    assert set(forth) != set(back)
    assert torch.equal(torch.get_rng_state(), before)


def test_features_may_stay_on_disk(tmp_path: Path) -> None:
    one = examples()
    one.features.numpy().tofile(tmp_path / "features")
    mapped = torch.from_numpy(np.memmap(tmp_path / "features", dtype=np.float32, mode="c", shape=(NODES, 3)))
    assert same(SampledNodes(mapped, one.neighbours, (2, 2)).inputs(ALL), one.inputs(ALL))


@pytest.mark.parametrize(
    ("edges", "error", "message"),
    [
        (np.zeros((3, 2), dtype=int), ShapeError, r"int64 \(3, 2\)"),
        (np.zeros((2, 2)), ShapeError, "float64"),
        (np.array([[0], [8]]), DataError, "nodes 0 to 8; there are 0 to 7"),
        (np.array([[-1], [2]]), DataError, "nodes -1 to 2"),
    ],
)
def test_edges_that_cannot_be(edges: np.ndarray, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Neighbours(edges, NODES)


def test_features_rows_and_fanouts_that_cannot_be() -> None:
    neighbours = Neighbours(EDGES, NODES)
    with pytest.raises(ShapeError, match="give dense"):
        SampledNodes(torch.eye(NODES).to_sparse(), neighbours)
    with pytest.raises(ShapeError, match="of 3 nodes, the graph has 8"):
        SampledNodes(torch.eye(3), neighbours)
    with pytest.raises(ShapeError, match="not stacked"):
        examples().inputs(ALL.view(2, -1))
    with pytest.raises(ConfigError, match="fanout=0"):
        neighbours.draw(ALL, 0, seeded(0))
