"""Predictions and scores of a run on the nodes of a graph."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

import drift
from drift.data.tables import read_chunks
from drift.errors import DataError, FileError, LabelError
from drift.runs.result import Run
from tests.runs.small_graphs import CLASSES, FEATURES, small_graph, small_node_fit, write_npz, write_tables

GRAPH = small_graph()


@pytest.fixture(scope="module")
def run() -> Run:
    return small_node_fit(GRAPH, training={"initial_steps": 20})


@pytest.fixture(scope="module")
def from_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a run on tables."""
    base = tmp_path_factory.mktemp("tables")
    nodes, edges = write_tables(base, GRAPH)
    settings = {"data": {"dev_nodes": 6, "test_nodes": 6}}
    small_node_fit(nodes, edges=edges, out=base / "run", settings=settings)
    return base / "run"


def table_of(path: Path) -> dict[str, list[object]]:
    (chunk,) = read_chunks(path)
    return chunk.columns


def test_predictions_are_a_list_of_classes(run: Run) -> None:
    assert drift.predict(run, GRAPH) == run.predict(GRAPH)
    assert set(run.predict(GRAPH)) <= set(CLASSES)


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_a_table_has_the_names_of_the_nodes(from_tables: Path, tmp_path: Path, form: str) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / f"out.{form}"
    labels = drift.predict(from_tables, from_tables.parent / "nodes.csv", out)
    table, probabilities = table_of(out), drift.load(from_tables).predict_proba(GRAPH)
    assert labels == table["predicted"]
    assert list(table) == ["node", "label", "predicted", "confidence", *(f"p_{name}" for name in CLASSES)]
    assert table["node"] == [f"n{row}" for row in range(30)]
    assert table["label"] == [CLASSES[code] for code in GRAPH.labels]
    assert table["predicted"] == [CLASSES[code] for code in probabilities.argmax(-1)]
    numbers = np.array([table[f"p_{name}"] for name in CLASSES], dtype=float).T
    np.testing.assert_allclose(numbers, probabilities, atol=1e-6)
    np.testing.assert_allclose(np.array(table["confidence"], dtype=float), probabilities.max(-1), atol=1e-6)


def test_nodes_without_names_are_numbered_and_unknown_labels_left_blank(run: Run, tmp_path: Path) -> None:
    labels = np.where(np.arange(30) < 4, GRAPH.labels, -1)
    drift.predict(run, small_graph(labels=labels), tmp_path / "out.jsonl")
    table = table_of(tmp_path / "out.jsonl")
    assert table["node"] == list(range(30))
    assert table["label"] == ["art", "law", "zoo", "art", *[None] * 26]


def test_a_table_of_nodes_needs_no_labels(from_tables: Path, tmp_path: Path) -> None:
    lines = (from_tables.parent / "nodes.csv").read_text().splitlines()
    unlabeled = [",".join([line.split(",")[0], *line.split(",")[2:]]) for line in lines]
    (tmp_path / "new.csv").write_text("\n".join(unlabeled) + "\n")
    drift.predict(from_tables, tmp_path / "new.csv", tmp_path / "out.jsonl")
    table = table_of(tmp_path / "out.jsonl")
    assert table["label"] == [None] * 30
    assert table["predicted"] == drift.predict(from_tables, from_tables.parent / "nodes.csv")


def test_nodes_with_low_confidence_get_no_class(run: Run) -> None:
    confidence = run.predict_proba(GRAPH).max(-1)
    limit = float(np.median(confidence))
    predicted = drift.predict(run, GRAPH, abstain_below=limit)
    assert [name is None for name in predicted] == (confidence.astype(float) < limit).tolist()
    assert drift.predict(run, GRAPH, abstain_below=1.0) == [None] * 30


