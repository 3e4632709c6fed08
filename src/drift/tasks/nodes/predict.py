"""Use a trained model of nodes: what it says of every node of a graph."""

import os
from pathlib import Path
from typing import Any

from drift.data.columns import LABEL_NAMES
from drift.data.graphs import Graph
from drift.data.table_writer import TableWriter
from drift.data.tables import column_names
from drift.errors import FileError
from drift.runs.config import NodeDataSettings
from drift.runs.result import Run
from drift.tasks.nodes.data import open_graph
from drift.training.run_folder import RunFolder


def predict_nodes(
    run: Run,
    source: Any,
    out: str | Path | None,
    *,
    edges: str | Path | None = None,
    abstain_below: float = 0.0,
) -> list[Any] | None:
    """Classify every node of a graph: a list of classes, or a table `out` with a row for each.

    source: a graph, or where one is, as for `fit`; tables are read with the columns of the run. edges: a
    table of edges beside a table of nodes; the run's if left out. The table has `node`,
    `label` where it is known, `predicted`, `confidence` and a `p_CLASS` for each class. Nodes whose confidence is below
    `abstain_below` get no class.
    """
    for read in (source, edges):
        if out is not None and isinstance(read, (str, Path)) and os.path.realpath(read) == os.path.realpath(out):
            raise FileError(f"{out} is what is read, and its other columns would be lost; give another name")
    graph = _read(run, source, edges)
    probabilities = run.predict_proba(graph).astype(float)
    codes, confidence = probabilities.argmax(-1), probabilities.max(-1)
    predicted = [
        run.classes[code] if sure else None for code, sure in zip(codes, confidence >= abstain_below, strict=True)
    ]
    if out is None:
        return predicted
    known = [graph.classes[code] if code >= 0 else None for code in graph.labels]
    columns: dict[str, list[Any]] = {
        "node": graph.nodes or list(range(len(codes))),
        "label": known,
        "predicted": predicted,
        "confidence": confidence.round(6).tolist(),
    }
    columns |= {f"p_{name}": probabilities[:, code].round(6).tolist() for code, name in enumerate(run.classes)}
    with TableWriter(out) as table:
        table.write(columns)
    return None


def _read(run: Run, source: Any, edges: str | Path | None) -> Graph:
    """As the run read its own; a table may have no labels."""
    settings = NodeDataSettings()
    if run.path is not None:
        settings = NodeDataSettings.read(RunFolder(run.path).config()["data"], str(run.path))
    if edges is not None:
        settings = settings.model_copy(update={"edges": str(edges)})
    if settings.edges is not None and not isinstance(source, Graph):
        named = [settings.label] if settings.label else LABEL_NAMES
        columns = column_names(source)
        if not {*columns, *(column.strip().lower() for column in columns)}.intersection(named):
            settings = settings.model_copy(update={"label": ""})
    return open_graph(settings, source)
