"""What graph models of many trials share: sparse products, the normalised graph, random masks, rows of logits.

Everything stacked is `(trials, nodes, width)`. A product runs trial by trial, because sixteen columns at a time stay in
the processor's cache: twenty trials side by side, 320 columns, take half as long again as one after another.
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

BLOCK = 32  # columns that travel together: as many as stay in the processor's cache
WEYL = 2654435769  # 2^32 over the golden ratio: adding it again and again goes evenly through all seeds of 32 bits


class Sparse:
    """A constant sparse matrix M `(n, m)`, by rows and by columns, so that no step has to turn it around.

    rows: M, columns: Mᵀ, in CSR form with 32-bit indices, as the library under torch wants them.
    order: which of M's values each value of Mᵀ is.
    """

    def __init__(self, rows: Tensor, columns: Tensor, order: Tensor) -> None:
        self.rows, self.columns, self.order = rows, columns, order

    @classmethod
    def of(cls, matrix: Tensor) -> "Sparse":
        """From a matrix in any of torch's layouts."""
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
        """M's values, row by row."""
        return self.rows.values()

    def __matmul__(self, dense: Tensor) -> Tensor:
        """M H for each trial: `(trials, m, width)` to `(trials, n, width)`."""
        return self.product(dense)

    def product(self, dense: Tensor, values: Tensor | None = None) -> Tensor:
        """M_s H_s for each trial s. values: those of M_s in place of M's own, `(trials, values of M)`."""
        product: Tensor = _Product.apply(dense, self, values)  # type: ignore[no-untyped-call]
        return product

    def propagate_mean(self, dense: Tensor, order: int) -> Tensor:
        """(I + M + ... + M^K) H / (K + 1) for each trial, where M is symmetric and K is `order`."""
        mixed: Tensor = _Mixed.apply(dense, self, order)  # type: ignore[no-untyped-call]
        return mixed

    def apply(self, change: Callable[[Tensor], Tensor]) -> "Sparse":
        """The same matrix on another device or of another type, as `nn.Module.to` changes tensors."""
        return Sparse(change(self.rows), change(self.columns), change(self.order))

    def __deepcopy__(self, memo: dict[int, Any]) -> "Sparse":
        return self  # it never changes: student and teacher look at the same one


