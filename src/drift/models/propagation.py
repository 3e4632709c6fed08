"""Shared parts of graph models with many trials: sparse products, the normalised graph, random masks, row selection.

Stacked tensors are `(trials, nodes, width)`. A product is computed trial by trial, because sixteen columns fit in the
processor's cache: twenty trials at once, 320 columns, take 1.5 times as long as twenty in sequence.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from drift.data.neighbours import checked_edges
from drift.errors import ConfigError, ShapeError

BLOCK = 32  # columns that are propagated together: as many as fit in the processor's cache
WEYL = 2654435769  # 2^32 over the golden ratio: adding it repeatedly visits all 32-bit seeds evenly


class Sparse:
    """A constant sparse matrix M `(n, m)`, stored by rows and by columns, so that no step has to transpose it.

    rows, columns: M and Mᵀ in CSR form, with the 32-bit indices that torch's sparse library expects.
    order: for each value of Mᵀ, its position among M's values.
    """

    def __init__(self, rows: Tensor, columns: Tensor, order: Tensor) -> None:
        self.rows, self.columns, self.order = rows, columns, order

    @classmethod
    def of(cls, matrix: Tensor) -> "Sparse":
        """Build it from a matrix in any of torch's layouts."""
        matrix = _by_rows(matrix)
        n, m = matrix.shape
        starts, column, values = matrix.crow_indices(), matrix.col_indices(), matrix.values()
        order = torch.argsort(column, stable=True)
        row = torch.repeat_interleave(torch.arange(n), starts.diff())
        column_starts = nn.functional.pad(torch.bincount(column, minlength=m).cumsum(0), (1, 0))
        return cls(
            _csr(starts.int(), column.int(), values, (n, m)),
            _csr(column_starts.int(), row[order].int(), values[order], (m, n)),
            order,
        )

    @property
    def values(self) -> Tensor:
        """M's non-zero values, row by row."""
        return self.rows.values()

    def __matmul__(self, dense: Tensor) -> Tensor:
        """Return M H for each trial: `(trials, m, width)` to `(trials, n, width)`."""
        return self.product(dense)

    def product(self, dense: Tensor, values: Tensor | None = None) -> Tensor:
        """Return M_s H_s for each trial s.

        dense: H, `(trials, m, width)`. values: the non-zero values of each M_s, `(trials, values of M)`. Default: M's.
        """
        product: Tensor = _Product.apply(dense, self, values)  # type: ignore[no-untyped-call]
        return product

    def propagate_mean(self, dense: Tensor, order: int) -> Tensor:
        """Return (I + M + ... + M^K) H / (K + 1) for each trial. M must be symmetric; K: `order`; H: `dense`."""
        mixed: Tensor = _Mixed.apply(dense, self, order)  # type: ignore[no-untyped-call]
        return mixed

    def apply(self, change: Callable[[Tensor], Tensor]) -> "Sparse":
        """Return the matrix with `change` applied to its tensors, as `nn.Module.to` does for device and dtype."""
        return Sparse(change(self.rows), change(self.columns), change(self.order))

    def __deepcopy__(self, memo: dict[int, Any]) -> "Sparse":
        return self  # constant: student and teacher share it


class Dense:
    """A constant dense matrix with the interface of `Sparse`: for features of which most are not 0.

    matrix: M, `(n, m)`.
    """

    def __init__(self, matrix: Tensor) -> None:
        self.rows = matrix.detach()

    @property
    def values(self) -> Tensor:
        """M's values, row by row."""
        return self.rows.flatten()

    def __matmul__(self, dense: Tensor) -> Tensor:
        return self.rows @ dense

    def product(self, dense: Tensor, values: Tensor | None = None) -> Tensor:
        """Return M_s H_s for each trial s; see `Sparse.product`."""
        return self.rows @ dense if values is None else values.view(-1, *self.rows.shape) @ dense

    def apply(self, change: Callable[[Tensor], Tensor]) -> "Dense":
        """Return the matrix with `change` applied to it."""
        return Dense(change(self.rows))

    def __deepcopy__(self, memo: dict[int, Any]) -> "Dense":
        return self  # constant: student and teacher share it


