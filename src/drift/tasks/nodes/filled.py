"""Labels of nodes that were filled in after `drift suggest`, merged into the graph."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from drift.data.columns import find_column
from drift.data.graphs import Graph
from drift.data.labels import UNLABELED
from drift.data.tables import column_names, read_chunks, source_name
from drift.data.text_tables import label_of
from drift.errors import LabelError

NODE, LABEL = "node", "label"  # columns of what `drift suggest` and `drift predict` write


def with_filled_labels(graph: Graph, tables: Sequence[Any]) -> Graph:
    """The graph with filled labels. They join the training nodes of a graph that has a split of its own."""
    for source in tables:
        graph = _merged(graph, source)
    return graph


def _merged(graph: Graph, source: Any) -> Graph:
    name, names = source_name(source), column_names(source)
    node, label = find_column(NODE, names, name), find_column(LABEL, names, name)
    number_of = {each: row for row, each in enumerate(graph.nodes or map(str, range(len(graph.labels))))}
    given: dict[int, str] = {}
    for chunk in read_chunks(source):
        for place, (key, cell) in enumerate(zip(chunk.columns[node], chunk.columns[label], strict=True), chunk.first):
            if (value := label_of(cell)) is None:
                continue
            if (found := number_of.get(str(label_of(key)))) is None:
                raise LabelError(f"{name}, row {place + 1}: {graph.name} has no node {key!r}; give the graph it is of")
            given[found] = value
    if not given:
        raise LabelError(f"{name}: column {label!r} is empty in all rows; fill in some labels")
    classes = sorted({*graph.classes, *given.values()})
    code_of = {each: code for code, each in enumerate(classes)}
    recoded = np.array([code_of[each] for each in graph.classes], dtype=np.int64)
    labels = np.full(len(graph.labels), UNLABELED)
    known = graph.labels != UNLABELED
    labels[known] = recoded[graph.labels[known]]
    rows = np.array(sorted(given), dtype=np.int64)
    labels[rows] = [code_of[given[row]] for row in rows]
    splits = dict(graph.splits)
    for part in splits:
        splits[part] = np.union1d(splits[part], rows) if part == "train" else np.setdiff1d(splits[part], rows)
    notes = [*graph.notes, f"{len(rows):,} labels were read from {name}"]
    return replace(graph, labels=labels, classes=classes, splits=splits, notes=notes)
