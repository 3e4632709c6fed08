"""Graphs from every source are read the same, errors are one line, and splits are disjoint and reproducible."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_matrix, csr_matrix

from drift.data.graph_splits import public_split, random_split, whole_split
from drift.data.graphs import SPARSE, Graph, read_graph, to_data
from drift.data.labels import UNLABELED
from drift.errors import ConfigError, DataError, DriftError, FileError, LabelError, PackageError

X = np.array([[1, 0, 0, 0.5], [0, 0, 0, 2], [0, 3, 0, 0], [0, 0, 0, 0], [4, 0, 0, 0]], dtype=np.float32)
LISTED = np.array([[0, 1, 1, 2, 2, 0], [1, 0, 2, 2, 4, 1]])  # 0-1 three times, a self-loop, nothing at node 3
BOTH_WAYS = [[0, 1, 1, 2, 2, 4], [1, 0, 2, 1, 4, 2]]
Y = np.array([1, 0, -1, 1, 0])
MASKS = {
    "train_mask": np.array([1, 1, 0, 0, 0], dtype=bool),
    "val_mask": np.array([0, 0, 0, 1, 0], dtype=bool),
    "test_mask": np.array([0, 0, 0, 0, 1], dtype=bool),
}
NOTES = ["self-loops dropped: 1", "duplicate edges merged: 1", "isolated nodes kept: 1"]


def npz(tmp_path: Path, **arrays: Any) -> Path:
    path = tmp_path / "graph.npz"
    np.savez(path, **arrays)
    return path


def plain_npz(tmp_path: Path) -> Path:
    return npz(tmp_path, x=X, edge_index=LISTED, y=Y, **MASKS)


def tensors() -> dict[str, torch.Tensor]:
    return {key: torch.from_numpy(value) for key, value in dict(x=X, edge_index=LISTED, y=Y, **MASKS).items()}


def saved_dict(tmp_path: Path) -> Path:
    torch.save(tensors(), tmp_path / "graph.pt")
    return tmp_path / "graph.pt"


def pyg_data(_: Path) -> Any:
    return pytest.importorskip("torch_geometric.data").Data(**tensors())


def saved_data(tmp_path: Path) -> Path:
    torch.save(pyg_data(tmp_path), tmp_path / "graph.pt")
    return tmp_path / "graph.pt"


def saved_dataset(tmp_path: Path) -> Path:
    data = pyg_data(tmp_path)
    torch.save((data.to_dict(), None, type(data)), tmp_path / "data.pt")
    return tmp_path / "data.pt"


def sparse_data(tmp_path: Path) -> Any:
    data = pyg_data(tmp_path)
    data.x, data.y = data.x.to_sparse(), torch.where(data.y == -1, torch.nan, data.y)[:, None]
    return data


@pytest.mark.parametrize("source", [plain_npz, saved_dict, pyg_data, saved_data, saved_dataset, sparse_data])
def test_every_source_with_pyg_names_is_the_same_graph(tmp_path: Path, source: Callable[[Path], Any]) -> None:
    graph = read_graph(source(tmp_path))
    assert graph.features.layout == torch.sparse_csr
    assert graph.features.dtype == torch.float32
    assert np.array_equal(graph.features.to_dense(), X)
    assert graph.edges.dtype == np.int64
    assert graph.edges.tolist() == BOTH_WAYS
    assert (graph.labels.tolist(), graph.classes, graph.nodes) == (Y.tolist(), ["0", "1"], None)
    assert {split: rows.tolist() for split, rows in graph.splits.items()} == {"train": [0, 1], "dev": [3], "test": [4]}
    assert graph.notes == NOTES
    split = public_split(graph)
    assert (split.train.tolist(), split.dev.tolist(), split.test.tolist()) == ([0, 1], [3], [4])


def test_reading_a_saved_data_leaves_the_safe_globals_of_torch_unchanged(tmp_path: Path) -> None:
    path = saved_data(tmp_path)
    before = set(torch.serialization.get_safe_globals())
    read_graph(path)
    assert set(torch.serialization.get_safe_globals()) == before


def test_a_directed_graph_stays_directed(tmp_path: Path) -> None:
    assert read_graph(plain_npz(tmp_path), directed=True).edges.tolist() == [[0, 1, 1, 2], [1, 0, 2, 4]]


def csr_parts(prefix: str, matrix: Any) -> dict[str, Any]:
    matrix = csr_matrix(matrix)
    parts = dict(data=matrix.data, indices=matrix.indices, indptr=matrix.indptr, shape=matrix.shape)
    return {f"{prefix}_{part}": value for part, value in parts.items()}


@pytest.mark.parametrize("dense", [True, False])
def test_the_npz_layout_of_sparse_parts(tmp_path: Path, dense: bool) -> None:
    adjacency = np.zeros((5, 5), dtype=np.float32)
    adjacency[tuple(LISTED)] = 1
    attributes = {"attr_matrix": X} if dense else csr_parts("attr", X)
    objects = np.array([{"not": "opened"}], dtype=object)
    graph = read_graph(npz(tmp_path, **csr_parts("adj", adjacency), **attributes, labels=Y, metadata=objects))
    assert np.array_equal(graph.features.to_dense(), X)
    assert graph.edges.tolist() == BOTH_WAYS
    assert graph.labels.tolist() == Y.tolist()
    assert graph.notes == ["self-loops dropped: 1", "isolated nodes kept: 1"]
    weighted = read_graph(npz(tmp_path, **csr_parts("adj", adjacency * 2), **attributes, labels=Y))
    assert weighted.notes[0] == "edge_weight is not used"


@pytest.mark.parametrize("separator", ["_", "."])
@pytest.mark.parametrize("attributes", ["attr_matrix", "features"])
def test_other_names_of_sparse_parts(tmp_path: Path, separator: str, attributes: str) -> None:
    adjacency = np.zeros((5, 5))
    adjacency[tuple(BOTH_WAYS)] = 1
    parts = {**csr_parts("adj_matrix", adjacency), **csr_parts(attributes, X)}
    for name in ("data", "indices", "indptr", "shape"):
        parts = {key.replace(f"_{name}", f"{separator}{name}"): value for key, value in parts.items()}
    names = np.array(["one", "two", None], dtype=object)  # pickled, and not needed
    graph = read_graph(npz(tmp_path, **parts, labels=Y, attr_names=names, class_names=names, **MASKS))
    assert graph.edges.tolist() == BOTH_WAYS
    assert np.array_equal(graph.features.to_dense().numpy(), X)
    assert {part: rows.tolist() for part, rows in graph.splits.items()} == {"train": [0, 1], "dev": [3], "test": [4]}


def test_pickled_matrices_are_refused_with_the_python_that_converts_them(tmp_path: Path) -> None:
    adjacency = np.zeros((5, 5))
    adjacency[tuple(BOTH_WAYS)] = 1
    labels = np.array(["b", "a", "a", "b", "a"], dtype=object)
    pickled = {"adj_matrix": csc_matrix(adjacency), "attr_matrix": csr_matrix(X), "metadata": {"from": "a crawl"}}
    path = npz(tmp_path, **{key: np.array(value, dtype=object) for key, value in pickled.items()}, labels=labels)
    with pytest.raises(FileError, match="holds adj_matrix as a pickled object, and opening it would run") as error:
        read_graph(path)
    assert "\n" not in str(error.value)
    exec(str(error.value).partition("convert it once in Python: ")[2])
    graph = read_graph(tmp_path / "graph.plain.npz")
    assert graph.edges.tolist() == BOTH_WAYS
    assert np.array_equal(graph.features.to_dense().numpy(), X)
    assert [graph.classes[code] for code in graph.labels] == labels.tolist()


def tables(tmp_path: Path, nodes: str | None = None, edges: str | None = None) -> dict[str, Any]:
    (tmp_path / "nodes.csv").write_text(nodes or "paper,size,topic,old\na,1,x,0\nb,2.5,,1\nc,-3e2,y,0\n")
    (tmp_path / "edges.csv").write_text(edges or "from,to,year\na,b,1999\nc, b ,2000\n")
    return {"source": tmp_path / "nodes.csv", "edges": tmp_path / "edges.csv"}


def test_tables_of_nodes_and_edges(tmp_path: Path) -> None:
    graph = read_graph(**tables(tmp_path))
    assert graph.features.layout == torch.strided
    assert graph.features.tolist() == [[1, 0], [2.5, 1], [-300, 0]]
    assert graph.edges.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert (graph.labels.tolist(), graph.classes, graph.nodes) == ([0, UNLABELED, 1], ["x", "y"], ["a", "b", "c"])
    assert graph.notes == [
        "id: paper, label: topic, 2 features",
        f"column year of {tmp_path / 'edges.csv'} is not used",
    ]
    with pytest.raises(DataError, match="came without train nodes; use random_split"):
        public_split(graph)


def test_named_columns_of_frames_and_whole_numbers_as_ids() -> None:
    pandas = pytest.importorskip("pandas")
    nodes = pandas.DataFrame({"size": [1.0, 2.0], "kind": [7, 8], "key": [10, 20]})
    edges = pandas.DataFrame({"weight": [1], "to": ["10"], "from": [20.0]})
    graph = read_graph(nodes, edges=edges, id="key", label="kind", source_column="from", target_column="to")
    assert (graph.nodes, graph.classes, graph.edges.tolist()) == (["10", "20"], ["7", "8"], [[0, 1], [1, 0]])
    one_way = read_graph(
        nodes, edges=edges, id="key", label="", target_column="to", source_column="from", directed=True
    )
    assert one_way.edges.tolist() == [[1], [0]]
    assert one_way.features.tolist() == [[1, 7], [2, 8]]
    assert (one_way.labels.tolist(), one_way.classes) == ([UNLABELED] * 2, [])
    assert one_way.notes[-1] == "no labels"


NODES = "id,label,f\na,x,1\nb,y,2\n"
EDGES = "s,t\na,b\n"


@pytest.mark.parametrize(
    ("nodes", "edges", "options", "kind", "message"),
    [
        (NODES, "s,t\na,b\nb,z\n", {}, DataError, r"edges\.csv, row 2: no node 'z' in .*nodes\.csv; add it"),
        (NODES, "s,t\na,\n", {}, DataError, r"edges\.csv, row 1: no node ''"),
        ("id,label,f\na,x,1\nb,y,2\na,y,3\n", EDGES, {}, DataError, r"node 'a' is in rows 1 and 3; take one out"),
        ("id,label,f\na,x,1\n,y,2\n", EDGES, {}, DataError, r"nodes\.csv, row 2: no id"),
        ("id,label,f\na,x,1\nb,y,two\n", EDGES, {}, DataError, r"row 2: f is 'two', not a number"),
        ("id,label,f\na,x,1\nb,y,\n", EDGES, {}, DataError, r"row 2: f is '', not a number; fill it in"),
        ("id,label,f\na,x,1\nb,y,nan\n", EDGES, {}, DataError, r"node 'b': a feature is missing or not finite"),
        ("id,label,f\na,x,1e39\nb,y,1\n", EDGES, {}, DataError, r"node 'a': a feature is missing or not finite"),
        ("id,label,f\na,x,1\nb,,2\n", EDGES, {}, LabelError, r"every labelled row is of one class"),
        ("id,group,f\na,x,1\nb,y,2\n", EDGES, {}, ConfigError, r"no column is called label; name it"),
        (NODES, EDGES, {"label": "lable"}, ConfigError, r"no column 'lable'; did you mean 'label'"),
        (NODES, EDGES, {"label": "id"}, ConfigError, r"the id is 'id', the label 'id'"),
        ("id,label\na,x\nb,y\n", EDGES, {}, ConfigError, r"with feature columns beside them"),
        (NODES, EDGES, {"id": "key"}, ConfigError, r"no column 'key'"),
        (NODES, "s\na\n", {}, ConfigError, r"an edge needs two columns, of s"),
        (NODES, EDGES, {"source_column": "s", "target_column": "s"}, ConfigError, r"an edge needs two columns"),
        (NODES, "s,t\n", {}, DataError, r"edges\.csv has no rows"),
        ("\n", EDGES, {}, DataError, r"nodes\.csv is empty"),
    ],
)
def test_errors_in_tables(
    tmp_path: Path, nodes: str, edges: str, options: dict[str, str], kind: type[DriftError], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        read_graph(**tables(tmp_path, nodes, edges), **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (dict(edge_index=[[0, 1], [1, 5]]), DataError, r"edge 1: it joins 1 and 5, the nodes are 0 to 4"),
        (dict(edge_index=[[0, -1], [1, 2]]), DataError, r"edge 1: it joins -1 and 2"),
        (dict(edge_index=[[0, 1, 2]]), DataError, r"edges are int64 of shape \(1, 3\); give node numbers"),
        (dict(edge_index=[[0.0], [1.0]]), DataError, r"edges are float64 of shape \(2, 1\)"),
        (dict(y=[0, 1, 0]), LabelError, r"3 labels for 5 nodes"),
        (dict(y=np.eye(5)), LabelError, r"y has shape \(5, 5\); give one class per node"),
        (dict(y=[0.5, 1, 0, 1, 0]), LabelError, r"graph\.npz: .*continuous"),
        (dict(y=[np.inf, 1, 0, 1, 0]), LabelError, r"graph\.npz: .*infinity"),
        (dict(x=np.where(X == 3, np.nan, X)), DataError, r"graph\.npz, node 2: a feature is missing"),
        (dict(x=np.where(X == 4, -np.inf, X)), DataError, r"graph\.npz, node 4: a feature is missing"),
        (dict(x=X[:, 0]), DataError, r"features are float32 of shape \(5,\)"),
        (dict(x=X[:, :0]), DataError, r"features are float32 of shape \(5, 0\)"),
        (dict(x=np.full((5, 2), "a")), DataError, r"features are <U1 of shape"),
        (dict(train_mask=[True]), DataError, r"train_mask is bool of shape \(1,\); give one bool per node"),
        (dict(train_mask=[1, 1, 0, 0, 0]), DataError, r"train_mask is int64"),
        (dict(test_mask=MASKS["train_mask"]), DataError, r"node 0 is in train and in test; take it out of one"),
    ],
)
def test_errors_in_arrays(tmp_path: Path, change: dict[str, Any], kind: type[DriftError], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        read_graph(npz(tmp_path, **dict(x=X, edge_index=LISTED, y=Y, **MASKS) | change))
    assert "\n" not in str(caught.value)


def test_unused_parts_are_reported_in_notes(tmp_path: Path) -> None:
    masks = {key: np.stack([mask, mask], 1) for key, mask in MASKS.items()}
    graph = read_graph(npz(tmp_path, x=X, edge_index=LISTED, y=Y, edge_attr=np.ones((6, 2)), **masks))
    unused = [f"{key} has 2 splits and is not used" for key in MASKS]
    assert graph.notes == ["edge_attr is not used", *unused, *NOTES]
    hidden = read_graph(npz(tmp_path, x=X, edge_index=LISTED, y=[1, -1, 0, 1, 0], **MASKS))
    assert hidden.splits["train"].tolist() == [0]
    assert hidden.notes[-1] == "train nodes left out for lack of a label: 1"


def test_labels_may_all_be_blank(tmp_path: Path) -> None:
    for graph in (
        read_graph(**tables(tmp_path, nodes="id,label,f\na,,1\nb,,2\n", edges="s,t\na,b\n")),
        read_graph(npz(tmp_path, x=X, edge_index=LISTED, y=[-1] * 5)),
    ):
        assert (graph.classes, set(graph.labels.tolist()), graph.notes[-1]) == ([], {UNLABELED}, "no labels")


def test_names_of_classes_in_an_array(tmp_path: Path) -> None:
    graph = read_graph(npz(tmp_path, x=X, edge_index=LISTED, y=["b", "a", "", "b", "a"]))
    assert (graph.classes, graph.labels.tolist()) == (["a", "b"], [1, 0, UNLABELED, 1, 0])


@pytest.mark.parametrize("indices", [[9, 0], [-1, 0]])
def test_a_sparse_matrix_that_points_outside_is_refused(tmp_path: Path, indices: list[int]) -> None:
    adjacency = csr_parts("adj", np.eye(5))
    broken = dict(attr_data=[1.0, 2.0], attr_indices=indices, attr_indptr=[0, 1, 2, 2, 2, 2], attr_shape=[5, 4])
    with pytest.raises(FileError, match=r"graph\.npz: a sparse matrix is damaged"):
        read_graph(npz(tmp_path, **adjacency, **broken, labels=Y))
    del broken["attr_shape"]
    with pytest.raises(DataError, match="has no attr_shape"):
        read_graph(npz(tmp_path, **adjacency, **broken, labels=Y))


class Hostile:
    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        return os.system, (self.command,)


@pytest.mark.parametrize("suffix", [".pt", ".npz"])
def test_no_file_runs_code(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"graph{suffix}"
    hostile = Hostile(f"touch {tmp_path / 'ran'}")
    if suffix == ".pt":
        torch.save({"x": hostile}, path)
    else:
        np.savez(path, x=np.array([hostile], dtype=object))
    with pytest.raises(FileError, match=r"cannot be opened safely|holds x as a pickled object") as caught:
        read_graph(path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("suffix", [".pt", ".npz"])
@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04cut", b"\x93NUMPY\x01\x00"])
def test_damaged_files(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"graph{suffix}"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"graph\.(pt|npz) is not .*; write or copy it again") as caught:
        read_graph(path)
    assert "\n" not in str(caught.value)
    path.unlink()
    with pytest.raises(FileError, match="is not there"):
        read_graph(path)


def test_saved_objects_that_are_no_graph(tmp_path: Path) -> None:
    path = tmp_path / "saved.pt"
    for content, message in (
        (torch.ones(3), "holds a Tensor; save a Data"),
        ({"weight": torch.ones(3)}, "has no x; give features"),
        ({"x": torch.ones(3, 2)}, "has no edge_index"),
        ((tensors(), {"x": torch.tensor([0, 2, 5])}), "holds many graphs"),
    ):
        torch.save(content, path)
        with pytest.raises(DataError, match=message):
            read_graph(path)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("nodes.csv", {}, r"nodes\.csv is not a graph; give Cora, CiteSeer, PubMed, an \.npz"),
        (X, {}, "the ndarray is not a graph"),
        ("graph.npz", {"label": "topic"}, "are columns of tables; give edges too"),
    ],
)
def test_a_source_that_is_no_graph(source: Any, options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_graph(source, **options)


def test_without_pyg_only_its_own_objects_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = saved_data(tmp_path).rename(tmp_path / "data.pt")
    for module in ("torch_geometric", "torch_geometric.data"):
        monkeypatch.setitem(sys.modules, module, None)
    graph = read_graph(plain_npz(tmp_path))
    assert np.array_equal(read_graph(saved_dict(tmp_path)).edges, graph.edges)
    with pytest.raises(FileError, match=r"holds torch_geometric\.\S+, which .*; pip install torch_geometric"):
        read_graph(data)
    with pytest.raises(PackageError, match=r"to_data: .*; pip install 'drift-ssl\[graph\]'"):
        to_data(graph)


def test_to_pyg_and_back(tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric")
    graph = read_graph(plain_npz(tmp_path))
    data = to_data(graph)
    data.validate()
    assert np.array_equal(data.x, X)
    assert np.array_equal(data.y, Y)
    assert all(np.array_equal(data[key], mask) for key, mask in MASKS.items())
    again = read_graph(data)
    assert np.array_equal(again.edges, graph.edges)
    assert again.notes == ["isolated nodes kept: 1"]


@given(
    pairs=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=30),
    directed=st.booleans(),
)
def test_edges_are_the_set_of_the_given_ones(pairs: list[tuple[int, int]], directed: bool) -> None:
    data = pytest.importorskip("torch_geometric.data").Data(
        x=torch.ones(7, 1), edge_index=torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T
    )
    expected = {(a, b) for a, b in pairs if a != b}
    if not directed:
        expected |= {(b, a) for a, b in expected}
    graph = read_graph(data, directed=directed)
    assert list(zip(*graph.edges.tolist(), strict=True)) == sorted(expected)


@pytest.mark.parametrize(
    ("filled", "layout"), [(int(100 * SPARSE) - 1, torch.sparse_csr), (int(100 * SPARSE), torch.strided)]
)
def test_sparse_below_the_limit(tmp_path: Path, filled: int, layout: torch.layout) -> None:
    x = np.zeros(100)
    x[:filled] = 1
    for stored in ({"attr_matrix": x.reshape(10, 10)}, csr_parts("attr", x.reshape(10, 10))):
        graph = read_graph(npz(tmp_path, **csr_parts("adj", np.eye(10)), **stored, labels=[0, 1] * 5))
        assert graph.features.layout == layout
        assert np.array_equal(graph.features.to_dense(), x.reshape(10, 10))


def labelled(labels: list[int], **splits: list[int]) -> Graph:
    rows = {split: np.array(actual, dtype=np.int64) for split, actual in splits.items()}
    classes = [str(kind) for kind in range(max(labels) + 1)]
    none = np.empty((2, 0), dtype=np.int64)
    return Graph("G", torch.ones(len(labels), 1), none, np.array(labels), classes, splits=rows)


@given(
    labels=st.lists(st.integers(-1, 2), min_size=40, max_size=80),
    per_class=st.integers(1, 6),
    sizes=st.tuples(st.integers(0, 8), st.integers(0, 8)),
    seeds=st.tuples(st.integers(0, 99), st.integers(0, 99)),
)
def test_a_random_split(labels: list[int], per_class: int, sizes: tuple[int, int], seeds: tuple[int, int]) -> None:
    graph = labelled([*labels, *[0, 1, 2] * 20])  # enough that dev and test do not use up a class
    one, other = (random_split(graph, per_class, dev=sizes[0], test=sizes[1], seed=seed) for seed in seeds)
    assert (len(one.dev), len(one.test)) == sizes
    assert np.array_equal(one.dev, other.dev)
    assert np.array_equal(one.test, other.test)
    joined = np.concatenate([one.train, one.dev, one.test])
    assert len(np.unique(joined)) == len(joined)
    assert (graph.labels[joined] != UNLABELED).all()
    for rows in (one.train, one.dev, one.test):
        assert np.array_equal(rows, np.sort(rows))
    if not one.notes:
        assert np.bincount(graph.labels[one.train]).tolist() == [per_class] * 3
    assert np.array_equal(one.train, random_split(graph, per_class, dev=sizes[0], test=sizes[1], seed=seeds[0]).train)


def test_other_seeds_choose_other_nodes_and_the_global_generator_is_unused() -> None:
    graph = labelled([0, 1] * 100)
    before = np.random.get_state()[1].copy()
    chosen = {tuple(random_split(graph, 5, dev=20, test=20, seed=seed).train) for seed in range(20)}
    assert len(chosen) == 20
    assert np.array_equal(before, np.random.get_state()[1])


@pytest.mark.parametrize("nodes", [2, 30, 250, 1500])
def test_with_few_labels_half_are_kept_for_training_with_a_note(nodes: int) -> None:
    split = whole_split(labelled([0, 1] * (nodes // 2)))
    assert (len(split.dev), len(split.test)) == (500 * nodes // 3000, 1000 * nodes // 3000)
    assert len(split.train) + len(split.dev) + len(split.test) == nodes
    note = f"G has {nodes} labels to share, too few for 1500 nodes of dev and test: {len(split.dev)} dev nodes and"
    assert split.notes == [f"{note} {len(split.test)} test nodes"]
    assert not whole_split(labelled([0, 1] * 751)).notes


def test_the_graphs_own_dev_and_test_are_kept() -> None:
    graph = labelled([0, 1] * 10, train=[0, 1], dev=[2, 3], test=[4, 5, 6])
    split = random_split(graph, 20, seed=0)
    assert (split.dev.tolist(), split.test.tolist()) == ([2, 3], [4, 5, 6])
    assert split.train.tolist() == [0, 1, *range(7, 20)]  # all that are left, with a note
    assert split.notes == [
        "class '0' has 7 nodes outside dev and test; all are taken, not 20",
        "class '1' has 8 nodes outside dev and test; all are taken, not 20",
    ]
    only_test = random_split(labelled([0, 1] * 10, test=[4, 5, 6]), 1, dev=15, seed=0)
    assert not np.intersect1d(only_test.dev, only_test.test).size


@pytest.mark.parametrize(
    ("graph", "options", "kind", "message"),
    [
        (labelled([0, 1], dev=[1]), dict(per_class=1, test=0), LabelError, "no node of class '1' is left for training"),
        (labelled([-1, -1]), dict(per_class=1), LabelError, "G has no labels"),
        (labelled([0, 1]), dict(per_class=0), ConfigError, "per_class is 0, dev 500 and test 1000; give at least"),
        (labelled([0, 1]), dict(per_class=1, dev=-1), ConfigError, "dev -1"),
    ],
)
def test_impossible_splits(graph: Graph, options: dict[str, int], kind: type[DriftError], message: str) -> None:
    with pytest.raises(kind, match=message):
        random_split(graph, **options, seed=0)


@pytest.mark.skipif(
    not (Path(os.environ.get("DRIFT_DATA") or "nowhere") / "planetoid").is_dir(), reason="DRIFT_DATA is not set"
)
def test_the_papers_splits_of_cora() -> None:
    graph = read_graph("Cora")
    public = public_split(graph)
    for per_class in (10, 20, 50):
        split = random_split(graph, per_class, seed=3)
        assert np.bincount(graph.labels[split.train]).tolist() == [per_class] * 7
        assert np.array_equal(split.dev, public.dev)
        assert np.array_equal(split.test, public.test)
    most = random_split(graph, 100, seed=3)  # two classes have fewer outside dev and test
    assert np.bincount(graph.labels[most.train]).tolist() == [100, 90, 100, 100, 100, 100, 87]
    assert len(most.notes) == 2
