"""A graph to training data: its own split, random labels per class, or all labels outside dev and test."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.data.graphs import Graph
from drift.errors import LabelError
from drift.tasks.nodes.data import NodeData, open_graph, read_node_data
from drift.tasks.nodes.settings import NodeDataSettings
from tests.runs.small_graphs import CLASSES, small_graph, write_npz, write_tables


def read(source: Any, seeds: tuple[int, ...] = (0, 1, 2), **settings: Any) -> NodeData:
    return read_node_data(NodeDataSettings(**settings), {"train": source}, seeds)


def test_every_seed_uses_the_split_of_the_graph() -> None:
    graph = small_graph()
    data = read(graph)
    assert data.graph is graph
    for split in data.splits:
        for part in ("train", "dev", "test"):
            assert np.array_equal(getattr(split, part), graph.splits[part])


@pytest.mark.parametrize("missing", [("dev",), ("test",), ("dev", "test")])
def test_dev_and_test_may_be_missing_beside_training_nodes(missing: tuple[str, ...]) -> None:
    graph = small_graph()
    kept = {part: rows for part, rows in graph.splits.items() if part not in missing}
    data = read(small_graph(splits=kept))
    assert np.array_equal(data.splits[0].train, graph.splits["train"])
    for part in ("dev", "test"):
        assert len(getattr(data, part)) == (0 if part in missing else len(graph.splits[part]))


def test_random_labels_differ_by_seed_and_dev_and_test_do_not() -> None:
    graph = small_graph(60, splits={})
    data = read(graph, labels_per_class=2, dev_nodes=12, test_nodes=9)
    assert len({split.train.tobytes() for split in data.splits}) == 3
    for split in data.splits:
        assert np.bincount(graph.labels[split.train]).tolist() == [2, 2, 2]
        assert np.array_equal(split.dev, data.dev)
        assert np.array_equal(split.test, data.test)
    assert (len(data.dev), len(data.test)) == (12, 9)
    alone = read(graph, (1,), labels_per_class=2, dev_nodes=12, test_nodes=9)
    assert np.array_equal(alone.splits[0].train, data.splits[1].train)


@given(st.integers(0, 14), st.integers(0, 14), st.sets(st.integers(0, 29), max_size=1))
def test_without_a_split_all_labels_but_dev_and_test_are_trained_on(dev: int, test: int, unknown: set[int]) -> None:
    labels = np.arange(30) % 3
    labels[list(unknown)] = -1
    data = read(small_graph(splits={}, labels=labels), dev_nodes=dev, test_nodes=test)
    parts = [data.splits[0].train, data.dev, data.test]
    assert (len(data.dev), len(data.test)) == (dev, test)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.flatnonzero(labels >= 0))


def test_all_given_labels_are_trained_on_unless_the_user_asks_otherwise() -> None:
    labels = np.where(np.arange(30) < 12, np.arange(30) % 3, -1)
    data = read(small_graph(splits={}, labels=labels))
    assert np.array_equal(data.splits[0].train, np.arange(12))
    assert len(data.dev) == len(data.test) == 0


def test_hidden_labels_are_scored_and_are_not_dev() -> None:
    graph = small_graph(60, splits={})
    data = read(graph, labels_per_class=2)
    assert (len(data.dev), len(data.test)) == (0, 30)  # half of the labels: there are fewer than 1,000
    for split in data.splits:
        assert len(split.train) == 6
        assert not np.isin(split.train, data.test).any()


def test_dev_and_test_are_the_same_with_random_labels_and_with_all() -> None:
    graph = small_graph(splits={})
    drawn = read(graph, labels_per_class=2, dev_nodes=6, test_nodes=6)
    whole = read(graph, dev_nodes=6, test_nodes=6)
    assert np.array_equal(drawn.dev, whole.dev)
    assert np.array_equal(drawn.test, whole.test)


def test_a_dev_set_of_the_graphs_own_is_kept_where_there_are_no_training_nodes() -> None:
    own = np.array([3, 4, 5])
    data = read(small_graph(splits={"dev": own}), dev_nodes=9, test_nodes=4)
    assert np.array_equal(data.dev, own)
    assert len(data.test) == 4
    assert not np.isin(own, np.concatenate([data.test, data.splits[0].train])).any()


def test_a_class_with_too_few_labels_gives_all_of_them_with_a_note() -> None:
    data = read(small_graph(), labels_per_class=50)
    assert len(data.splits[0].train) == 12
    assert data.notes[0] == "class 'art' has 4 nodes outside dev and test; all are taken, not 50"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_tables_and_one_file_are_the_same_graph(tmp_path: Path, form: str) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
        pytest.importorskip("pandas")
    graph = small_graph()
    nodes, edges = write_tables(tmp_path, graph, form)
    tables = open_graph(NodeDataSettings(edges=str(edges)), nodes)
    file = open_graph(NodeDataSettings(), write_npz(tmp_path / "graph.npz", graph))
    for opened in (tables, file):
        assert opened.features.equal(graph.features)
        assert np.array_equal(opened.edges, graph.edges)
        assert [opened.classes[code] for code in opened.labels] == [CLASSES[code] for code in graph.labels]
    assert tables.nodes == [f"n{row}" for row in range(30)]


@pytest.mark.parametrize(
    ("graph", "settings", "message"),
    [
        (small_graph(labels=np.full(30, -1), classes=[]), {}, "small has labels of 0 classes"),
        (small_graph(labels=np.zeros(30, dtype=int), classes=["art"]), {}, "small has labels of 1 classes"),
        (small_graph(splits={"train": np.arange(0)}), {}, "no node with a label is left to train on"),
    ],
)
def test_graphs_without_enough_labels_are_refused(graph: Graph, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(LabelError) as error:
        read(graph, **settings)
    assert message in str(error.value)
