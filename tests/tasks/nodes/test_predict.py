"""What a run says of the nodes of a graph, as a list and as a table."""

from pathlib import Path

import numpy as np
import pytest

import drift
from drift.data.tables import read_chunks
from drift.errors import DataError, FileError
from drift.runs.result import Run
from tests.runs.small_graphs import CLASSES, FEATURES, small_graph, small_node_fit, write_npz, write_tables

GRAPH = small_graph()


@pytest.fixture(scope="module")
def run() -> Run:
    return small_node_fit(GRAPH, training={"initial_steps": 20})


@pytest.fixture(scope="module")
def from_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run on tables."""
    base = tmp_path_factory.mktemp("tables")
    nodes, edges = write_tables(base, GRAPH)
    settings = {"data": {"dev_nodes": 6, "test_nodes": 6}}
    small_node_fit(nodes, edges=edges, out=base / "run", settings=settings)
    return base / "run"


def table_of(path: Path) -> dict[str, list[object]]:
    (chunk,) = read_chunks(path)
    return chunk.columns


def test_a_list_of_classes(run: Run) -> None:
    assert drift.predict(run, GRAPH) == run.predict(GRAPH)
    assert set(run.predict(GRAPH)) <= set(CLASSES)


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_a_table_with_the_users_names(from_tables: Path, tmp_path: Path, kind: str) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / f"out.{kind}"
    assert drift.predict(from_tables, from_tables.parent / "nodes.csv", out) is None
    found, probabilities = table_of(out), drift.load(from_tables).predict_proba(GRAPH)
    assert list(found) == ["node", "label", "predicted", "confidence", *(f"p_{name}" for name in CLASSES)]
    assert found["node"] == [f"n{row}" for row in range(30)]
    assert found["label"] == [CLASSES[code] for code in GRAPH.labels]
    assert found["predicted"] == [CLASSES[code] for code in probabilities.argmax(-1)]
    numbers = np.array([found[f"p_{name}"] for name in CLASSES], dtype=float).T
    np.testing.assert_allclose(numbers, probabilities, atol=1e-6)
    np.testing.assert_allclose(np.array(found["confidence"], dtype=float), probabilities.max(-1), atol=1e-6)


def test_nodes_without_names_are_numbered_and_unknown_labels_left_blank(run: Run, tmp_path: Path) -> None:
    labels = np.where(np.arange(30) < 4, GRAPH.labels, -1)
    drift.predict(run, small_graph(labels=labels), tmp_path / "out.jsonl")
    found = table_of(tmp_path / "out.jsonl")
    assert found["node"] == list(range(30))
    assert found["label"] == ["art", "law", "zoo", "art", *[None] * 26]


def test_a_table_of_nodes_needs_no_labels(from_tables: Path, tmp_path: Path) -> None:
    lines = (from_tables.parent / "nodes.csv").read_text().splitlines()
    unlabeled = [",".join([line.split(",")[0], *line.split(",")[2:]]) for line in lines]
    (tmp_path / "new.csv").write_text("\n".join(unlabeled) + "\n")
    drift.predict(from_tables, tmp_path / "new.csv", tmp_path / "out.jsonl")
    found = table_of(tmp_path / "out.jsonl")
    assert found["label"] == [None] * 30
    assert found["predicted"] == drift.predict(from_tables, from_tables.parent / "nodes.csv")


def test_no_class_where_it_is_not_sure(run: Run) -> None:
    confidence = run.predict_proba(GRAPH).max(-1)
    limit = float(np.median(confidence))
    found = drift.predict(run, GRAPH, abstain_below=limit)
    assert found is not None
    assert [name is None for name in found] == (confidence.astype(float) < limit).tolist()
    assert drift.predict(run, GRAPH, abstain_below=1.0) == [None] * 30


def test_another_graph_is_answered_and_one_of_another_width_refused(run: Run, tmp_path: Path) -> None:
    other = small_graph(12, seed=5)
    file = write_npz(tmp_path / "other.npz", other)
    assert drift.predict(run, file) == run.predict(other)
    wide = small_graph(features=GRAPH.features[:, : FEATURES - 1])
    with pytest.raises(DataError, match="small has 5 features a node, the model was trained on 6"):
        drift.predict(run, wide, tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_what_is_read_is_not_written_over(from_tables: Path) -> None:
    nodes = from_tables.parent / "nodes.csv"
    before = nodes.read_bytes()
    with pytest.raises(FileError, match=r"nodes.csv is what is read, and its other columns would be lost"):
        drift.predict(from_tables, nodes, nodes)
    assert nodes.read_bytes() == before
