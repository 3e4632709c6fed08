"""Every part of the package that writes, small enough to be stopped many times: what it does, and what damage is."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import drift
from drift.annotate.journal import Journal
from drift.data.cache import content_key
from drift.data.tables import read_chunks
from drift.data.vector_store import VectorStore, text_keys
from drift.errors import StateError
from drift.paper.bench.bench import bench
from tests.annotate.small import CLASSES, clusters
from tests.cli.test_bench import write_cora
from tests.hostile.table_writers import TABLE_WRITERS, Writer
from tests.runs.small import same_weights as same_heads
from tests.runs.small import small_encoder, small_fit, small_table, write_csv
from tests.runs.small_graphs import STEPS, same_weights, small_graph, small_node_fit, write_npz


def check_folder(folder: Path) -> None:
    """Every JSON and YAML file under its final name is whole."""
    for file in folder.rglob("*"):
        if any(part.startswith(".") for part in file.relative_to(folder).parts):
            continue
        if file.suffix == ".json":
            json.loads(file.read_text())
        if file.suffix == ".yaml":
            assert isinstance(yaml.safe_load(file.read_text()), dict)
    for record in folder.rglob("metrics.json"):
        drift.load(record.parent)


def nothing() -> None:
    pass


def fit_nodes(inputs: Path, place: Path) -> Writer:
    out, graph = place / "run", small_graph()
    training = {"steps": 60, "initial_steps": 20, "checkpoint_every": 1, "evaluate_every": 20}

    def action() -> None:
        small_node_fit(graph, out=out, resume=(out / "config.yaml").exists(), training=training)

    whole = small_node_fit(graph, training=training)
    return Writer(action, lambda: check_folder(place), lambda: _true(same_weights(drift.load(out), whole)))


def fit_texts(inputs: Path, place: Path) -> Writer:
    out, encoder = place / "run", small_encoder(inputs / "encoder")
    table = write_csv(inputs / "table.csv", small_table(40, labeled=10))
    training = {"steps": 30, "initial_steps": 10, "checkpoint_every": 2}
    columns = {"text": "body", "label": "topic", "training": training}

    def action() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DRIFT_CACHE", str(place / "cache"))
            small_fit(table, encoder, out=out, resume=(out / "config.yaml").exists(), **columns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRIFT_CACHE", str(inputs / "cache"))
        whole = small_fit(table, encoder, **columns)
    return Writer(action, lambda: check_folder(out), lambda: _true(same_heads(drift.load(out), whole)))


def tune(inputs: Path, place: Path) -> Writer:
    graph, out = write_npz(inputs / "graph.npz", small_graph(60)), place / "run"
    config = {"model": {"hidden": 5}, "training": {**STEPS, "learning_rate": 0.02}}

    def search(folder: Path, resume: bool = False) -> Any:
        options = {"out": folder, "resume": resume, "quiet": True, "seeds": 2}
        return drift.tune(graph, task="nodes", n_trials=3, config=config, **options)

    whole = search(inputs / "whole")

    def at_end() -> None:
        run = drift.load(out)
        assert run.metrics["tuning"] == whole.metrics["tuning"]
        assert same_weights(run, whole)

    return Writer(lambda: search(out, (out / "tuning/config.yaml").exists()), lambda: check_folder(place), at_end)


def bench_table(inputs: Path, place: Path) -> Writer:
    write_cora(inputs / "data")
    few: dict[str, Any] = {
        "cells": ["cora-10"],
        "methods": ["self-training-lee"],
        "seeds": 2,
        "n_jobs": 1,
        "quiet": True,
    }

    def made(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DRIFT_DATA", str(inputs / "data"))
            patch.setattr("drift.paper.bench.running.workers", _no_workers)  # they would outlive the kill
            patch.setattr("drift.paper.bench.running.results", _one_by_one)
            done = bench("table5", folder, **few)
        if done.failures:  # the command prints them at its end
            raise StateError(done.failures[0].reason)

    made(inputs / "whole")

    def scores(folder: Path) -> list[Any]:
        return [json.loads(file.read_text())["scores"] for file in sorted(folder.rglob("result.json"))]

    def at_end() -> None:
        assert scores(place / "bench") == scores(inputs / "whole") != []

    return Writer(lambda: made(place / "bench"), lambda: check_folder(place), at_end)


def annotate(inputs: Path, place: Path) -> Writer:
    """A label that was acknowledged is never lost, and none is there twice."""
    texts, vectors, codes = clusters(40)
    journal, seen = place / "labels.jsonl", place / "seen"
    rows = 12

    def action() -> None:
        place.mkdir(exist_ok=True)
        options: dict[str, Any] = {"vectors": vectors, "heads": 2, "background": False, "journal": journal}
        with drift.Annotation(texts, CLASSES, **options) as opened:
            while (question := opened.next()) is not None and len(labels()) < rows:
                opened.label(question.row, CLASSES[codes[question.row]])
                with seen.open("a") as file:  # acknowledged
                    file.write(f"{question.row}\n")

    def labels() -> list[int]:
        if not journal.exists():
            return []
        lines = journal.read_bytes().split(b"\n")[:-1]
        events = [json.loads(line) for line in lines][1:]
        return [row for event in events if "label" in event.get("do", "") for row in _rows_of(event)]

    def check() -> None:
        noted = seen.read_text().split("\n")[:-1] if seen.exists() else []
        assert {int(row) for row in noted if row} <= set(labels())
        if journal.exists() and journal.stat().st_size:
            Journal(journal, {"texts": content_key(texts)}).close()

    def at_end() -> None:
        check()
        assert len(labels()) == len(set(labels())) == rows

    return Writer(action, check, at_end)


def _rows_of(event: dict[str, Any]) -> list[int]:
    return list(event["rows"]) if "rows" in event else [event["row"]]


def cache(inputs: Path, place: Path) -> Writer:
    keys = text_keys(str(row) for row in range(4000))
    vectors = np.random.default_rng(0).random((len(keys), 64), dtype=np.float32)

    def store() -> VectorStore:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DRIFT_CACHE", str(place))
            return VectorStore(["test"], 64)

    def action() -> None:
        for start in range(0, len(keys), 500):
            part = slice(start, start + 500)
            opened = store()
            if (opened.find(keys[part]) < 0).any():
                opened.write(keys[part], np.zeros(500, dtype=bool), [vectors[part]])

    def check() -> None:
        opened = store()
        found = opened.find(keys)
        np.testing.assert_array_equal(opened.read(found[found >= 0]), vectors[found >= 0])

    def at_end() -> None:
        check()
        assert (store().find(keys) >= 0).all()

    return Writer(action, check, at_end)


def classifier(inputs: Path, place: Path) -> Writer:
    """A saved classifier that is replaced again and again is there at every moment."""
    generator = np.random.default_rng(0)
    features = generator.normal(size=(60, 5)) + 3 * np.eye(5)[np.arange(60) % 2]
    fitted = drift.DriftClassifier(random_state=0).fit(features, np.arange(60) % 2)
    expected, out = fitted.predict_proba(features), place / "classifier"

    def action() -> None:
        for _ in range(30):
            fitted.save(out)
            (place / "begun").touch()

    def check() -> None:
        if out.exists() or (place / "begun").exists():
            loaded = drift.DriftClassifier.load(out)
            np.testing.assert_array_equal(loaded.predict_proba(features), expected)

    return Writer(action, check, check)


def _no_workers(*_: Any, **__: Any) -> Any:
    from contextlib import nullcontext

    return nullcontext(1)


def _one_by_one(calls: Any, *_: Any, **__: Any) -> Any:
    return (function(*positional, **named) for function, positional, named in calls)


def _true(value: bool) -> None:
    assert value


def emptied(place: Path) -> None:
    """Remove everything in a folder."""
    for path in place.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def rows_of(path: Path) -> int:
    return sum(len(chunk.columns["text"]) for chunk in read_chunks(path))


WRITERS: dict[str, Callable[[Path, Path], Writer]] = {
    "fit of nodes": fit_nodes,
    "fit of texts, with its cache": fit_texts,
    "tune": tune,
    "bench": bench_table,
    "annotate": annotate,
    **TABLE_WRITERS,
    "cache of vectors": cache,
    "saved classifier": classifier,
}
