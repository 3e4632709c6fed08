"""Parts of a graph too large to compute whole: the neighbours of some nodes, all of them or some drawn at random."""

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
    """Some rows of Â = D^-1/2 (A + I) D^-1/2, or estimates of them; row i is at starts[i] to starts[i + 1].

    starts: `(N + 1,)`. sources: which node each entry is about. weights: its value.
    """

    starts: Tensor
    sources: Tensor
    weights: Tensor


def aggregate_neighbours(values: Tensor, block: Block) -> Tensor:
    """These rows of Â times `values`: `(N, width)`. Of the values only the rows of its sources are read."""
    starts, sources, weights = block
    return embedding_bag(
        sources, values, starts, mode="sum", per_sample_weights=weights.to(values.dtype), include_last_offset=True
    )


def checked_edges(edges: Tensor | np.ndarray, nodes: int) -> np.ndarray:
    """Edges as an array, if they are numbers of nodes `(2, m)`."""
    edges = np.asarray(edges)
    if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
        raise ShapeError(f"edges are {edges.dtype} {edges.shape}; give node numbers (2, m), from and to")
    if edges.size and not 0 <= edges.min() <= edges.max() < nodes:
        raise DataError(f"edges are of nodes {edges.min()} to {edges.max()}; there are 0 to {nodes - 1}")
    return edges


class Neighbours:
    """A graph by rows, to take some of: every edge in both directions, once, and no loops.

    edges: node numbers `(2, m)`, from and to, one direction or both. nodes: how many there are.
    """

    def __init__(self, edges: Tensor | np.ndarray, nodes: int) -> None:
        edges = checked_edges(edges, nodes)
        start, end = edges[:, edges[0] != edges[1]]
        # Truth values, so that an edge given twice is still one.
        one_way = csr_matrix((np.ones(len(start), dtype=bool), (start, end)), shape=(nodes, nodes))
        graph = one_way + one_way.T
        self.starts, self.targets = graph.indptr.astype(np.int64), graph.indices
        self.scale = (np.diff(self.starts) + 1.0).astype(np.float32) ** -0.5  # D^-1/2, a node itself counted

    def __len__(self) -> int:
        return len(self.scale)

    def rows(self, nodes: Tensor) -> Block:
        """The rows of Â of these nodes."""
        places = nodes.numpy()
        return self._block(places, ranges(self.starts[places], self._degrees(places)), self._degrees(places))

    def draw(self, nodes: Tensor, fanout: int, generator: torch.Generator) -> Block:
        """Random rows whose means are those of Â: each node itself, and at most `fanout` of its neighbours.

        Neighbours are drawn without replacement; fewer than there are weigh more, in proportion.
        """
        if fanout < 1:
            raise ConfigError(f"fanout={fanout}: draw at least 1 neighbour")
        places = nodes.numpy()
        first, degrees = self.starts[places], self._degrees(places)
        drawn = np.minimum(degrees, fanout)
        entries, crowded = ranges(first, drawn), degrees > fanout
        if crowded.any():
            chosen = distinct(degrees[crowded], fanout, generator)
            entries[np.repeat(crowded, drawn)] = (first[crowded, None] + chosen).ravel()
        return self._block(places, entries, drawn)

    def sample(self, nodes: Tensor, fanouts: Sequence[int | None], generator: torch.Generator) -> list[Block]:
        """A block a layer, that of the first layer first, for what a network says of these nodes.

        fanouts: how many neighbours to draw in each layer; None: all. Sources of the first block are node numbers,
        those of another are places among the rows of the block before.
        """
        blocks: list[Block] = []
        for fanout in reversed(fanouts):
            if blocks:
                nodes, places = torch.unique(blocks[0].sources, return_inverse=True)
                blocks[0] = blocks[0]._replace(sources=places)
            blocks.insert(0, self.rows(nodes) if fanout is None else self.draw(nodes, fanout, generator))
        return blocks

    def pieces(self, size: int) -> Iterator[Block]:
        """All rows of Â in order, `size` at a time."""
        return map(self.rows, torch.split(torch.arange(len(self)), size))

    def _degrees(self, places: np.ndarray) -> np.ndarray:
        degrees: np.ndarray = self.starts[places + 1] - self.starts[places]
        return degrees

    def _block(self, places: np.ndarray, entries: np.ndarray, drawn: np.ndarray) -> Block:
        """places: the nodes. entries: those of `targets` to take, row after row; drawn: how many in each."""
        own = np.cumsum(drawn) - drawn  # a node itself comes before its neighbours
        sources = np.insert(self.targets[entries], own, places)
        factors = np.repeat(self._degrees(places) / np.maximum(drawn, 1), drawn)
        weights = np.insert(factors, own, 1.0) * self.scale[sources] * np.repeat(self.scale[places], drawn + 1)
        starts = np.concatenate([[0], np.cumsum(drawn + 1)])
        return Block(*map(torch.from_numpy, (starts, sources.astype(np.int64), weights.astype(np.float32))))


def distinct(sizes: np.ndarray, count: int, generator: torch.Generator) -> np.ndarray:
    """`count` different numbers below each size, every set of them equally likely: `(len(sizes), count)`.

    Floyd's algorithm for all at once: its work does not grow with the sizes, so a hub costs what any node does.
    """
    uniform = torch.rand(count, len(sizes), dtype=torch.float64, generator=generator).numpy()
    chosen = np.empty((count, len(sizes)), dtype=np.int64)
    for place in range(count):
        last = sizes - count + place
        number = (uniform[place] * (last + 1)).astype(np.int64)
        chosen[place] = np.where((chosen[:place] == number).any(0), last, number)
    return chosen.T


@dataclass(frozen=True)
class SampledNodes:
    """Nodes of a large graph as examples for a `SampledGCN`: each batch comes with neighbours of its own.

    What is drawn is a function of the seed and the rows, in their order: there is no state to save.

    features: X `(nodes, d)`, dense, in memory or mapped from a file; a batch reads the rows it needs.
    fanouts: how many neighbours to draw in either layer, those of the first layer first; None: all, to evaluate with.
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
        """Â X of these nodes and their neighbours, and the block that mixes what becomes of it."""
        if rows.dim() != 1:
            raise ShapeError(f"rows are {tuple(rows.shape)}; give (N,): trials that draw neighbours are not stacked")
        entropy = (self.seed, zlib.crc32(rows.numpy().tobytes()))
        generator = torch.Generator().manual_seed(int(np.random.SeedSequence(entropy).generate_state(1)[0]))
        first, second = self.neighbours.sample(rows, self.fanouts, generator)
        return aggregate_neighbours(self.features, first), second
