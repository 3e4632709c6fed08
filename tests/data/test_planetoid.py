"""Cora, CiteSeer and PubMed from Planetoid's files: against PyG's reader, and damaged files."""

import os
import pickle
import shutil
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from drift.data.graphs import read_graph
from drift.data.labels import UNLABELED
from drift.errors import FileError

REAL = Path(os.environ.get("DRIFT_DATA") or "nowhere") / "planetoid"
needs_data = pytest.mark.skipif(not REAL.is_dir(), reason="DRIFT_DATA is not set to a folder with planetoid")
KNOWN, TRAIN, TEST = 506, 4, [509, 506, 510]  # 507 and 508 are in no file: CiteSeer has such nodes

Parts = dict[str, Any]


def parts() -> Parts:
    """Node v has feature v in column v % 3 and class v % 2, and a citation of the node before."""
    features = np.zeros((TEST[2] + 1, 3), dtype=np.float32)
    features[np.arange(len(features)), np.arange(len(features)) % 3] = np.arange(len(features))
    onehot = np.eye(2, dtype=np.int32)[np.arange(len(features)) % 2]
    graph: dict[int, list[int]] = defaultdict(list, {node: [node - 1] for node in (*range(1, KNOWN), *TEST)})
    return {
        "allx": csr_matrix(features[:KNOWN]),
        "tx": csr_matrix(features[TEST]),
        "ally": onehot[:KNOWN],
        "ty": onehot[TEST],
        "y": onehot[:TRAIN],
        "graph": graph,
    }


def write(root: Path, actual: Parts, test: str = "509\n506\n510\n") -> Path:
    raw = root / "Cora" / "raw"
    raw.mkdir(parents=True)
    for part, value in actual.items():
        (raw / f"ind.cora.{part}").write_bytes(pickle.dumps(value, protocol=4))
    (raw / "ind.cora.test.index").write_text(test)
    return root


def test_test_nodes_stand_where_the_index_says_and_absent_ones_are_unknown(tmp_path: Path) -> None:
    graph = read_graph("cora", root=write(tmp_path, parts()))
    features = graph.features.to_dense().numpy()
    there = np.setdiff1d(np.arange(511), [507, 508])
    assert np.array_equal(features[there, there % 3], there)
    assert np.array_equal(features.sum(1)[there], there)
    assert not features[[507, 508]].any()
    assert np.array_equal(graph.labels[there], there % 2)
    assert (graph.labels[[507, 508]] == UNLABELED).all()
    assert graph.classes == ["0", "1"]
    assert {split: (len(rows), rows[0]) for split, rows in graph.splits.items()} == {
        "train": (4, 0),
        "dev": (500, 4),
        "test": (3, 506),
    }
    assert np.array_equal(graph.splits["test"], sorted(TEST))


def empty_graph(actual: Parts) -> None:
    actual["graph"] = []


def fewer_test_labels(actual: Parts) -> None:
    actual["ty"] = actual["ty"][:2]


def other_width(actual: Parts) -> None:
    actual["tx"] = csr_matrix(np.eye(3, 4))


def index_outside(actual: Parts) -> None:
    actual["allx"].indices[-1] = 10**6  # scipy would write there


def too_few_nodes(actual: Parts) -> None:
    actual["y"] = actual["ally"][:7]


@pytest.mark.parametrize("damage", [empty_graph, fewer_test_labels, other_width, index_outside, too_few_nodes])
def test_files_that_do_not_fit_are_one_error(tmp_path: Path, damage: Callable[[Parts], None]) -> None:
    actual = parts()
    damage(actual)
    with pytest.raises(FileError, match=r"copy (it|them) again") as caught:
        read_graph("Cora", root=write(tmp_path, actual))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("test", ["509\n506\n506\n", "5\n506\n510\n", "one\n", "", "-1\n506\n510\n", "509 506\n"])
def test_a_bad_test_index(tmp_path: Path, test: str) -> None:
    with pytest.raises(FileError, match=r"copy (it|them) again"):
        read_graph("Cora", root=write(tmp_path, parts(), test))


def test_a_hostile_file_is_refused(tmp_path: Path) -> None:
    root = write(tmp_path, parts())
    (root / "Cora/raw/ind.cora.graph").write_bytes(b"cos\nsystem\n(S'touch %b/ran'\ntR." % bytes(tmp_path))
    with pytest.raises(FileError, match=r"ind\.cora\.graph: the pickle asks for os\.system"):
        read_graph("Cora", root=root)
    assert not (tmp_path / "ran").exists()


def test_where_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRIFT_DATA", raising=False)
    with pytest.raises(FileError, match="PubMed: DRIFT_DATA is not set"):
        read_graph("pubmed")
    monkeypatch.setenv("DRIFT_DATA", str(tmp_path))
    with pytest.raises(FileError, match=r"planetoid/PubMed/raw/ind\.pubmed\.allx cannot be read"):
        read_graph("PUBMED")


@needs_data
@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "classes", "notes"),
    [
        ("Cora", 2708, 5278, 1433, 7, ["duplicate edges merged: 302"]),
        (
            "CiteSeer",
            3327,
            4552,
            3703,
            6,
            ["self-loops dropped: 248", "duplicate edges merged: 112", "isolated nodes kept: 48"],
        ),
        ("PubMed", 19717, 44324, 500, 3, ["self-loops dropped: 6", "duplicate edges merged: 22"]),
    ],
)
def test_the_real_graphs(
    tmp_path: Path, name: str, nodes: int, edges: int, features: int, classes: int, notes: list[str]
) -> None:
    graph = read_graph(name)
    assert graph.features.shape == (nodes, features)
    assert graph.edges.shape == (2, 2 * edges)
    assert len(graph.classes) == classes
    assert graph.notes == notes
    assert {split: len(rows) for split, rows in graph.splits.items()} == {
        "train": 20 * classes,
        "dev": 500,
        "test": 1000,
    }

    datasets = pytest.importorskip("torch_geometric.datasets", reason="PyG, the other reader, is not installed")
    shutil.copytree(REAL / name / "raw", tmp_path / name / "raw", copy_function=shutil.copyfile)
    (tmp_path / name / "raw").chmod(0o755)
    (tmp_path / name).chmod(0o755)
    data = datasets.Planetoid(str(tmp_path), name)[0]
    assert np.array_equal(graph.features.to_dense(), data.x)
    assert np.array_equal(graph.edges, data.edge_index[:, np.lexsort(data.edge_index.numpy()[::-1])])
    for split, key in (("train", "train_mask"), ("dev", "val_mask"), ("test", "test_mask")):
        assert np.array_equal(graph.splits[split], np.flatnonzero(data[key]))
    unknown = graph.labels == UNLABELED  # PyG calls them class 0
    assert unknown.sum() == (15 if name == "CiteSeer" else 0)
    assert np.array_equal(np.where(unknown, 0, graph.labels), data.y)
    assert not data.x[unknown].any()
