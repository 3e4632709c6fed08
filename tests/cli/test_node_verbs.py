"""`drift fit --task nodes` and what follows it, as people run them: results, and mistakes of every kind."""

import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drift
from drift.data.tables import read_chunks
from drift.runs.result import Run
from tests.cli.conftest import Call, written_file
from tests.runs.small_graphs import (
    FEATURES,
    RECIPE,
    STEPS,
    same_weights,
    small_graph,
    small_node_fit,
    write_npz,
    write_tables,
)

GRAPH = small_graph()
JUDGES = ["--set", "data.dev_nodes=6", "--set", "data.test_nodes=6"]
TABLES = ["nodes.csv", "--edges", "edges.csv", *JUDGES]
QUICK = ["--task", "nodes", "--seeds", "2", "--quiet", "--set", "model.hidden=5"]
QUICK += [part for name, value in STEPS.items() for part in ("--set", f"training.{name}={json.dumps(value)}")]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run on one file."""
    base = tmp_path_factory.mktemp("trained")
    small_node_fit(write_npz(base / "graph.npz", GRAPH), out=base / "run")
    return base / "run"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with the graph as tables and as one file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    write_tables(tmp_path, GRAPH)
    write_npz(tmp_path / "graph.npz", GRAPH)
    return tmp_path


def table_of(path: str) -> dict[str, list[Any]]:
    (chunk,) = read_chunks(path)
    return chunk.columns


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_fit_and_predict_tables(folder: Path, call: Call, kind: str) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        pytest.importorskip("pandas")
        write_tables(folder, GRAPH, kind)
    tables = [f"nodes.{kind}", "--edges", f"edges.{kind}", *JUDGES]
    code, out, err = call("fit", *tables, "--labels-per-class", "2", *QUICK, "-o", "runs/one")
    assert (code, err) == (0, "")
    for told in ("30 nodes; a graph convolutional network", "macro-F1", "12 gold labels (6 to train, 6 dev)"):
        assert told in out
    assert "id: name, label: label, 6 features" in out
    assert (folder / "runs/one/report.html").exists()
    settings = {"data": {"dev_nodes": 6, "test_nodes": 6}}
    twin = small_node_fit(tables[0], edges=tables[2], labels_per_class=2, settings=settings)
    assert same_weights(twin, drift.load("runs/one"))

    assert written_file(call("predict", "runs/one", f"nodes.{kind}", "-o", f"out.{kind}")) == f"out.{kind}"
    found = table_of(f"out.{kind}")
    assert found["node"] == [f"n{row}" for row in range(30)]
    assert found["predicted"] == twin.predict(GRAPH)


def test_grand_on_one_file(folder: Path, call: Call) -> None:
    recipe = [part for name, value in RECIPE.items() for part in ("--set", f"model.recipe.{name}={value}")]
    code, out, err = call("fit", "--graph", "graph.npz", "--model", "grand", *recipe, *QUICK, "-o", "run")
    assert (code, err) == (0, "")
    assert "30 nodes; GRAND" in out
    assert same_weights(
        small_node_fit("graph.npz", model="grand", settings={"model": {"hidden": 5}}), drift.load("run")
    )


def test_a_dry_run_writes_nothing(folder: Path, call: Call) -> None:
    before = sorted(folder.rglob("*"))
    code, out, err = call("fit", "--graph", "graph.npz", *QUICK, "--dry-run", "-o", "run")
    assert (code, err) == (0, "")
    assert "6 steps to find the start" in out
    assert sorted(folder.rglob("*")) == before


def test_what_is_odd_but_right(folder: Path, call: Call) -> None:
    """A node without an edge or a class, an edge given twice, one to itself, more labels asked for than there are."""
    with (folder / "nodes.csv").open("a") as file:
        file.write("alone," + "," + ",".join(["0"] * FEATURES) + "\n")
    with (folder / "edges.csv").open("a") as file:
        file.write("n0,n3\nn0,n0\n")
    code, out, err = call("fit", *TABLES, "--labels-per-class", "50", *QUICK, "-o", "run")
    assert (code, err) == (0, "")
    for told in ("isolated nodes kept: 1", "self-loops dropped: 1", "duplicate edges merged: 1"):
        assert told in out
    assert "nodes outside dev and test; all are taken, not 50" in out
    opened = drift.load("run")
    assert isinstance(opened, Run)
    assert opened.metrics["graph"] == {"name": "nodes.csv", "nodes": 31, "edges": 62, "features": 6, "labeled": 30}


MISTAKES = {
    "no graph": (["--task", "nodes"], "no table was given"),
    "an edge to nowhere": (
        ["nodes.csv", "--edges", "to_nowhere.csv"],
        "to_nowhere.csv, row 63: no node 'n99' in nodes",
    ),
    "a node twice": (["twice.csv", "--edges", "edges.csv"], "twice.csv: node 'n2' is in rows 3 and 31; take one out"),
    "no labels": (["blank.csv", "--edges", "edges.csv"], "blank.csv has labels of 0 classes"),
    "one class": (["one.csv", "--edges", "edges.csv"], "every labelled row is of one class, 'art'"),
    "labels of other nodes": (["--graph", "labels.npz"], "labels.npz: 31 labels for 30 nodes"),
    "no training label": (["--graph", "untrained.npz"], "untrained.npz: no node with a label is left to train on"),
    "a missing feature": (
        ["nan.csv", "--edges", "edges.csv"],
        "nan.csv, node 'n1': a feature is missing or not finite",
    ),
    "a word for a number": (["word.csv", "--edges", "edges.csv"], "word.csv, row 2: x5 is 'big', not a number"),
    "an infinite feature": (["--graph", "infinite.npz"], "infinite.npz, node 4: a feature is missing or not finite"),
    "edges that are not there": (["nodes.csv", "--edges", "none.csv"], "none.csv is not there"),
    "no edges": (["nodes.csv"], "nodes.csv is not a graph; give"),
    "one column of edges": (["nodes.csv", "--edges", "half.csv"], "half.csv: an edge needs two columns"),
    "nodes that are not there": (["none.csv", "--edges", "edges.csv"], "none.csv is not there"),
    "a file that is not there": (["--graph", "none.npz"], "none.npz is not there"),
    "a damaged file": (["--graph", "damaged.npz"], "damaged.npz is not an .npz file of plain arrays"),
    "no such graph": (["--graph", "Coraa"], "there is no graph 'Coraa'; did you mean 'Cora'?"),
    "no such column": ([*TABLES, "--label", "lable"], "nodes.csv has no column 'lable'; did you mean 'label'?"),
    "a pickle that is no data": (["--graph", "Cora"], "ind.cora.allx: the pickle asks for posix.system"),
    "textcnn": ([*TABLES, "--model", "textcnn"], "'textcnn' is not a kind of model for nodes (there are: gcn, grand)"),
    "a model": ([*TABLES, "--model", "gnc"], "did you mean 'gcn'?"),
    "a recipe": ([*TABLES, "--model", "grand", "--set", "model.recipe.hiden=3"], "did you mean 'hidden'?"),
    "no views": ([*TABLES, "--model", "grand", "--set", "model.recipe.views=0"], "views=0"),
    "a rate": ([*TABLES, "--model", "grand", "--set", "model.recipe.drop_node=1"], "drop_node=1.0"),
    "weak labels": ([*TABLES, "--weak", "x0"], "weak is not for --task nodes"),
    "rules": ([*TABLES, "--rules", "rules.yaml"], "rules is not for --task nodes"),
    "texts": ([*TABLES, "--text", "name"], "text is not for --task nodes"),
    "a dev table": ([*TABLES, "--dev", "nodes.csv"], "dev is not for --task nodes"),
    "a test table": ([*TABLES, "--test", "nodes.csv"], "test is not for --task nodes"),
    "a preset for texts": ([*TABLES, "--preset", "agnews"], "'agnews' is not a preset for nodes"),
    "a task": ([*TABLES, "--task", "node"], "there is no task 'node'; did you mean 'nodes'?"),
}


class Hostile:
    """Runs a command when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("touch owned",)


