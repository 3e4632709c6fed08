"""Readers of graphs: .npz files, PyG's `Data` in memory and in files, and tables of nodes and edges."""

import re
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix

from drift.data.columns import LABEL_NAMES, find_column
from drift.data.table_formats import first_line
from drift.data.tables import column_names, read_chunks, source_name
from drift.data.text_tables import label_of
from drift.errors import ConfigError, DataError, FileError, LabelError

MASKS = {"train": "train_mask", "dev": "val_mask", "test": "test_mask"}
EDGE_VALUES = ("edge_weight", "edge_attr")
ADJACENCY, ATTRIBUTES = ("adj", "adj_matrix"), ("attr", "attr_matrix", "features", "feats")  # of .npz files
PARTS = ("data", "indices", "indptr", "shape")  # of a sparse matrix
MATRICES = "|".join((*ADJACENCY, *ATTRIBUTES))
ENTRIES = re.compile(rf"x|y|edge_index|edge_weight|edge_attr|\w+_mask|labels|({MATRICES})([_.]({'|'.join(PARTS)}))?")
CONVERSION = """\
import numpy as np; old = dict(np.load({old!r}, allow_pickle=True));
new = {{f"{{k}}.{{p}}": getattr(v[()].tocsr(), p) for k, v in old.items() if not v.ndim and hasattr(v[()], "tocsr")
for p in {parts}}};
np.savez({new!r}, **new, **{{k: np.array(v.tolist()) for k, v in old.items() if v.ndim}})
"""


INTEGERS = torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64
NUMBERS = frozenset((*INTEGERS, torch.bfloat16, torch.float16, torch.float32, torch.float64))  # that are read


@dataclass(frozen=True)
class RawGraph:
    """A graph as read from its source, not validated yet.

    name: of the source, for messages. features: `(n, d)`. edges: node numbers, `(2, m)`. labels: one per node, blank if
    unknown; None if the source has no labels. nodes: the user's names of the nodes; None: row numbers. splits: row
    numbers under "train", "dev" and "test". notes: messages for the user.
    """

    name: str
    features: np.ndarray | csr_matrix
    edges: np.ndarray
    labels: Any = None
    nodes: list[str] | None = None
    splits: dict[str, np.ndarray] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_npz(path: Path) -> RawGraph:
    """Read arrays under PyG's names, or in the layout of Shchur et al.: the CSR parts of adj and attr, and labels.

    Parts are called adj_data, adj_indices, adj_indptr and adj_shape, or adj_matrix.data and so on; attributes may also
    be a dense attr_matrix. Differs from PyG: attributes keep their values; PyG replaces positive ones by 1.
    """
    if path.is_file() and not zipfile.is_zipfile(path):  # the message of numpy would be about pickles
        raise FileError(f"{path} is not an .npz file of plain arrays; write or copy it again")
    try:
        with np.load(path, allow_pickle=False) as file:
            entries: dict[str, Any] = {
                key: _plain_array(path, file, key) for key in file.files if ENTRIES.fullmatch(key)
            }
    except FileError:
        raise
    except Exception as error:  # damaged files raise nearly anything
        raise _unreadable(path, "an .npz file of plain arrays", error) from error
    if (prefix := _csr_prefix(entries, ADJACENCY)) is not None:
        adjacency, sparse = _npz_csr(entries, prefix, path), _csr_prefix(entries, ATTRIBUTES)
        attributes = next((entries[name] for name in ATTRIBUTES if name in entries), None)
        entries |= {
            "x": attributes if sparse is None else _npz_csr(entries, sparse, path),
            "edge_index": np.stack(adjacency.nonzero()),
            "edge_weight": None if (adjacency.data == 1).all() else adjacency.data,
            "y": entries.get("labels"),
        }
    return from_entries(entries, str(path))