def test_another_graph_is_predicted_and_one_of_another_width_is_refused(run: Run, tmp_path: Path) -> None:
    other = small_graph(12, seed=5)
    file = write_npz(tmp_path / "other.npz", other)
    assert drift.predict(run, file) == run.predict(other)
    wide = small_graph(features=GRAPH.features[:, : FEATURES - 1])
    with pytest.raises(DataError, match="small has 5 features per node, the model was trained on 6"):
        drift.predict(run, wide, tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_an_input_is_not_overwritten(from_tables: Path) -> None:
    nodes = from_tables.parent / "nodes.csv"
    before = nodes.read_bytes()
    with pytest.raises(FileError, match=r"nodes.csv is what is read, and its other columns would be lost"):
        drift.predict(from_tables, nodes, nodes)
    assert nodes.read_bytes() == before


def test_scores_are_of_all_nodes_with_a_label(run: Run) -> None:
    labels = np.where(np.arange(30) % 4 == 1, -1, GRAPH.labels)
    labels[::5] = 0  # so that some predictions are wrong
    scores = drift.evaluate(run, small_graph(labels=labels))
    known = labels >= 0
    probabilities = run.predict_proba(GRAPH)[known]
    predicted, truth = probabilities.argmax(-1), labels[known]
    assert (scores["rows"], scores["labeled_rows"]) == (30, known.sum())
    assert scores["accuracy"] == pytest.approx(accuracy_score(truth, predicted))
    assert scores["macro_f1"] == pytest.approx(f1_score(truth, predicted, average="macro"))
    right, confidence = predicted == truth, probabilities.max(-1)
    bins = np.minimum((confidence * 15).astype(int), 14)
    gaps = [
        (bins == each).mean() * abs(right[bins == each].mean() - confidence[bins == each].mean())
        for each in np.unique(bins)
    ]
    assert scores["calibration_error"] == pytest.approx(sum(gaps), abs=1e-6)
    assert 0 < scores["accuracy"] < 1


def test_the_test_scores_of_a_run_are_counted_again(run: Run) -> None:
    labels = np.full(30, -1)
    labels[GRAPH.splits["test"]] = GRAPH.labels[GRAPH.splits["test"]]
    kept = run.metrics["test"]["scores"][run.record.kept]
    scores = drift.evaluate(run, small_graph(labels=labels))
    assert {name: scores[name] for name in kept} == pytest.approx(kept)


def test_scores_where_the_model_is_confident(run: Run) -> None:
    probabilities = run.predict_proba(GRAPH)
    limit = float(np.median(probabilities.max(-1)))
    scores = drift.evaluate(run, GRAPH, abstain_below=limit)
    sure = probabilities.max(-1) >= limit
    assert scores["covered"] == pytest.approx(sure.mean())
    right = probabilities.argmax(-1) == GRAPH.labels
    assert 0 < scores["covered"] < 1
    assert scores["accuracy_where_sure"] == pytest.approx(right[sure].mean())
    assert "covered" not in drift.evaluate(run, GRAPH)
    assert drift.evaluate(run, GRAPH, abstain_below=1.0)["accuracy_where_sure"] is None


def test_classes_of_another_graph_are_matched_by_name(run: Run) -> None:
    order = [2, 0, 1]  # of the classes in the other graph
    other = small_graph(classes=[CLASSES[code] for code in order], labels=np.argsort(order)[GRAPH.labels])
    assert drift.evaluate(run, other) == drift.evaluate(run, GRAPH)


def test_tables_are_scored_with_the_columns_of_the_run(from_tables: Path, tmp_path: Path) -> None:
    def scores(*arguments: Any, **options: Any) -> dict[str, float]:
        found = drift.evaluate(*arguments, **options)
        assert found.pop("notes") == []
        del found["by_class"], found["interval"]  # approx compares numbers by name
        return found

    expected = scores(drift.load(from_tables), GRAPH)
    nodes = from_tables.parent / "nodes.csv"
    assert scores(from_tables, nodes) == pytest.approx(expected)
    moved = tmp_path / "topics.csv"
    moved.write_text(nodes.read_text().replace("name,label,", "name,topic,"))
    assert scores(from_tables, moved, label="topic") == pytest.approx(expected)


def test_a_graph_that_cannot_be_scored_is_refused_in_one_line(run: Run) -> None:
    with pytest.raises(LabelError) as error:
        drift.evaluate(run, small_graph(labels=np.full(30, -1)))
    assert str(error.value) == "small: none of the 30 nodes has a label to score against"


def test_nodes_with_a_class_that_the_model_does_not_know_count_as_errors(run: Run) -> None:
    known, other = (drift.evaluate(run, small_graph(classes=["art", "law", name])) for name in ("zoo", "spa"))
    assert other["labeled_rows"] == known["labeled_rows"]
    assert other["accuracy"] <= known["accuracy"]
    assert "'spa'" in other["notes"][0]
