"""Classify and evaluate all nodes of a graph."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.columns import LABEL_NAMES
from drift.data.graphs import Graph
from drift.data.labels import UNLABELED, known_labels
from drift.data.table_writer import TableWriter
from drift.data.tables import column_names
from drift.errors import FileError, LabelError
from drift.tasks.nodes.data import open_graph
from drift.tasks.nodes.settings import NodeDataSettings
from drift.tasks.parts import TableOptions, Trained
from drift.tasks.scoring import evaluation_scores


def predict_nodes(
    run: Trained, source: Any, out: str | Path | None, options: TableOptions
) -> Iterator[list[str | None]]:
    """The classes of all nodes of a graph, at once.

    source: a graph, as for `fit`; tables are read with the columns of the run.
    out: a table with `node`, `label` where it is known, `predicted`, `confidence` and one `p_CLASS` per class.
    """
    for read in (source, options.edges):
        if out is not None and isinstance(read, (str, Path)) and os.path.realpath(read) == os.path.realpath(out):
            raise FileError(f"{out} is what is read, and its other columns would be lost; give another name")
    graph, classes = read_like(run, source, options), run.model.classes
    probabilities = run.model.predict_proba(graph).astype(float)
    codes, confidence = probabilities.argmax(-1), probabilities.max(-1)
    sure = confidence >= options.abstain_below
    predicted = [classes[code] if kept else None for code, kept in zip(codes, sure, strict=True)]
    if out is not None:
        columns: dict[str, list[Any]] = {
            "node": graph.nodes or list(range(len(codes))),
            "label": [graph.classes[code] if code >= 0 else None for code in graph.labels],
            "predicted": predicted,
            "confidence": confidence.round(6).tolist(),
        }
        columns |= {f"p_{name}": probabilities[:, code].round(6).tolist() for code, name in enumerate(classes)}
        with TableWriter(out, spreadsheet=options.spreadsheet) as table:
            table.write(columns)
    if options.tally is not None:
        options.tally.add(len(predicted), predicted, confidence.tolist())
    yield predicted


def evaluate_nodes(run: Trained, source: Any, options: TableOptions) -> dict[str, Any]:
    """Scores on all nodes of a graph that have a label. On the run's own graph, those include its training nodes."""
    graph, classes = read_like(run, source, options), run.model.classes
    labels = known_labels(
        [graph.classes[code] if code != UNLABELED else None for code in graph.labels],
        classes,
        graph.name,
        refuse=False,
        unit="nodes",
    )
    known = np.flatnonzero(labels.codes != UNLABELED)
    if not len(known):
        raise LabelError(f"{graph.name}: none of the {len(graph.labels)} nodes has a label to score against")
    probabilities = run.model.predict_proba(graph)[known]
    scores = evaluation_scores(probabilities, labels.codes[known], classes, options.abstain_below)
    return {"rows": len(graph.labels), "labeled_rows": len(known), **scores, "notes": labels.notes}


def data_settings(run: Trained) -> NodeDataSettings:
    """How the run read its graph; the defaults if its configuration is not known."""
    if not run.config:
        return NodeDataSettings()
    if not isinstance(run.config.get("data"), dict):
        raise FileError("config.yaml of the run is damaged: it has no data; copy the run's folder again")
    return NodeDataSettings.read(run.config["data"], "the run")


def read_like(run: Trained, source: Any, options: TableOptions) -> Graph:
    """Read a graph as the run read its own; a table may lack the label column."""
    settings = data_settings(run)
    if options.edges is not None:
        settings = settings.model_copy(update={"edges": str(options.edges)})
    if options.label is not None:
        settings = settings.model_copy(update={"label": options.label})
    if settings.edges is not None and not isinstance(source, Graph):
        named = [settings.label] if settings.label else LABEL_NAMES
        columns = column_names(source)
        if not {*columns, *(column.strip().lower() for column in columns)}.intersection(named):
            settings = settings.model_copy(update={"label": ""})
    return open_graph(settings, source)