def write_mistakes(folder: Path) -> None:
    heading, *nodes = (folder / "nodes.csv").read_text().splitlines()

    def write(name: str, *rows: str) -> None:
        (folder / name).write_text("\n".join([heading, *rows]) + "\n")

    def labelled(row: str, label: str) -> str:
        name, _, features = row.split(",", 2)
        return f"{name},{label},{features}"

    write("twice.csv", *nodes, nodes[2])
    write("blank.csv", *(labelled(row, "") for row in nodes))
    write("one.csv", *(labelled(row, "art") for row in nodes))
    write("nan.csv", nodes[0], nodes[1].rsplit(",", 1)[0] + ",nan", *nodes[2:])
    write("word.csv", nodes[0], nodes[1].rsplit(",", 1)[0] + ",big", *nodes[2:])
    (folder / "to_nowhere.csv").write_text((folder / "edges.csv").read_text() + "n0,n99\n")
    (folder / "half.csv").write_text("from\nn0\n")
    (folder / "damaged.npz").write_bytes(b"PK\x03\x04 and no more")
    x = GRAPH.features.numpy()
    np.savez(folder / "labels.npz", x=x, edge_index=GRAPH.edges, y=np.arange(31) % 3)
    np.savez(folder / "infinite.npz", x=np.where(np.arange(30)[:, None] == 4, np.inf, x), edge_index=GRAPH.edges)
    unknown = np.where(np.arange(30) < 5, -1, GRAPH.labels)
    np.savez(folder / "untrained.npz", x=x, edge_index=GRAPH.edges, y=unknown, train_mask=np.arange(30) < 5)
    raw = folder / "data/planetoid/Cora/raw"
    raw.mkdir(parents=True)
    for part in ("x", "allx"):  # the first is not even opened: allx holds it
        (raw / f"ind.cora.{part}").write_bytes(pickle.dumps(Hostile()))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_fit_is_one_line_and_nothing_is_written(
    folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    write_mistakes(folder)
    monkeypatch.setenv("DRIFT_DATA", str(folder / "data"))
    before = sorted(folder.rglob("*"))
    arguments, message = MISTAKES[mistake]
    code, out, err = call("fit", *QUICK, "-o", "run", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("drift: ")
    assert len(err.splitlines()) == 1
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.npz", "-o", "out.csv"], "none.npz is not there"),
        (["Coraa", "-o", "out.csv"], "there is no graph 'Coraa'"),
        (["wide.npz", "-o", "out.csv"], "wide.npz has 7 features per node, the model was trained on 6"),
        (["graph.npz", "-o", "out.xlsx"], "out.xlsx"),
    ],
)
def test_a_mistake_in_predict(folder: Path, call: Call, trained: Path, arguments: list[str], message: str) -> None:
    np.savez(folder / "wide.npz", x=np.ones((30, FEATURES + 1)), edge_index=GRAPH.edges, y=GRAPH.labels)
    before = sorted(folder.rglob("*"))
    code, out, err = call("predict", str(trained), *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
    assert sorted(folder.rglob("*")) == before


def test_nodes_that_all_have_labels_are_not_suggested(folder: Path, call: Call, trained: Path) -> None:
    code, out, err = call("suggest", str(trained), "nodes.csv", "--edges", "edges.csv")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "every node has a label; nothing is left to suggest" in err


@pytest.mark.parametrize("source", [["some.npz"], ["nodes.csv", "--edges", "edges.csv"]], ids=["file", "tables"])
def test_all_labelled_nodes_are_scored(folder: Path, call: Call, trained: Path, source: list[str]) -> None:
    graph = small_graph(labels=np.where(np.arange(30) % 4 == 0, -1, GRAPH.labels))
    write_npz(folder / "some.npz", graph)
    write_tables(folder, graph)
    probabilities = drift.load(trained).predict_proba(graph)
    predicted, known = probabilities.argmax(1), graph.labels >= 0
    right = float((predicted == graph.labels)[known].mean())
    f1 = []
    for code in range(3):
        hits = int(((predicted == code) & (graph.labels == code)).sum())
        f1.append(2 * hits / int((predicted[known] == code).sum() + (graph.labels == code).sum()))
    edges = {"edges": source[2]} if len(source) > 1 else {}
    scores = drift.evaluate(trained, source[0], **edges)
    assert (scores["rows"], scores["labeled_rows"]) == (30, 22)
    assert scores["accuracy"] == pytest.approx(right)
    assert scores["macro_f1"] == pytest.approx(sum(f1) / 3)
    assert 0 < right < 1  # it tells one class from another, but not always

    code, out, err = call("evaluate", str(trained), *source)
    assert (code, err) == (0, "")
    assert out.startswith("22 of 30 rows have a label\n")
    assert f"{'accuracy':20} {100 * right:.2f} % (95 % interval " in out
    assert f"{'macro-F1':20} {100 * sum(f1) / 3:.2f} %\n" in out
    assert f"{'calibration error':20} {100 * scores['calibration_error']:.2f} %\n" in out


def test_a_class_that_the_model_lacks_counts_as_an_error(folder: Path, trained: Path) -> None:
    graph = small_graph(
        labels=np.where(np.arange(30) < 10, 3, GRAPH.labels), classes=[*GRAPH.classes, "pop"], splits={}
    )
    write_npz(folder / "more.npz", graph)
    scores = drift.evaluate(trained, "more.npz")
    predicted = drift.load(trained).predict_proba(graph).argmax(1)
    assert scores["labeled_rows"] == 30
    assert scores["accuracy"] == pytest.approx(float((predicted == GRAPH.labels)[10:].sum()) / 30)
    assert scores["notes"][0].startswith("warning: 10 of 30 labelled nodes of more.npz have labels that training lacks")


def test_the_test_nodes_are_scored_as_the_run_scored_them(folder: Path, trained: Path) -> None:
    test = np.isin(np.arange(30), GRAPH.splits["test"])
    write_npz(folder / "test.npz", small_graph(labels=np.where(test, GRAPH.labels, -1)))
    run = drift.load(trained)
    kept = run.metrics["test"]["scores"][run.metrics["seeds"].index(run.metrics["kept_seed"])]
    scores = drift.evaluate(run, "test.npz")
    assert scores["labeled_rows"] == run.metrics["test"]["rows"]
    assert {name: scores[name] for name in kept} == pytest.approx(kept)


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        (np.full(30, -1), ["art", "law", "zoo"], "blank.npz: none of the 30 nodes has a label to score against"),
        (np.arange(30) % 2, ["pop", "rap"], "node 1: label 'pop' is not among the training labels (art, law, zoo)"),
        (None, None, "none.npz is not there"),
    ],
)
def test_a_mistake_in_evaluate(
    folder: Path, call: Call, trained: Path, labels: Any, classes: Any, message: str
) -> None:
    if labels is not None:
        write_npz(folder / "blank.npz", small_graph(labels=labels, classes=classes, splits={}))
    code, out, err = call("evaluate", str(trained), "none.npz" if labels is None else "blank.npz")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert message in err


def test_a_graph_needs_no_task_and_is_predicted_at_a_terminal_too(
    folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("fit", "--graph", "graph.npz", *QUICK[2:], "-o", "run")[0] == 0
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert written_file(call("predict", "run", "graph.npz", "-o", "out.csv")) == "out.csv"


def test_another_graph_as_tables(folder: Path, call: Call, trained: Path) -> None:
    (folder / "other").mkdir()
    other = small_graph(12, seed=4, labels=np.full(12, -1))
    write_tables(folder / "other", other)
    tables = ["other/nodes.csv", "--edges", "other/edges.csv"]
    assert written_file(call("predict", str(trained), *tables, "-o", "out.csv")) == "out.csv"
    assert table_of("out.csv")["predicted"] == drift.load(trained).predict(other)


def test_data_is_named_once(call: Call, tmp_path: Path) -> None:
    code, _, err = call("fit", "nodes.csv", "--graph", "Cora", "-o", str(tmp_path / "run"))
    assert code == 2
    assert "a table, nodes.csv, and --graph were given; name the data once" in err
