"""Graphs for node classification: read from what users have, checked, and split into train, dev and test."""

import os
import sys
import warnings
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.sparse import csr_matrix, issparse

from drift.data.graph_formats import MASKS, RawGraph, from_entries, read_npz, read_saved, read_tables
from drift.data.labels import UNLABELED, encode_labels, is_blank, label_column
from drift.data.packages import needed_for
from drift.data.planetoid import FOLDERS, read_planetoid
from drift.data.table_formats import first_line
from drift.data.tables import source_name
from drift.data.text_tables import label_of
from drift.errors import ConfigError, DataError, LabelError
from drift.settings import nearest

if TYPE_CHECKING:
    from torch_geometric.data import Data

READERS = {".npz": read_npz, ".pt": read_saved}
INSTALL_PYG = "pip install 'drift-ssl[graph]'"
SPARSE = 0.3  # of the features, at most so many are not zero where they are kept sparse
JUDGES_SEED = 0  # dev and test are the same for every seed of the training labels


@dataclass(frozen=True)
class Graph:
    """Nodes with features, edges between them, and classes where known.

    features: `(n, d)` float32, sparse CSR (indices int32 where they fit) if fewer than `SPARSE` are not zero.
    edges: `(2, m)` int64 row numbers of nodes, sorted, none twice and no self-loops; an undirected edge both ways.
    labels: `(n,)` indices into `classes`, or `UNLABELED`. nodes: the user's names of the nodes; None: row numbers.
    splits: the source's own row numbers, under "train", "dev" and "test". notes: what to tell the user.
    """

    name: str
    features: torch.Tensor
    edges: np.ndarray
    labels: np.ndarray
    classes: list[str]
    nodes: list[str] | None = None
    splits: dict[str, np.ndarray] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Split:
    """Row numbers, sorted; no row is in two of the three. Every node may be learned from without its label."""

    train: np.ndarray
    dev: np.ndarray
    test: np.ndarray
    notes: list[str] = field(default_factory=list)


def read_graph(
    source: Any,
    *,
    edges: Any = None,
    id: str | None = None,
    label: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    directed: bool = False,
    root: str | os.PathLike[str] | None = None,
) -> Graph:
    """Read a graph and check it; self-loops are dropped, duplicate edges merged and isolated nodes kept, with a note.

    source: "Cora", "CiteSeer" or "PubMed" (see `read_planetoid`, also for root); an .npz file (see `read_npz`); a .pt
    file that holds a PyG `Data`; a `Data`; or, with edges, a table of nodes.
    edges: a table of edges. Tables are those of `read_chunks`. The one of nodes has an id, a label (blank: unknown)
    and features, which are numbers; the one of edges has two ids a row. Columns that are not named are the first one
    (id), one called label or alike, and the first two (source_column, target_column). label: "" if there is none.
    directed: leave edges as they are; else each goes both ways.
    """
    if edges is not None:
        columns = dict(id=id, label=label, source_column=source_column, target_column=target_column)
        return _checked(read_tables(source, edges, **columns), directed)
    if any(column is not None for column in (id, label, source_column, target_column)):
        raise ConfigError("id, label, source_column and target_column are columns of tables; give edges too")
    if (pyg := sys.modules.get("torch_geometric.data")) and isinstance(source, pyg.Data):
        return _checked(from_entries(source.to_dict(), "the Data"), directed)
    if isinstance(source, str) and source.lower() in FOLDERS:
        return _checked(read_planetoid(source, root), directed)
    kind = Path(source).suffix.lower() if isinstance(source, (str, os.PathLike)) else ""
    if isinstance(source, str) and not kind:
        raise ConfigError(f"there is no graph {source!r}{nearest(source, FOLDERS.values())}")
    if kind not in READERS:
        raise ConfigError(
            f"{source_name(source)} is not a graph; give {', '.join(FOLDERS.values())}, an .npz or .pt file,"
            " a PyG Data, or a table of nodes and --edges TABLE"
        )
    return _checked(READERS[kind](Path(source)), directed)


