"""Which nodes without a label to label next: doubtful ones from everywhere in the graph."""

from pathlib import Path
from typing import Any

import numpy as np

from drift.data.graphs import Graph
from drift.data.labels import UNLABELED
from drift.data.table_writer import TableWriter
from drift.errors import ConfigError, LabelError
from drift.quality.selection import doubt
from drift.tasks.nodes.predict import read_like
from drift.tasks.parts import TableOptions, Trained
from drift.tasks.suggestions import Candidate, Suggestion, choose, filled_in_table, new_pool, offer

LABEL = "label"


def suggest_nodes(run: Trained, source: Any, n: int, out: str | Path | None, options: TableOptions) -> list[Suggestion]:
    """At most `n` nodes without a label, the most doubtful first; also written to `out`, if that is given.

    In a graph in which every node has a label, those outside the graph's own training nodes count as unlabelled.
    """
    writer = None if out is None else TableWriter(out, spreadsheet=options.spreadsheet)
    graph = read_like(run, source, options)
    free = _free(graph)
    if not len(free):
        raise LabelError(f"{graph.name}: every node has a label; nothing is left to suggest")
    probabilities = run.model.predict_proba(graph).astype(float)
    vectors, doubts = _vectors(run, graph, probabilities), doubt(probabilities)
    classes, pool = run.model.classes, new_pool(n, options.seed)
    for node in map(int, free):
        name = str(node) if graph.nodes is None else graph.nodes[node]
        first, second = np.argsort(-probabilities[node], kind="stable")[:2]
        high, low = probabilities[node, first], probabilities[node, second]
        why = f"{classes[first]} {100 * high:.0f} %, {classes[second]} {100 * low:.0f} %"
        columns = {"node": name, LABEL: None}
        found = Suggestion(node + 1, f"node {name}", columns, classes[first], float(high), float(high - low), why)
        offer(pool, Candidate(found, float(doubts[node]), vectors[node]))
    chosen = choose(pool, n, options.seed, by_letters=False)
    if writer is not None:
        with writer:
            writer.write(filled_in_table(chosen, LABEL))
    return chosen


def _free(graph: Graph) -> np.ndarray:
    """The nodes that may be labelled."""
    free = np.flatnonzero(graph.labels == UNLABELED)
    if len(free) or "train" not in graph.splits:
        return free
    held_out = [rows for part, rows in graph.splits.items() if part != "train"]
    used = np.concatenate([graph.splits["train"], *held_out])
    return np.setdiff1d(np.arange(len(graph.labels)), used)


def _vectors(run: Trained, graph: Graph, probabilities: np.ndarray) -> np.ndarray:
    """What nodes are compared by: the hidden layer of the model if it has one, else the probabilities."""
    try:
        return np.asarray(run.model.representations(graph))
    except ConfigError:
        return probabilities
