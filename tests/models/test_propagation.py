"""Sparse products equal dense ones, forward and backward; each trial has its own masks; rows are selected exactly."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from drift.errors import ConfigError, DataError, ShapeError
from drift.models.propagation import Sparse, Streams, check_rate, normalized_adjacency, row_normalized, select_rows

NODES = 6
some_edges = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=12)


def as_edges(pairs: list[tuple[int, int]]) -> Tensor:
    return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def holes(*shape: int) -> Tensor:
    """Return a matrix that is two thirds zero, with one full row and one full column."""
    matrix = numbers(*shape) * (numbers(*shape, seed=1) > 0.4)
    matrix[1], matrix[:, 2] = 0, 0
    return matrix


@given(some_edges)
def test_the_adjacency_is_the_formula(pairs: list[tuple[int, int]]) -> None:
    a = torch.eye(NODES)
    for i, j in pairs:
        a[i, j] = a[j, i] = 1
    scale = a.sum(1).rsqrt().diag()
    adjacency = normalized_adjacency(as_edges(pairs), NODES)
    torch.testing.assert_close(adjacency.rows.to_dense(), scale @ a @ scale)
    torch.testing.assert_close(adjacency.columns.to_dense(), adjacency.rows.to_dense(), rtol=0, atol=0)


def test_directions_repeats_and_loops_count_once() -> None:
    once = normalized_adjacency(as_edges([(0, 1), (1, 2)]), 4).rows.to_dense()
    again = normalized_adjacency(np.array([[1, 0, 2, 1, 3], [0, 1, 1, 2, 3]]), 4).rows.to_dense()
    torch.testing.assert_close(again, once, rtol=0, atol=0)
    assert again[3].tolist() == [0, 0, 0, 1]  # a node without edges keeps its own value


@pytest.mark.parametrize(
    ("edges", "error", "message"),
    [
        (torch.tensor([[0, 1], [1, 7]]), DataError, "nodes 0 to 7; there are 0 to 3"),
        (torch.tensor([[0, -1], [1, 2]]), DataError, "nodes -1 to 2"),
        (torch.tensor([[0, 1, 2]]), ShapeError, r"\(1, 3\)"),
        (torch.tensor([[0.0], [1.0]]), ShapeError, "float32"),
    ],
)
def test_edges_that_cannot_be(edges: Tensor, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        normalized_adjacency(edges, 4)


@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_coo, torch.sparse_csr])
def test_products_equal_dense_ones_there_and_back(layout: torch.layout) -> None:
    matrix, dense = holes(7, 5), numbers(3, 5, 4).requires_grad_()
    sparse = Sparse.of(matrix if layout == torch.strided else matrix.to_sparse(layout=layout))
    torch.testing.assert_close(sparse @ dense, matrix @ dense)
    assert torch.autograd.gradcheck(lambda h: sparse @ h, dense)


def test_a_gradient_that_is_one_number_everywhere() -> None:
    matrix, dense = holes(7, 5), numbers(3, 5, 4).requires_grad_()
    (Sparse.of(matrix) @ dense).sum().backward()
    torch.testing.assert_close(dense.grad, matrix.sum(0)[:, None].expand(3, 5, 4))


def test_features_that_are_no_matrix() -> None:
    with pytest.raises(ShapeError, match=r"\(3, 4, 5\) is not a matrix"):
        Sparse.of(torch.zeros(3, 4, 5))


def test_every_trial_can_have_values_of_its_own() -> None:
    matrix, dense = holes(7, 5), numbers(3, 5, 4).requires_grad_()
    sparse = Sparse.of(matrix)
    factors = numbers(3, len(sparse.values), seed=2)
    each = torch.zeros(3, 7, 5, dtype=torch.float64)
    each[:, matrix != 0] = sparse.values * factors
    torch.testing.assert_close(sparse.product(dense, sparse.values * factors), each @ dense)
    assert torch.autograd.gradcheck(lambda h: sparse.product(h, sparse.values * factors), dense)


@pytest.mark.parametrize("order", [0, 1, 4])
def test_mixing_is_the_mean_of_powers(order: int) -> None:
    a = normalized_adjacency(as_edges([(0, 1), (1, 2), (2, 4), (0, 5)]), NODES).apply(torch.Tensor.double)
    h, dense = numbers(2, NODES, 40).requires_grad_(), a.rows.to_dense()  # more columns than are propagated together
    mean = sum(torch.linalg.matrix_power(dense, k) for k in range(order + 1)) / (order + 1)
    torch.testing.assert_close(a.propagate_mean(h, order), mean @ h)
    assert torch.autograd.gradcheck(lambda h: a.propagate_mean(h, order), h)


def test_copies_share_the_matrix() -> None:
    sparse = Sparse.of(holes(4, 4))
    assert copy.deepcopy([sparse])[0] is sparse


@pytest.mark.parametrize("sparse", [True, False])
def test_rows_sum_to_one_after_normalisation(sparse: bool) -> None:
    x = torch.tensor([[2.0, 0.0, 6.0], [0.0, 0.0, 0.0], [0.0, 5.0, 0.0]])
    normalized = row_normalized(x.to_sparse_csr() if sparse else x)
    assert normalized.layout == torch.sparse_csr
    assert normalized.to_dense().tolist() == [[0.25, 0, 0.75], [0, 0, 0], [0, 1, 0]]


def test_a_trial_draws_the_same_alone_as_among_others() -> None:
    together = Streams([5, 6, 7])
    for seed, masks in zip([5, 6, 7], together.kept(0.5, 101), strict=True):
        torch.testing.assert_close(Streams([seed]).kept(0.5, 101)[0], masks, rtol=0, atol=0)


def test_seeds_and_draws_differ() -> None:
    streams = Streams([0, 1])
    masks = torch.cat([streams.kept(0.5, 4000) for _ in range(3)]) - 0.5  # two seeds, three draws
    agreement = (masks @ masks.T) / 1000  # from -1 to 1; 0.016 is one standard deviation
    assert (agreement - torch.eye(6)).abs().max() < 0.08


def test_a_saved_count_goes_on_exactly() -> None:
    first, second = Streams([3]), Streams([3])
    first.kept(0.5, 10)
    second.load_state_dict(first.state_dict())
    torch.testing.assert_close(second.kept(0.5, 10), first.kept(0.5, 10), rtol=0, atol=0)


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.5, 0.8])
def test_the_rate_is_what_is_dropped(rate: float) -> None:
    kept = Streams([0]).kept(rate, 200, 501)
    assert kept.shape == (1, 200, 501)
    assert set(kept.unique().tolist()) <= {0.0, 1.0}
    assert abs(float(kept.mean()) - (1 - rate)) < 5 * (rate * (1 - rate) / kept.numel()) ** 0.5 + 1e-9


def test_dropout_keeps_the_mean() -> None:
    values = torch.tensor([1.0, 3.0, 0.0])
    drawn = Streams(range(4000)).dropout(values, 0.8)
    assert drawn[:, 1].unique().tolist() == pytest.approx([0, 15])
    torch.testing.assert_close(drawn.mean(0), values, rtol=0.15, atol=0)


def test_rows_for_all_and_rows_of_ones_own() -> None:
    logits = numbers(3, 5, 2).requires_grad_()
    rows, own = torch.tensor([4, 0, 0]), torch.tensor([[0, 1], [4, 4], [2, 0]])
    torch.testing.assert_close(select_rows(logits, rows), logits[:, rows])
    torch.testing.assert_close(
        select_rows(logits, own), torch.stack([one[r] for one, r in zip(logits, own, strict=True)])
    )
    assert torch.autograd.gradcheck(lambda x: select_rows(x, own), logits)


@pytest.mark.parametrize("rows", [torch.zeros(2, 4, dtype=torch.int64), torch.tensor(1)])
def test_rows_for_another_number_of_trials(rows: Tensor) -> None:
    with pytest.raises(ShapeError, match="3 trials"):
        select_rows(torch.zeros(3, 5, 2), rows)


@pytest.mark.parametrize("rate", [-0.1, 1.0, float("nan")])
def test_rates_that_cannot_be(rate: float) -> None:
    with pytest.raises(ConfigError, match="dropout="):
        check_rate("dropout", rate)


def test_no_seeds() -> None:
    with pytest.raises(ConfigError, match="one per trial"):
        Streams([])