class _Product(torch.autograd.Function):
    """M H; the gradient of H is Mᵀ G, and M has none."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, sparse: Sparse, values: Tensor | None) -> Tensor:
        ctx.sparse, ctx.values = sparse, values
        return _multiply(sparse.rows, dense, values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _multiply(ctx.sparse.columns, gradient, ctx.values, ctx.sparse.order), None, None


class _Mixed(torch.autograd.Function):
    """A polynomial of a symmetric matrix. It is symmetric too, so backward is the same as forward."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, sparse: Sparse, order: int) -> Tensor:
        ctx.sparse, ctx.order = sparse, order
        mixed = torch.empty_like(dense)
        for one, out in zip(dense.unbind(), mixed.unbind(), strict=True):
            for part, target in zip(torch.split(one, BLOCK, 1), torch.split(out, BLOCK, 1), strict=True):
                part = total = part.contiguous()
                for _ in range(order):
                    total = torch.addmm(part, sparse.rows, total)  # H + M (H + M (...))
                torch.div(total, order + 1, out=target)
        return mixed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _Mixed.forward(ctx, gradient, ctx.sparse, ctx.order), None, None


def _multiply(matrix: Tensor, dense: Tensor, values: Tensor | None, order: Tensor | None = None) -> Tensor:
    product = dense.new_empty(len(dense), len(matrix), dense.shape[-1])
    starts, column, shape = matrix.crow_indices(), matrix.col_indices(), tuple(matrix.shape)
    for trial, (one, out) in enumerate(zip(dense.unbind(), product.unbind(), strict=True)):
        if values is not None:
            of_trial = values[trial] if order is None else values[trial].index_select(0, order)
            matrix = _csr(starts, column, of_trial, shape)
        out.addmm_(matrix, one, beta=0)  # in place: torch.mm would first fill and copy the result
    return product