def _csr_prefix(entries: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """How the parts of a sparse matrix begin, such as adj_ or adj_matrix.; None if there is none."""
    prefixes = (name + separator for name in names for separator in "_.")
    return next((prefix for prefix in prefixes if f"{prefix}indptr" in entries), None)


def _plain_array(path: Path, file: Any, key: str) -> np.ndarray:
    """An array of an .npz file. A pickled one is refused, with the Python that converts the file."""
    try:
        return np.asarray(file[key])
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        conversion = CONVERSION.format(old=str(path), new=f"{path.with_suffix('')}.plain.npz", parts=PARTS)
        raise FileError(
            f"{path} holds {key} as a pickled object, and opening it would run any code in the file; if you trust its"
            f" source, convert it once in Python: {' '.join(conversion.split())}"
        ) from None


def read_saved(path: Path) -> RawGraph:
    """Read a file of torch.save without running code: a `Data`, a dict of tensors, or a dataset of one graph."""
    try:
        needed = set(torch.serialization.get_unsafe_globals_in_checkpoint(path))
        classes = _data_classes() if needed else {}
        if refused := sorted(needed - classes.keys()):
            hint = "pip install torch_geometric" if "torch_geometric" in refused[0] else "save its arrays as .npz"
            raise FileError(f"{path} holds {refused[0]}, which cannot be opened safely here; {hint}")
        # Only new classes: at its end the block unregisters all it was given, also those that PyG registered itself.
        new = [
            data_class for data_class in classes.values() if data_class not in torch.serialization.get_safe_globals()
        ]
        # torch builds sparse tensors unchecked: indices outside of one would be written to foreign memory.
        with torch.serialization.safe_globals(new), _validated():
            saved = torch.load(path, map_location="cpu", weights_only=True)
    except FileError:
        raise
    except Exception as error:  # damaged files raise nearly anything
        raise _unreadable(path, "a file of torch.save", error) from error
    slices = None
    if isinstance(saved, tuple) and len(saved) >= 2:  # (graph, starts of graphs, ...), as PyG saves datasets
        saved, slices = saved[:2]
    if slices:
        raise DataError(f"{path} holds many graphs; save one of them")
    if not isinstance(saved, dict) and not hasattr(saved, "to_dict"):
        raise DataError(f"{path} holds a {type(saved).__name__}; save a Data or a dict of tensors")
    return from_entries(saved if isinstance(saved, dict) else saved.to_dict(), str(path))


def from_entries(entries: Mapping[str, Any], name: str) -> RawGraph:
    """A graph from entries under PyG's names: x, edge_index and, optionally, y, train_mask, val_mask and test_mask."""
    for key in ("x", "edge_index"):
        if entries.get(key) is None:
            raise DataError(f"{name} has no {key}; give features as x and node numbers as edge_index")
    features = _plain(entries["x"], name)
    notes = [f"{key} is not used" for key in EDGE_VALUES if entries.get(key) is not None]
    splits = {}
    for split, key in MASKS.items():
        if entries.get(key) is None:
            continue
        mask = _plain(entries[key], name)
        if mask.ndim == 2:
            notes.append(f"{key} has {mask.shape[1]} splits and is not used")
        elif mask.shape != features.shape[:1] or mask.dtype != bool:
            raise DataError(f"{name}: {key} is {mask.dtype} of shape {mask.shape}; give one bool per node")
        else:
            splits[split] = np.flatnonzero(mask)
    edges = _plain(entries["edge_index"], name)
    return RawGraph(name, features, edges, _labels(entries.get("y"), name), splits=splits, notes=notes)


def checked_csr(data: Any, indices: Any, indptr: Any, shape: Any, where: str | Path) -> csr_matrix:
    """A sparse matrix from its CSR arrays. Indices are validated, as wrong ones would read foreign memory."""
    try:
        matrix = csr_matrix((data, indices, indptr), shape=tuple(shape))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise FileError(f"{where}: a sparse matrix is damaged ({first_line(error)}); copy it again") from error
    matrix.sum_duplicates()
    return matrix


def read_tables(
    nodes: Any, edges: Any, *, id: str | None, label: str | None, source_column: str | None, target_column: str | None
) -> RawGraph:
    """Read a table of nodes (id, label, numeric features) and one of edges. For the defaults, see `read_graph`."""
    name, columns = source_name(nodes), column_names(nodes)
    id = find_column(id, columns, name) if id else columns[0]
    if label is None:
        lowered = {column.strip().lower(): column for column in columns}
        label = next((lowered[known] for known in LABEL_NAMES if known in lowered), None)
        if label is None:
            raise ConfigError(f'{name}: no column is called label; name it with label, or give "" if there is none')
    elif label:
        find_column(label, columns, name)
    numeric = [column for column in columns if column not in (id, label)]
    if not numeric or id == label:
        raise ConfigError(
            f"{name}: the id is {id!r}, the label {label!r}; name two different ones, with feature columns beside them"
        )
    ids: list[str] = []
    labels: list[str | None] = []
    blocks = []
    for chunk in read_chunks(nodes):
        for row, value in enumerate(chunk.columns[id], chunk.first + 1):
            if (node := label_of(value)) is None:
                raise DataError(f"{name}, row {row}: no {id}; give every node one")
            ids.append(node)
        labels += [label_of(value) for value in chunk.columns[label]] if label else []
        numbers = [_numbers(chunk.columns[column], column, name, chunk.first) for column in numeric]
        blocks.append(np.column_stack(numbers))
    pairs, notes = _edge_table(edges, ids, name, source_column, target_column)
    notes.insert(0, f"id: {id}, label: {label or 'none'}, {len(numeric):,} features")
    return RawGraph(name, np.concatenate(blocks), pairs, labels if label else None, ids, notes=notes)


def _edge_table(
    table: Any, ids: list[str], nodes: str, source: str | None, target: str | None
) -> tuple[np.ndarray, list[str]]:
    """The edges as row numbers of `ids`, `(2, m)`, and notes. nodes: name of the table of nodes."""
    rows = {node: row for row, node in enumerate(ids)}
    if len(rows) < len(ids):
        first, node = next((row, node) for row, node in enumerate(ids) if rows[node] > row)
        raise DataError(f"{nodes}: node {node!r} is in rows {first + 1} and {rows[node] + 1}; take one out")
    name, columns = source_name(table), column_names(table)
    free = [column for column in columns if column not in (source, target)]
    ends = [find_column(end, columns, name) if end else free.pop(0) if free else "" for end in (source, target)]
    if ends[0] == ends[1] or "" in ends:
        raise ConfigError(f"{name}: an edge needs two columns, of {', '.join(columns)}; name source and target")
    pairs: tuple[list[int], list[int]] = ([], [])
    for chunk in read_chunks(table):
        for column, column_nodes in zip(ends, pairs, strict=True):
            for row, value in enumerate(chunk.columns[column], chunk.first + 1):
                node_row = rows.get(label_of(value) or "")
                if node_row is None:
                    raise DataError(f"{name}, row {row}: no node {value!r} in {nodes}; add it there or drop the edge")
                column_nodes.append(node_row)
    return np.array(pairs), [f"column {column} of {name} is not used" for column in free]


def _numbers(values: list[Any], column: str, name: str, first: int) -> list[float]:
    numbers = []
    for row, value in enumerate(values, first + 1):
        try:
            numbers.append(float(value))
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(
                f"{name}, row {row}: {column} is {value!r}, not a number; fill it in, or take the column out"
            ) from error
    return numbers


def _labels(y: Any, name: str) -> Any:
    if y is None:
        return None
    labels = _plain(y, name)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise LabelError(f"{name}: y has shape {labels.shape}; give one class per node")
    return [label_of(label) for label in labels.tolist()] if labels.dtype.kind == "U" else labels


def _plain(value: Any, name: str) -> Any:
    """A tensor or array as a numpy array; a sparse one as a scipy matrix."""
    if not isinstance(value, torch.Tensor):
        return value if isinstance(value, csr_matrix) else np.asarray(value)
    value = _checked_tensor(value, name)
    if value.is_floating_point():
        value = value.float()  # numpy has no bfloat16
    if value.layout == torch.strided:
        return value.numpy()
    try:
        with _validated():
            value = value.to_sparse_csr()
    except RuntimeError as error:  # of layouts or shapes that torch does not convert
        raise DataError(
            f"{name}: a sparse tensor cannot be read ({first_line(error)}); save it as sparse CSR"
        ) from error
    return checked_csr(value.values(), value.col_indices(), value.crow_indices(), value.shape, name)


def _validated() -> Any:
    """A block in which torch validates the indices of the sparse tensors that it builds."""
    return torch.sparse.check_sparse_tensor_invariants()  # type: ignore[no-untyped-call]


def _checked_tensor(tensor: torch.Tensor, name: str) -> torch.Tensor:
    """Refuse tensors without plain numbers, and sparse ones whose indices lie outside of them: a file may hold any."""
    forms = {
        "meta": tensor.is_meta,
        "quantised": tensor.is_quantized,
        "complex": tensor.is_complex(),
        "nested": tensor.is_nested,
    }
    if faulty := [form for form, found in forms.items() if found]:
        raise DataError(f"{name} holds a {faulty[0]} tensor; save it as plain numbers")
    if tensor.dtype not in NUMBERS:
        raise DataError(f"{name} holds a tensor of {tensor.dtype}; save it as plain numbers")
    tensor = tensor.detach().cpu()
    if tensor.layout == torch.strided:
        return tensor
    try:
        with _validated():
            return _rebuilt(tensor)
    except (RuntimeError, IndexError, ValueError) as error:
        raise FileError(f"{name}: a sparse tensor is damaged ({first_line(error)}); write the file again") from error


def _rebuilt(tensor: torch.Tensor) -> torch.Tensor:
    """The same sparse tensor from its parts, which torch validates if asked to."""
    if tensor.layout == torch.sparse_coo:
        return torch.sparse_coo_tensor(tensor._indices(), tensor._values(), tensor.shape)
    rows = tensor.layout in (torch.sparse_csr, torch.sparse_bsr)
    starts, others = (
        (tensor.crow_indices(), tensor.col_indices()) if rows else (tensor.ccol_indices(), tensor.row_indices())
    )
    return torch.sparse_compressed_tensor(starts, others, tensor.values(), tensor.shape, layout=tensor.layout)


def _npz_csr(entries: dict[str, np.ndarray], prefix: str, path: Path) -> csr_matrix:
    keys = [f"{prefix}{part}" for part in PARTS]
    if missing := [key for key in keys if key not in entries]:
        raise DataError(f"{path} has no {missing[0]}; a sparse matrix needs {', '.join(keys)}")
    data, indices, indptr, shape = (entries[key] for key in keys)
    return checked_csr(data, indices, indptr, shape, path)


def _data_classes() -> dict[str, Any]:
    """The classes that a saved `Data` consists of, by name; empty if PyG is not installed."""
    try:
        from torch_geometric.data import Data
        from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
        from torch_geometric.data.storage import GlobalStorage
    except ImportError:
        return {}
    classes = (Data, DataEdgeAttr, DataTensorAttr, GlobalStorage)
    return {f"{each.__module__}.{each.__name__}": each for each in classes}


def _unreadable(path: Path, expected: str, error: Exception) -> FileError:
    if isinstance(error, FileNotFoundError):
        return FileError(f"{path} is not there; check the name")
    return FileError(f"{path} is not {expected} ({first_line(error)}); write or copy it again")