def to_data(graph: Graph) -> "Data":
    """The graph as PyG has it: dense x, y with -1 where the class is unknown, and a mask for each split."""
    with needed_for("to_data", INSTALL_PYG):
        from torch_geometric.data import Data
    data = Data(x=graph.features.to_dense(), edge_index=torch.from_numpy(graph.edges), y=torch.from_numpy(graph.labels))
    for split, rows in graph.splits.items():
        data[MASKS[split]] = torch.zeros(len(graph.labels), dtype=torch.bool)
        data[MASKS[split]][rows] = True
    return data


def public_split(graph: Graph) -> Split:
    """The split that the graph came with; dev and test are empty where it came without them."""
    if "train" not in graph.splits:
        raise DataError(f"{graph.name} came without train nodes; use random_split")
    train, dev, test = (graph.splits.get(split, np.empty(0, dtype=np.int64)) for split in MASKS)
    return Split(train, dev, test)


def whole_split(graph: Graph, *, dev: int = 500, test: int = 1000) -> Split:
    """Every labelled node to train on but those of dev and test, which are the same as in `random_split`."""
    judges, notes = _judges(graph, {"dev": dev, "test": test})
    return Split(_labelled_but(graph, judges), judges["dev"], judges["test"], notes)


def random_split(graph: Graph, per_class: int, *, dev: int = 500, test: int = 1000, seed: int) -> Split:
    """`per_class` random training labels of each class by `seed`, and the same dev and test nodes for every seed.

    dev, test: how many labelled nodes to draw where the graph came without its own. Of a class with fewer nodes left
    than `per_class` all are taken, with a note: outside its public dev and test, two classes of Cora have fewer
    than 100.
    """
    if per_class < 1 or dev < 0 or test < 0:
        raise ConfigError(f"per_class is {per_class}, dev {dev} and test {test}; give at least 1, 0 and 0")
    if not graph.classes:
        raise LabelError(f"{graph.name} has no labels; give some to split")
    judges, notes = _judges(graph, {"dev": dev, "test": test})
    pool = _labelled_but(graph, judges)
    generator = np.random.default_rng(seed)
    train = []
    for index, kind in enumerate(graph.classes):
        rows = pool[graph.labels[pool] == index]
        if not len(rows):
            raise LabelError(
                f"{graph.name}: no node of class {kind!r} is left for training; give a smaller dev or test"
            )
        if len(rows) < per_class:
            notes.append(f"class {kind!r} has {len(rows)} nodes outside dev and test; all are taken, not {per_class}")
        train.append(generator.permutation(rows)[:per_class])
    return Split(np.sort(np.concatenate(train)), judges["dev"], judges["test"], notes)


