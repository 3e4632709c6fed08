"""Use a trained model of nodes: what it says of every node of a graph."""

from pathlib import Path
from typing import Any

from drift.data.graphs import Graph, read_graph
from drift.data.table_writer import TableWriter
from drift.runs.config import NodeDataSettings
from drift.runs.result import Run
from drift.training.run_folder import RunFolder


def predict_nodes(run: Run, source: Any, out: str | Path | None, *, abstain_below: float = 0.0) -> list[Any] | None:
    """Classify every node of a graph: a list of classes, or a table `out` with a row for each.

    source: a graph, or where one is, as for `fit`; tables are read with the columns of the run. The table has `node`,
    `label` where it is known, `predicted`, `confidence` and a `p_CLASS` for each class. Nodes whose confidence is below
    `abstain_below` get no class.
    """
    graph = source if isinstance(source, Graph) else _read(run, source)
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


def _read(run: Run, source: Any) -> Graph:
    """As the run read its own."""
    settings = NodeDataSettings()
    if run.path is not None:
        settings = NodeDataSettings.read(RunFolder(run.path).config()["data"], str(run.path))
    return read_graph(
        source,
        edges=settings.edges,
        id=settings.id,
        label=settings.label,
        source_column=settings.source,
        target_column=settings.target,
        directed=settings.directed,
    )
