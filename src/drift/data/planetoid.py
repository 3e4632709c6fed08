"""Cora, CiteSeer and PubMed from Planetoid's files `ind.NAME.*`, in the folder layout of PyG."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, vstack

from drift.data.graph_formats import RawGraph, checked_csr
from drift.data.labels import UNLABELED
from drift.data.safe_pickle import read_pickle
from drift.errors import FileError

FOLDERS = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}
DEV = 500  # the nodes after the training nodes


def read_planetoid(name: str, root: str | os.PathLike[str] | None = None) -> RawGraph:
    """Read one of the three graphs with its public split: 20 labels per class, 500 dev nodes, 1,000 test nodes.

    name: case-insensitive. root: the folder that holds `Cora/raw/ind.cora.x` and so on; default:
    `$DRIFT_DATA/planetoid`. 15 nodes of CiteSeer have neither features nor a class: their features are zero and their
    labels unknown.
    """
    title = FOLDERS[name.lower()]
    folder = _root(title, root) / title / "raw"
    parts = {
        part: read_pickle(folder / f"ind.{name.lower()}.{part}") for part in ("allx", "tx", "ally", "ty", "y", "graph")
    }
    test = _test_rows(folder / f"ind.{name.lower()}.test.index")
    try:
        return _assembled(title, parts, test)
    except (ValueError, TypeError, IndexError, AttributeError) as error:
        raise FileError(f"{folder}: its files do not fit together ({error}); copy them again") from error


def _root(title: str, root: str | os.PathLike[str] | None) -> Path:
    if root is not None:
        return Path(root)
    if not (data := os.environ.get("DRIFT_DATA")):
        raise FileError(f"{title}: DRIFT_DATA is not set; set it to the folder that holds planetoid/")
    return Path(data) / "planetoid"


def _test_rows(path: Path) -> np.ndarray:
    try:
        return np.array(path.read_text(encoding="ascii").split(), dtype=np.int64)
    except OSError as error:
        raise FileError(f"{path} cannot be read ({error.strerror}); check the name") from error
    except ValueError as error:
        raise FileError(f"{path} does not hold one node number per line ({error}); copy it again") from error


def _assembled(title: str, parts: dict[str, Any], test: np.ndarray) -> RawGraph:
    """The nodes of allx come first, then the test nodes, each at the row number that `test` gives it."""
    known = parts["ally"].shape[0]
    count = test.max() + 1
    rows = np.concatenate([np.arange(known), test])  # node number of each row of allx, then of tx
    if len(np.unique(rows)) < len(rows):
        raise ValueError("a test node is listed twice")
    train = len(parts["y"])
    if train + DEV > known:
        raise ValueError(f"{known} nodes before the test nodes, {train} to train and {DEV} for dev")
    stacked = vstack([_features(parts["allx"], title), _features(parts["tx"], title)]).tocoo()
    features = csr_matrix((stacked.data, (rows[stacked.row], stacked.col)), shape=(count, stacked.shape[1]))
    classes = np.concatenate([parts["ally"], parts["ty"]])  # (rows, C), one-hot
    labels = np.full(count, UNLABELED)
    labels[rows] = np.where(classes.any(1), classes.argmax(1), UNLABELED)
    edges = [(node, other) for node, others in parts["graph"].items() for other in others]
    return RawGraph(
        title,
        features,
        np.array(edges).T,
        labels,
        splits={"train": np.arange(train), "dev": np.arange(train, train + DEV), "test": np.sort(test)},
    )


def _features(matrix: csr_matrix, title: str) -> csr_matrix:
    return checked_csr(matrix.data, matrix.indices, matrix.indptr, matrix.shape, title)
