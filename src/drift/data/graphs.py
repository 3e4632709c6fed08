"""Graphs for node classification, read from many sources and validated."""

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
from drift.data.planetoid import FOLDERS, read_planetoid
from drift.data.table_formats import first_line
from drift.data.tables import source_name
from drift.data.text_tables import label_of
from drift.errors import ConfigError, DataError, LabelError, needed_for
from drift.settings import nearest

if TYPE_CHECKING:
    from torch_geometric.data import Data

READERS = {".npz": read_npz, ".pt": read_saved}
INSTALL_PYG = "pip install 'drift-ssl[graph]'"
SPARSE = 0.3  # features are stored sparse if a smaller share of them is non-zero


@dataclass(frozen=True)
class Graph:
    """A graph: nodes with features, edges between them, and classes of some or all nodes.

    name: of the source, for messages. features: `(n, d)` float32, sparse CSR (indices int32 if they fit) if the share
    of non-zero values is below `SPARSE`. edges: int64 node numbers, `(2, m)`, sorted, without duplicates and
    self-loops; an undirected edge is listed in both directions. labels: indices into `classes`, or `UNLABELED`, `(n,)`.
    nodes: the user's names of the nodes; None: row numbers. splits: row numbers of the splits that the source defines,
    under "train", "dev" and "test". notes: messages for the user.
    """

    name: str
    features: torch.Tensor
    edges: np.ndarray
    labels: np.ndarray
    classes: list[str]
    nodes: list[str] | None = None
    splits: dict[str, np.ndarray] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def entries(self) -> int:
        """Numbers that one pass reads: edges, and features that are not 0."""
        x = self.features
        return int(self.edges.shape[1] + (x.numel() if x.layout == torch.strided else x.values().numel()))


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
    """Read a graph and validate it. Self-loops are dropped, duplicate edges merged, isolated nodes kept, with notes.

    source: "Cora", "CiteSeer" or "PubMed" (see `read_planetoid`); an .npz file (see `read_npz`); a .pt file that holds
        a PyG `Data`; a `Data`; or, together with `edges`, a table of nodes: an id, a label (blank if unknown) and
        numeric features. Tables are those of `read_chunks`.
    edges: a table of edges, with two node ids per row.
    id: the id column of the table of nodes; default: the first.
    label: its label column; default: one called label or similar. "" if there is none.
    source_column, target_column: columns of the table of edges; default: the first two.
    directed: keep the direction of edges; by default every edge is added in both directions.
    root: folder of the Planetoid files; see `read_planetoid`.
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
    suffix = Path(source).suffix.lower() if isinstance(source, (str, os.PathLike)) else ""
    if isinstance(source, str) and not suffix:
        raise ConfigError(f"there is no graph {source!r}{nearest(source, FOLDERS.values())}")
    if suffix not in READERS:
        raise ConfigError(
            f"{source_name(source)} is not a graph; give {', '.join(FOLDERS.values())}, an .npz or .pt file,"
            " a PyG Data, or a table of nodes and --edges TABLE"
        )
    return _checked(READERS[suffix](Path(source)), directed)


def to_data(graph: Graph) -> "Data":
    """The graph as a PyG `Data`: dense x, y with -1 if the class is unknown, and one mask per split."""
    with needed_for("to_data", INSTALL_PYG):
        from torch_geometric.data import Data
    data = Data(x=graph.features.to_dense(), edge_index=torch.from_numpy(graph.edges), y=torch.from_numpy(graph.labels))
    for split, rows in graph.splits.items():
        data[MASKS[split]] = torch.zeros(len(graph.labels), dtype=torch.bool)
        data[MASKS[split]][rows] = True
    return data


def _checked(raw: RawGraph, directed: bool) -> Graph:
    """Validate a graph and bring it into its final form."""
    features = _features(raw)
    count = len(features)
    edges, edge_notes = _edges(raw, count, directed)
    labels, classes = _labels(raw, count)
    splits, split_notes = _splits(raw, labels)
    notes = [*raw.notes, *edge_notes, *split_notes, *([] if classes else ["no labels"])]
    return Graph(raw.name, features, edges, labels, classes, raw.nodes, splits, notes)


def _features(raw: RawGraph) -> torch.Tensor:
    raw_features = raw.features
    if raw_features.ndim != 2 or not all(raw_features.shape) or raw_features.dtype.kind not in "buif":
        raise DataError(
            f"{raw.name}: features are {raw_features.dtype} of shape {raw_features.shape};"
            " give numbers (nodes, features)"
        )
    with np.errstate(over="ignore"):  # values too large for float32 are reported below
        matrix: Any = raw_features.astype(np.float32)
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
    raw_edges = raw.edges
    if raw_edges.ndim != 2 or len(raw_edges) != 2 or raw_edges.dtype.kind not in "iu":
        raise DataError(
            f"{raw.name}: edges are {raw_edges.dtype} of shape {raw_edges.shape}; give node numbers (2, edges)"
        )
    outside = np.flatnonzero(((raw_edges < 0) | (raw_edges >= count)).any(0))
    if len(outside):
        ends = " and ".join(map(str, raw_edges[:, outside[0]]))
        raise DataError(
            f"{raw.name}, edge {outside[0]}: it joins {ends}, the nodes are 0 to {count - 1}; fix or drop it"
        )
    start, end = raw_edges.astype(np.int64)
    without_loops = (start * count + end)[start != end]  # an edge as one number
    pairs = np.unique(without_loops)
    loops, duplicates = len(start) - len(without_loops), len(without_loops) - len(pairs)
    if not directed:
        pairs = np.union1d(pairs, pairs % count * count + pairs // count)
    edges = np.stack(np.divmod(pairs, count))
    isolated = count - len(np.unique(edges))
    counts = {"self-loops dropped": loops, "duplicate edges merged": duplicates, "isolated nodes kept": isolated}
    return edges, [f"{note}: {number:,}" for note, number in counts.items() if number]


def _labels(raw: RawGraph, count: int) -> tuple[np.ndarray, list[str]]:
    if raw.labels is None:
        return np.full(count, UNLABELED), []
    if len(raw.labels) != count:
        raise LabelError(f"{raw.name}: {len(raw.labels)} labels for {count} nodes; give one per node, -1 if unknown")
    try:
        if is_blank(label_column(raw.labels)).all():  # for example a graph to predict
            return np.full(count, UNLABELED), []
        encoded = encode_labels(raw.labels)
    except ValueError as error:
        raise LabelError(f"{raw.name}: {first_line(error)}") from error
    return encoded.codes, [str(label_of(label)) for label in encoded.classes.tolist()]


def _splits(raw: RawGraph, labels: np.ndarray) -> tuple[dict[str, np.ndarray], list[str]]:
    for one, other in combinations(raw.splits, 2):
        if len(both := np.intersect1d(raw.splits[one], raw.splits[other])):
            raise DataError(f"{raw.name}: node {_node(raw, both[0])} is in {one} and in {other}; take it out of one")
    splits = {split: rows[labels[rows] != UNLABELED] for split, rows in raw.splits.items()}
    unlabeled = {split: len(raw.splits[split]) - len(rows) for split, rows in splits.items()}
    return splits, [
        f"{split} nodes left out for lack of a label: {number:,}" for split, number in unlabeled.items() if number
    ]


def _node(raw: RawGraph, row: int) -> str:
    """The name of a node in messages."""
    return repr(raw.nodes[row]) if raw.nodes else str(row)
