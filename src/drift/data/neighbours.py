"""Neighbour sampling for graphs that are too large for full-graph training."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.nn.functional import embedding_bag

from drift.data.batches import ranges
from drift.errors import ConfigError, DataError, ShapeError


class Block(NamedTuple):
    """Some rows of Â = D^-1/2 (A + I) D^-1/2, or estimates of them, in CSR form.

    starts: `(N + 1,)`; row i has the entries starts[i] to starts[i + 1]. sources: the node (column) of each entry.
    weights: its value.
    """

    starts: Tensor
    sources: Tensor
    weights: Tensor


def aggregate_neighbours(values: Tensor, block: Block) -> Tensor:
    """The rows of Â in `block` times `values`: `(N, width)`. Only the rows of `values` at its sources are read."""
    starts, sources, weights = block
    return embedding_bag(
        sources, values, starts, mode="sum", per_sample_weights=weights.to(values.dtype), include_last_offset=True
    )


def checked_edges(edges: Tensor | np.ndarray, nodes: int) -> np.ndarray:
    """Edges as an array; an error unless they are node numbers below `nodes`, `(2, m)`."""
    edges = np.asarray(edges)
    if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
        raise ShapeError(f"edges are {edges.dtype} {edges.shape}; give node numbers (2, m), from and to")
    if edges.size and not 0 <= edges.min() <= edges.max() < nodes:
        raise DataError(f"edges are of nodes {edges.min()} to {edges.max()}; there are 0 to {nodes - 1}")
    return edges


class Neighbours:
    """A graph whose rows can be sampled. Every edge is stored once in each direction; self-loops are dropped.

    edges: node numbers `(2, m)`, from and to, one direction or both. nodes: number of nodes.
    """

    def __init__(self, edges: Tensor | np.ndarray, nodes: int) -> None:
        edges = checked_edges(edges, nodes)
        start, end = edges[:, edges[0] != edges[1]]
        # Boolean, so that an edge given twice counts once.
        one_way = csr_matrix((np.ones(len(start), dtype=bool), (start, end)), shape=(nodes, nodes))
        graph = one_way + one_way.T
        self.starts, self.targets = graph.indptr.astype(np.int64), graph.indices
        self.scale = (np.diff(self.starts) + 1.0).astype(np.float32) ** -0.5  # D^-1/2 of A + I

    def __len__(self) -> int:
        return len(self.scale)

    def rows(self, nodes: Tensor) -> Block:
        """The exact rows of Â for these nodes."""
        rows = nodes.numpy()
        return self._block(rows, ranges(self.starts[rows], self._degrees(rows)), self._degrees(rows))

    def draw(self, nodes: Tensor, fanout: int, generator: torch.Generator) -> Block:
        """Unbiased estimates of the rows of Â: each node itself, and at most `fanout` random neighbours.

        Neighbours are drawn without replacement, with `generator`. If only some are drawn, their weights are scaled up
        in proportion.
        """
        if fanout < 1:
            raise ConfigError(f"fanout={fanout}: draw at least 1 neighbour")
        rows = nodes.numpy()
        first, degrees = self.starts[rows], self._degrees(rows)
        drawn = np.minimum(degrees, fanout)
        entries, crowded = ranges(first, drawn), degrees > fanout
        if crowded.any():
            chosen = distinct(degrees[crowded], fanout, generator)
            entries[np.repeat(crowded, drawn)] = (first[crowded, None] + chosen).ravel()
        return self._block(rows, entries, drawn)

    def sample(self, nodes: Tensor, fanouts: Sequence[int | None], generator: torch.Generator) -> list[Block]:
        """One block per layer, the first layer first, to compute a network's outputs for these nodes.

        fanouts: number of neighbours to draw in each layer; None: all. The sources of the first block are node numbers;
        those of a later block are row numbers of the block before it.
        """
        blocks: list[Block] = []
        for fanout in reversed(fanouts):
            if blocks:
                nodes, rows = torch.unique(blocks[0].sources, return_inverse=True)
                blocks[0] = blocks[0]._replace(sources=rows)
            blocks.insert(0, self.rows(nodes) if fanout is None else self.draw(nodes, fanout, generator))
        return blocks

    def pieces(self, size: int) -> Iterator[Block]:
        """All rows of Â in order, `size` rows per block."""
        return map(self.rows, torch.split(torch.arange(len(self)), size))

    def _degrees(self, rows: np.ndarray) -> np.ndarray:
        degrees: np.ndarray = self.starts[rows + 1] - self.starts[rows]
        return degrees

    def _block(self, rows: np.ndarray, entries: np.ndarray, drawn: np.ndarray) -> Block:
        """rows: the nodes. entries: indices into `targets`, row after row. drawn: number of entries per row."""
        selves = np.cumsum(drawn) - drawn  # a node itself comes before its neighbours
        sources = np.insert(self.targets[entries], selves, rows)
        factors = np.repeat(self._degrees(rows) / np.maximum(drawn, 1), drawn)
        weights = np.insert(factors, selves, 1.0) * self.scale[sources] * np.repeat(self.scale[rows], drawn + 1)
        starts = np.concatenate([[0], np.cumsum(drawn + 1)])
        return Block(*map(torch.from_numpy, (starts, sources.astype(np.int64), weights.astype(np.float32))))


def distinct(sizes: np.ndarray, count: int, generator: torch.Generator) -> np.ndarray:
    """`count` distinct random numbers below each size, every set equally likely: `(len(sizes), count)`.

    This is Floyd's algorithm for all sizes at once. Its cost does not grow with the sizes, so a hub costs no more than
    any other node.
    """
    uniform = torch.rand(count, len(sizes), dtype=torch.float64, generator=generator).numpy()
    chosen = np.empty((count, len(sizes)), dtype=np.int64)
    for step in range(count):
        last = sizes - count + step
        number = (uniform[step] * (last + 1)).astype(np.int64)
        chosen[step] = np.where((chosen[:step] == number).any(0), last, number)
    return chosen.T


@dataclass(frozen=True)
class SampledNodes:
    """Nodes of a large graph as examples for a `SampledGCN`: each batch comes with its sampled neighbours.

    The sample is a function of the seed and the rows, in their order: there is no state to save.

    features: X `(nodes, d)`, dense, in memory or memory-mapped; a batch reads only the rows it needs.
    neighbours: the graph.
    fanouts: number of neighbours to draw in the first and the second layer; None: all, for evaluation.
    seed: of the sample.
    lengths, counts, at_once: see `Examples`.
    """

    features: Tensor
    neighbours: Neighbours
    fanouts: tuple[int | None, int | None] = (10, 10)
    seed: int = 0
    lengths: np.ndarray | None = None
    counts: np.ndarray | None = None
    at_once: int = 512

    def __post_init__(self) -> None:
        if self.features.layout is not torch.strided or self.features.dim() != 2:
            raise ShapeError(f"features are {self.features.layout} {tuple(self.features.shape)}; give dense (nodes, d)")
        if len(self.features) != len(self.neighbours):
            raise ShapeError(f"features are of {len(self.features)} nodes, the graph has {len(self.neighbours)}")

    def __len__(self) -> int:
        return len(self.features)

    def inputs(self, rows: Tensor) -> tuple[Tensor, Block]:
        """Â X for these nodes and their neighbours, and the block that aggregates the second layer."""
        if rows.dim() != 1:
            raise ShapeError(f"rows are {tuple(rows.shape)}; give (N,): trials that draw neighbours are not stacked")
        entropy = (self.seed, zlib.crc32(rows.numpy().tobytes()))
        generator = torch.Generator().manual_seed(int(np.random.SeedSequence(entropy).generate_state(1)[0]))
        first, second = self.neighbours.sample(rows, self.fanouts, generator)
        return aggregate_neighbours(self.features, first), second