def _judges(graph: Graph, sizes: dict[str, int]) -> tuple[dict[str, np.ndarray], list[str]]:
    """The graph's own dev and test nodes; those it came without are drawn, always the same.

    If that leaves no label to train on, they get half of them, in proportion, with a note.
    """
    generator = np.random.default_rng(JUDGES_SEED)
    judges = {split: graph.splits[split] for split in sizes if split in graph.splits}
    wanted = {split: size for split, size in sizes.items() if split not in judges}
    free, notes = len(_labelled_but(graph, judges)), []
    if (asked := sum(wanted.values())) and asked >= free:
        wanted = {split: size * free // (2 * asked) for split, size in wanted.items()}
        shared = " and ".join(f"{size} {split} nodes" for split, size in wanted.items())
        notes.append(f"{graph.name} has {free} labels to share, too few for {asked} nodes of dev and test: {shared}")
    for split, size in wanted.items():
        judges[split] = np.sort(generator.permutation(_labelled_but(graph, judges))[:size])
    return judges, notes


def _labelled_but(graph: Graph, judges: dict[str, np.ndarray]) -> np.ndarray:
    free = graph.labels != UNLABELED
    for rows in judges.values():
        free[rows] = False
    return np.flatnonzero(free)


def _checked(raw: RawGraph, directed: bool) -> Graph:
    features = _features(raw)
    count = len(features)
    edges, edge_notes = _edges(raw, count, directed)
    labels, classes = _labels(raw, count)
    splits, split_notes = _splits(raw, labels)
    notes = [*raw.notes, *edge_notes, *split_notes, *([] if classes else ["no labels"])]
    return Graph(raw.name, features, edges, labels, classes, raw.nodes, splits, notes)


def _features(raw: RawGraph) -> torch.Tensor:
    found = raw.features
    if found.ndim != 2 or not all(found.shape) or found.dtype.kind not in "buif":
        raise DataError(
            f"{raw.name}: features are {found.dtype} of shape {found.shape}; give numbers (nodes, features)"
        )
    with np.errstate(over="ignore"):  # too large for float32: told below
        matrix: Any = found.astype(np.float32)
    finite = np.isfinite(np.ravel(matrix.sum(axis=1, dtype=np.float64)))
    if not finite.all():
        row = int(finite.argmin())
        raise DataError(f"{raw.name}, node {_node(raw, row)}: a feature is missing or not finite; fill it in")
    if (matrix != 0).sum() >= SPARSE * np.prod(matrix.shape):
        return torch.from_numpy(matrix.toarray() if issparse(matrix) else matrix)
    matrix = csr_matrix(matrix)
    matrix.eliminate_zeros()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        starts, columns, values = map(torch.from_numpy, (matrix.indptr, matrix.indices, matrix.data))
        return torch.sparse_csr_tensor(starts, columns, values, matrix.shape, check_invariants=True)


def _edges(raw: RawGraph, count: int, directed: bool) -> tuple[np.ndarray, list[str]]:
    found = raw.edges
    if found.ndim != 2 or len(found) != 2 or found.dtype.kind not in "iu":
        raise DataError(f"{raw.name}: edges are {found.dtype} of shape {found.shape}; give node numbers (2, edges)")
    outside = np.flatnonzero(((found < 0) | (found >= count)).any(0))
    if len(outside):
        ends = " and ".join(map(str, found[:, outside[0]]))
        raise DataError(
            f"{raw.name}, edge {outside[0]}: it joins {ends}, the nodes are 0 to {count - 1}; fix or drop it"
        )
    start, end = found.astype(np.int64)
    listed = (start * count + end)[start != end]
    pairs = np.unique(listed)
    loops, twice = len(start) - len(listed), len(listed) - len(pairs)
    if not directed:
        pairs = np.union1d(pairs, pairs % count * count + pairs // count)
    edges = np.stack(np.divmod(pairs, count))
    alone = count - len(np.unique(edges))
    counts = {"self-loops dropped": loops, "duplicate edges merged": twice, "isolated nodes kept": alone}
    return edges, [f"{what}: {number:,}" for what, number in counts.items() if number]


def _labels(raw: RawGraph, count: int) -> tuple[np.ndarray, list[str]]:
    if raw.labels is None:
        return np.full(count, UNLABELED), []
    if len(raw.labels) != count:
        raise LabelError(f"{raw.name}: {len(raw.labels)} labels for {count} nodes; give one a node, -1 where unknown")
    try:
        if is_blank(label_column(raw.labels)).all():  # such as a graph to predict
            return np.full(count, UNLABELED), []
        encoded = encode_labels(raw.labels)
    except ValueError as error:
        raise LabelError(f"{raw.name}: {first_line(error)}") from error
    return encoded.codes, [str(label_of(kind)) for kind in encoded.classes.tolist()]


def _splits(raw: RawGraph, labels: np.ndarray) -> tuple[dict[str, np.ndarray], list[str]]:
    for one, other in combinations(raw.splits, 2):
        if len(both := np.intersect1d(raw.splits[one], raw.splits[other])):
            raise DataError(f"{raw.name}: node {_node(raw, both[0])} is in {one} and in {other}; take it out of one")
    splits = {split: rows[labels[rows] != UNLABELED] for split, rows in raw.splits.items()}
    lost = {split: len(raw.splits[split]) - len(rows) for split, rows in splits.items()}
    return splits, [
        f"{split} nodes left out for want of a label: {number:,}" for split, number in lost.items() if number
    ]


def _node(raw: RawGraph, row: int) -> str:
    return repr(raw.nodes[row]) if raw.nodes else str(row)
