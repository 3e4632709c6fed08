"""Variants of Cora, CiteSeer and PubMed, and synthetic graphs: graphs as different from citations as users' graphs are.

Each variant is made by one function from a graph and a fixed seed. `VARIANTS` lists them.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.decomposition import TruncatedSVD

from drift.data.graphs import SPARSE, Graph, read_graph

SEED = 12345
MEAN_DEGREE = 30  # of co-purchase graphs
DIMENSIONS = 128


@cache
def source(name: str) -> Graph:
    """A graph without its split: dev and test nodes are not held out, and every label can be drawn."""
    return replace(read_graph(name), splits={}, notes=[])


def pairs(graph: Graph) -> np.ndarray:
    """Each edge once, `(2, m)`."""
    start, end = graph.edges
    return graph.edges[:, start < end]


def with_pairs(graph: Graph, start: np.ndarray, end: np.ndarray) -> Graph:
    count = len(graph.labels)
    low, high = np.minimum(start, end), np.maximum(start, end)
    keys = np.unique((low * count + high)[low != high])
    both = np.union1d(keys, keys % count * count + keys // count)
    return replace(graph, edges=np.stack(np.divmod(both, count)))


def with_features(graph: Graph, x: np.ndarray) -> Graph:
    """The graph with other features, sparse where a file with them would be read as sparse."""
    features = torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32))
    return replace(graph, features=features.to_sparse_csr() if (x != 0).mean() < SPARSE else features)


def thinned(graph: Graph) -> Graph:
    """Half of the edges."""
    start, end = pairs(graph)
    kept = np.random.default_rng(SEED).random(len(start)) < 0.5
    return with_pairs(graph, start[kept], end[kept])


def dense_edges(graph: Graph) -> Graph:
    """Random edges between nodes with a common neighbour, until the mean degree is 30."""
    count, (start, end) = len(graph.labels), pairs(graph)
    adjacency = csr_matrix((np.ones(2 * len(start)), (np.r_[start, end], np.r_[end, start])), (count, count))
    two_hops = (adjacency @ adjacency).tocoo()
    new = two_hops.row < two_hops.col
    rows, columns = two_hops.row[new].astype(np.int64), two_hops.col[new].astype(np.int64)
    wanted = count * MEAN_DEGREE // 2 - len(start)
    chosen = np.random.default_rng(SEED).permutation(len(rows))[:wanted]
    return with_pairs(graph, np.r_[start, rows[chosen]], np.r_[end, columns[chosen]])


def binary(graph: Graph) -> Graph:
    """The 745 commonest features as 1 or 0, and random ones more, until 35 % are 1, as in co-purchase graphs."""
    x = graph.features.to_dense().numpy() > 0
    x = x[:, np.sort(np.argsort(-x.sum(0), kind="stable")[:745])]
    more = (0.35 - x.mean()) * np.random.default_rng(SEED).uniform(0.5, 1.5, x.shape[1])
    return with_features(graph, x | (np.random.default_rng(SEED + 1).random(x.shape) < more))


def rescaled(graph: Graph) -> Graph:
    """Every feature times a random positive factor, from 1/100 to 100."""
    x = graph.features.to_dense().numpy()
    return with_features(graph, x * 10 ** np.random.default_rng(SEED).uniform(-2, 2, x.shape[1]))


def signed(graph: Graph) -> Graph:
    """128 dense dimensions with sign, by a singular value decomposition; not normalised."""
    x = graph.features.to_dense().numpy()
    return with_features(graph, TruncatedSVD(DIMENSIONS, random_state=SEED).fit_transform(x))


def skewed(graph: Graph) -> Graph:
    """Of every other class, only a fifth of the nodes are left."""
    generator = np.random.default_rng(SEED)
    kept = (graph.labels % 2 == 0) | (generator.random(len(graph.labels)) < 0.2)
    number = np.cumsum(kept) - 1
    start, end = pairs(graph)
    inside = kept[start] & kept[end]
    smaller = with_features(graph, graph.features.to_dense().numpy()[kept])
    return with_pairs(replace(smaller, labels=graph.labels[kept]), number[start[inside]], number[end[inside]])


def block_model(nodes: int, classes: int, degree: int, homophily: float, signal: float, seed: int) -> Graph:
    """A stochastic block model with Gaussian features; their scale and mean differ by column.

    homophily: share of the edges inside a class. signal: distance of the class means in standard deviations.
    """
    generator = np.random.default_rng((SEED, seed))
    labels = generator.integers(classes, size=nodes)
    edges = nodes * degree // 2
    start = generator.integers(nodes, size=edges)
    by_class = [np.flatnonzero(labels == code) for code in range(classes)]
    same = np.array([generator.choice(by_class[labels[node]]) for node in start])
    end = np.where(generator.random(edges) < homophily, same, generator.integers(nodes, size=edges))
    x = signal / np.sqrt(2) * generator.normal(size=(classes, 32))[labels] / np.sqrt(32)
    x = x + generator.normal(size=(nodes, 32))
    x = x * 10 ** generator.uniform(-1, 2, 32) + generator.normal(size=32) * 10
    none = np.empty((2, 0), dtype=np.int64)
    graph = Graph(f"blocks-{seed}", torch.zeros(nodes, 1), none, labels, [str(code) for code in range(classes)])
    return with_pairs(with_features(graph, x), start, end)


VARIANTS: dict[str, Callable[[], Graph]] = {
    "Cora": lambda: source("Cora"),
    "CiteSeer": lambda: source("CiteSeer"),
    "PubMed": lambda: source("PubMed"),
    "Cora, half of the edges": lambda: thinned(source("Cora")),
    "Cora, degree 30": lambda: dense_edges(source("Cora")),
    "Cora, degree 30, binary": lambda: binary(dense_edges(source("Cora"))),
    "Cora, features rescaled": lambda: rescaled(source("Cora")),
    "Cora, signed features": lambda: signed(source("Cora")),
    "Cora, skewed": lambda: skewed(source("Cora")),
    "CiteSeer, half of the edges": lambda: thinned(source("CiteSeer")),
    "CiteSeer, degree 30": lambda: dense_edges(source("CiteSeer")),
    "CiteSeer, degree 30, binary": lambda: binary(dense_edges(source("CiteSeer"))),
    "CiteSeer, features rescaled": lambda: rescaled(source("CiteSeer")),
    "CiteSeer, signed features": lambda: signed(source("CiteSeer")),
    "CiteSeer, skewed": lambda: skewed(source("CiteSeer")),
    "PubMed, degree 30": lambda: dense_edges(source("PubMed")),
    "PubMed, signed features": lambda: signed(source("PubMed")),
    "PubMed, skewed": lambda: skewed(source("PubMed")),
    "blocks, 8 classes, degree 20": lambda: block_model(3000, 8, 20, 0.6, 2.0, 1),
    "blocks, 4 classes, degree 4": lambda: block_model(3000, 4, 4, 0.8, 2.0, 2),
    "blocks, 12 classes, degree 10": lambda: block_model(3000, 12, 10, 0.5, 4.0, 3),
}