class _Product(torch.autograd.Function):
    """M H; on the way back Mᵀ G for H and nothing for M."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, sparse: Sparse, values: Tensor | None) -> Tensor:
        ctx.sparse, ctx.values = sparse, values
        return _multiply(sparse.rows, dense, values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _multiply(ctx.sparse.columns, gradient, ctx.values, ctx.sparse.order), None, None


class _Mixed(torch.autograd.Function):
    """A polynomial of a symmetric matrix is symmetric: the way back is the way there."""

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
            own = values[trial] if order is None else values[trial].index_select(0, order)
            matrix = _csr(starts, column, own, shape)
        out.addmm_(matrix, one, beta=0)  # in place: torch.mm would fill the result and copy it first
    return product


def _csr(starts: Tensor, column: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    return torch.sparse_csr_tensor(starts, column, values, shape, check_invariants=False)  # right by construction


def normalized_adjacency(edges: Tensor | np.ndarray, nodes: int) -> Sparse:
    """Â = D^-1/2 (A + I) D^-1/2, where A has every edge in both directions, once.

    edges: node numbers `(2, m)`, from and to, one direction or both.
    """
    one_way = torch.from_numpy(checked_edges(edges, nodes).astype(np.int64))
    loops = torch.arange(nodes).expand(2, nodes)
    source, target = torch.cat([one_way, one_way.flip(0), loops], dim=1)
    ends = torch.unique(source * nodes + target)
    entries = torch.stack([ends // nodes, ends % nodes])
    degree = torch.bincount(entries[0])
    values = degree[entries].prod(0).float().rsqrt()
    return Sparse.of(torch.sparse_coo_tensor(entries, values, (nodes, nodes), check_invariants=False))


def row_normalized(features: Tensor) -> Tensor:
    """Each row divided by its sum, sparse; rows that sum to 0 stay as they are."""
    features = _by_rows(features)
    starts, values = features.crow_indices(), features.values()
    row = torch.repeat_interleave(torch.arange(len(features)), starts.diff())
    sums = values.new_zeros(len(features)).index_add_(0, row, values)
    return _csr(starts, features.col_indices(), values / torch.where(sums == 0, 1, sums)[row], tuple(features.shape))


def dense_row_normalized(features: Tensor) -> Tensor:
    """As `row_normalized`, dense: where most features are not zero, the sparse form is three times as large."""
    dense = features.to_dense()
    sums = dense.sum(1, keepdim=True)
    return dense / torch.where(sums == 0, 1, sums)


def _by_rows(matrix: Tensor) -> Tensor:
    """The same matrix in CSR form."""
    if matrix.dim() != 2:
        raise ShapeError(f"a tensor {tuple(matrix.shape)} is no matrix; give features as (nodes, d)")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return matrix.detach().to_sparse_csr()


class Streams(nn.Module):
    """Random masks, from a stream a trial: what a trial draws depends on its seed and on how often it has drawn.

    So a trial draws the same alone as among others, and the count, a buffer, is all it takes to go on exactly.
    """

    drawn: Tensor

    def __init__(self, seeds: Sequence[int]) -> None:
        super().__init__()
        if len(seeds) == 0:
            raise ConfigError("seeds is empty; give one a trial")
        self.keys = [int(np.random.SeedSequence(seed).generate_state(1)[0]) for seed in seeds]
        self.register_buffer("drawn", torch.zeros(len(seeds), dtype=torch.int64))

    def rekey(self) -> None:
        """Draw from other streams from now on: a teacher has noise of its own, and the student's count."""
        self.keys = [int(np.random.SeedSequence((key, 1)).generate_state(1)[0]) for key in self.keys]

    def generators(self) -> list[torch.Generator]:
        """A fresh generator a trial."""
        counts = self.drawn.tolist()
        self.drawn += 1
        return [
            torch.Generator().manual_seed((key + count * WEYL) % 2**32)
            for key, count in zip(self.keys, counts, strict=True)
        ]

    def kept(self, rate: float, *shape: int) -> Tensor:
        """What dropout leaves of every trial: 0 with probability `rate`, to 16 bits, else 1; `(trials, *shape)`.

        Of a random word of 64 bits every element takes 16, or one if the rate is a half: `torch.bernoulli` makes a
        word for each, and takes ten times as long.
        """
        size, bits = math.prod(shape), 1 if rate == 0.5 else 16
        words = torch.empty(-(-size * bits // 64), dtype=torch.int64)
        drawn = words.numpy()  # the same memory; numpy takes bits apart and compares several times faster
        kept = np.empty((len(self.keys), size), dtype=np.float32)
        for trial, generator in enumerate(self.generators()):
            words.random_(-(2**63), None, generator=generator)
            if bits == 1:
                kept[trial] = np.unpackbits(drawn.view(np.uint8), count=size)
            else:
                kept[trial] = drawn.view(np.int16)[:size] >= round(rate * 2**16) - 2**15
        return torch.from_numpy(kept).view(-1, *shape).to(self.drawn.device)

    def dropout(self, values: Tensor, rate: float) -> Tensor:
        """What dropout makes of a vector, for every trial: `(trials, len(values))`."""
        return self.kept(rate, len(values)).to(values.dtype).mul_(values / (1 - rate))


class OnGraph(nn.Module):
    """A model that is called with the numbers of nodes; the graph is inside.

    The graph never changes: copies of the model share it, and it is no part of the state.

    features: X `(nodes, d)`, sparse or dense. edges: see `normalized_adjacency`. seeds: one a trial.
    """

    full_graph = True  # every node is computed whichever are asked for: a game asks for all it needs at once

    def __init__(self, features: Tensor, edges: Tensor | np.ndarray, seeds: Sequence[int]) -> None:
        super().__init__()
        self.features = Sparse.of(features)
        self.nodes, self.trials = len(features), len(seeds)
        self.adjacency = normalized_adjacency(edges, self.nodes)
        self.streams = Streams(seeds)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "OnGraph":
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.features, self.adjacency = self.features.apply(fn), self.adjacency.apply(fn)
        return self


def check_rate(name: str, rate: float) -> float:
    """A share of what is dropped: from 0 to below 1."""
    if not 0 <= rate < 1:
        raise ConfigError(f"{name}={rate!r}: give the share to drop, from 0 to below 1")
    return rate


def select_rows(logits: Tensor, rows: Tensor) -> Tensor:
    """Logits `(trials, nodes, C)` of these nodes: the same for all trials, `(N,)`, or each its own, `(trials, N)`."""
    if rows.dim() == 1:
        return logits.index_select(1, rows)
    trials, nodes, classes = logits.shape
    if rows.dim() != 2 or len(rows) != trials:
        raise ShapeError(f"rows are {tuple(rows.shape)} for {trials} trials; give (N,), or ({trials}, N)")
    # One flat selection: gathering with an index for every class is several times slower, there and back.
    flat = rows + nodes * torch.arange(trials, device=rows.device).unsqueeze(1)
    return logits.reshape(trials * nodes, classes).index_select(0, flat.flatten()).view(trials, -1, classes)