def _csr(starts: Tensor, column: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    return torch.sparse_csr_tensor(starts, column, values, shape, check_invariants=False)  # valid by construction


def normalized_adjacency(edges: Tensor | np.ndarray, nodes: int, *, by_rows: bool = False) -> Sparse:
    """Return Â = D^-1/2 (A + I) D^-1/2, where A has every edge once in each direction; by rows, D^-1 (A + I).

    edges: source and target nodes, `(2, m)`, in one direction or both. nodes: number of nodes.
    """
    one_way = torch.from_numpy(checked_edges(edges, nodes).astype(np.int64))
    loops = torch.arange(nodes).expand(2, nodes)
    source, target = torch.cat([one_way, one_way.flip(0), loops], dim=1)
    ends = torch.unique(source * nodes + target)
    entries = torch.stack([ends // nodes, ends % nodes])
    degree = torch.bincount(entries[0])
    values = 1 / degree[entries[0]].float() if by_rows else degree[entries].prod(0).float().rsqrt()
    return Sparse.of(torch.sparse_coo_tensor(entries, values, (nodes, nodes), check_invariants=False))


def row_normalized(features: Tensor) -> Tensor:
    """Return each row divided by its sum, as a sparse matrix; rows that sum to 0 are unchanged."""
    features = _by_rows(features)
    starts, values = features.crow_indices(), features.values()
    row = torch.repeat_interleave(torch.arange(len(features)), starts.diff())
    sums = values.new_zeros(len(features)).index_add_(0, row, values)
    return _csr(starts, features.col_indices(), values / torch.where(sums == 0, 1, sums)[row], tuple(features.shape))


def dense_row_normalized(features: Tensor) -> Tensor:
    """Like `row_normalized`, but dense: if most features are non-zero, the sparse form is three times as large."""
    dense = features.to_dense()
    sums = dense.sum(1, keepdim=True)
    return dense / torch.where(sums == 0, 1, sums)


def _by_rows(matrix: Tensor) -> Tensor:
    """Return the matrix in CSR form."""
    if matrix.dim() != 2:
        raise ShapeError(f"a tensor {tuple(matrix.shape)} is not a matrix; give features as (nodes, d)")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return matrix.detach().to_sparse_csr()


class Streams(nn.Module):
    """Random masks with one stream per trial: a draw depends only on the trial's seed and its number of draws.

    So a trial draws the same numbers alone and among others, and the count, a buffer, is enough to resume exactly.

    seeds: one per trial.
    """

    drawn: Tensor

    def __init__(self, seeds: Sequence[int]) -> None:
        super().__init__()
        if len(seeds) == 0:
            raise ConfigError("seeds is empty; give one per trial")
        self.keys = [int(np.random.SeedSequence(seed).generate_state(1)[0]) for seed in seeds]
        self.register_buffer("drawn", torch.zeros(len(seeds), dtype=torch.int64))

    def rekey(self) -> None:
        """Switch to other streams: a teacher draws different noise, with the same count as the student."""
        self.keys = [int(np.random.SeedSequence((key, 1)).generate_state(1)[0]) for key in self.keys]

    def generators(self) -> list[torch.Generator]:
        """Return a new generator per trial, and increase the count."""
        counts = self.drawn.tolist()
        self.drawn += 1
        return [
            torch.Generator().manual_seed((key + count * WEYL) % 2**32)
            for key, count in zip(self.keys, counts, strict=True)
        ]

    def kept(self, rate: float, *shape: int) -> Tensor:
        """Return a dropout mask, `(trials, *shape)`: 0 with probability `rate`, rounded to 16 bits, else 1.

        An element uses 16 bits of a random 64-bit word, or 1 bit if the rate is 0.5. `torch.bernoulli` draws one word
        per element, and takes ten times as long.
        """
        size, bits = math.prod(shape), 1 if rate == 0.5 else 16
        words = torch.empty(-(-size * bits // 64), dtype=torch.int64)
        drawn = words.numpy()  # the same memory; numpy unpacks and compares bits several times faster
        kept = np.empty((len(self.keys), size), dtype=np.float32)
        for trial, generator in enumerate(self.generators()):
            words.random_(-(2**63), None, generator=generator)
            if bits == 1:
                kept[trial] = np.unpackbits(drawn.view(np.uint8), count=size)
            else:
                kept[trial] = drawn.view(np.int16)[:size] >= round(rate * 2**16) - 2**15
        return torch.from_numpy(kept).view(-1, *shape).to(self.drawn.device)

    def dropout(self, values: Tensor, rate: float) -> Tensor:
        """Return a vector after dropout, for every trial: `(trials, len(values))`."""
        return self.kept(rate, len(values)).to(values.dtype).mul_(values / (1 - rate))


class OnGraph(nn.Module):
    """Base of models that are called with node indices and store the graph.

    The graph is constant: copies of the model share it, and it is not part of the state.

    features: X `(nodes, d)`, sparse or dense. edges, by_rows: see `normalized_adjacency`. seeds: one per trial.
    """

    full_graph = True  # all nodes are computed at every call, so a game requests all rows at once

    def __init__(
        self, features: Tensor, edges: Tensor | np.ndarray, seeds: Sequence[int], *, by_rows: bool = False
    ) -> None:
        super().__init__()
        self.features = _constant(features)
        self.nodes, self.trials = len(features), len(seeds)
        self.adjacency = normalized_adjacency(edges, self.nodes, by_rows=by_rows)
        self.streams = Streams(seeds)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "OnGraph":
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.features, self.adjacency = self.features.apply(fn), self.adjacency.apply(fn)
        return self


def _constant(features: Tensor) -> Sparse | Dense:
    """Return features in the form in which products with them are fast: dense if half of them or more are not 0."""
    if features.layout == torch.strided and 2 * int((features != 0).sum()) >= features.numel():
        return Dense(features)
    return Sparse.of(features)


def check_rate(name: str, rate: float) -> float:
    """Return a dropout rate; ConfigError if it is not in [0, 1). name: of the setting, for the message."""
    if not 0 <= rate < 1:
        raise ConfigError(f"{name}={rate!r}: give the share to drop, from 0 to below 1")
    return rate


def select_rows(logits: Tensor, rows: Tensor) -> Tensor:
    """Return rows of logits `(trials, nodes, C)`. rows: nodes for all trials, `(N,)`, or per trial, `(trials, N)`."""
    if rows.dim() == 1:
        return logits.index_select(1, rows)
    trials, nodes, classes = logits.shape
    if rows.dim() != 2 or len(rows) != trials:
        raise ShapeError(f"rows are {tuple(rows.shape)} for {trials} trials; give (N,), or ({trials}, N)")
    # One flat selection: gathering with an index per class is several times slower, forward and backward.
    flat = rows + nodes * torch.arange(trials, device=rows.device).unsqueeze(1)
    return logits.reshape(trials * nodes, classes).index_select(0, flat.flatten()).view(trials, -1, classes)
