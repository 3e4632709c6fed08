"""Verbs that write tables, pages and pictures, for the harness of `writers.py`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import drift
from drift.annotate.finish import write_labels
from drift.runs.predict import predict_file, suggest
from drift.runs.report import write_report
from drift.runs.result import Run
from drift.weak import RuleSet, label_table
from tests.annotate.small import CLASSES, clusters
from tests.runs.small import small_encoder, small_fit, small_table, write_csv
from tests.runs.small_graphs import small_graph, small_node_fit, write_tables

Action = Callable[[], object]
RULES = [{"name": "a", "label": "x", "has": ["7"]}, {"name": "b", "label": "y", "has": ["3"]}]


@dataclass(frozen=True)
class Writer:
    """Something that writes into one folder.

    action: writes; called again, it continues or starts over. check: called after every stop; raises if anything under
    a final name is not whole. at_end: raises if the result is not to the bit what it is without a stop.
    """

    action: Action
    check: Action
    at_end: Action


def writes(action: Callable[[Path], object], inputs: Path, place: Path, *names: str) -> Writer:
    """A verb that writes files: each is whole or absent. action: called with the folder to write into."""
    expected = inputs / "expected"
    expected.mkdir()
    action(expected)

    def check() -> None:
        for name in names:
            assert not (place / name).exists() or (place / name).read_bytes() == (expected / name).read_bytes()

    def at_end() -> None:
        for name in names:
            assert (place / name).read_bytes() == (expected / name).read_bytes()

    return Writer(lambda: action(place), check, at_end)


def predict(inputs: Path, place: Path) -> Writer:
    graph = small_graph(3000)
    small_node_fit(graph, out=inputs / "run")
    nodes, edges = write_tables(inputs, graph)
    return writes(
        lambda out: predict_file(inputs / "run", nodes, out / "out.csv", edges=edges), inputs, place, "out.csv"
    )


def text_run(inputs: Path) -> Run:
    train = write_csv(inputs / "train.csv", small_table(40, labeled=10))
    return small_fit(train, small_encoder(inputs / "encoder"), text="body", label="topic", out=inputs / "run")


def predict_texts(inputs: Path, place: Path) -> Writer:
    run, table = text_run(inputs), write_csv(inputs / "table.csv", small_table(3000, labeled=0))
    return writes(lambda out: predict_file(run, table, out / "out.jsonl"), inputs, place, "out.jsonl")


def label(ending: str) -> Callable[[Path, Path], Writer]:
    def build(inputs: Path, place: Path) -> Writer:
        table = write_csv(inputs / "table.csv", {"text": [f"row {row}" for row in range(20_000)]})
        name, rules = f"out.{ending}", RuleSet(RULES)
        return writes(lambda out: label_table(table, rules, out / name), inputs, place, name)

    return build


def check(inputs: Path, place: Path) -> Writer:
    _, vectors, codes = clusters(400)

    def action(out: Path) -> None:
        drift.check(vectors, codes, out=out / "found.csv", page=out / "found.html", quiet=True)

    return writes(action, inputs, place, "found.csv", "found.html")


def curve(inputs: Path, place: Path) -> Writer:
    _, vectors, codes = clusters(60)
    return writes(
        lambda out: drift.curve(vectors, codes, out=out / "curve.png", quiet=True), inputs, place, "curve.png"
    )


def suggestions(inputs: Path, place: Path) -> Writer:
    run, table = text_run(inputs), write_csv(inputs / "table.csv", small_table(600, labeled=0))
    return writes(lambda out: suggest(run, table, 300, out=out / "out.csv"), inputs, place, "out.csv")


def report(inputs: Path, place: Path) -> Writer:
    """A page that is there is replaced at once: it is whole at every moment."""
    graph, run = small_graph(), place / "run"

    def action() -> None:
        small_node_fit(graph, out=run, resume=(run / "config.yaml").exists())
        write_report(run)

    def whole() -> None:
        page = run / "report.html"
        assert not page.exists() or page.read_text().rstrip().endswith("</html>")

    return Writer(action, whole, whole)


def finished_labels(inputs: Path, place: Path) -> Writer:
    texts, vectors, codes = clusters(2000)
    session = drift.Annotation(texts, CLASSES, vectors=vectors, heads=2)
    session.label_many(range(0, 60, 3), CLASSES[int(codes[0])])
    return writes(lambda out: write_labels(session, out / "labels.csv"), inputs, place, "labels.csv")


TABLE_WRITERS: dict[str, Callable[[Path, Path], Writer]] = {
    "predict, nodes": predict,
    "predict, texts": predict_texts,
    "label, CSV": label("csv"),
    "label, JSON lines, gzipped": label("jsonl.gz"),
    "label, Parquet": label("parquet"),
    "check": check,
    "curve": curve,
    "suggest": suggestions,
    "report": report,
    "labels of annotate": finished_labels,
}
