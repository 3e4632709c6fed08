"""What the page about a model of nodes shows beside its scores: the graph, and what it has to do with the mistakes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from drift.report.figures import confusion
from drift.report.page import Section, Table
from drift.runs.report_rings import Draw
from drift.tasks.nodes.links import NEIGHBOURHOODS
from drift.weak.diagnostics import Share

MOST_CLASSES_DRAWN = 25


def graph_sections(metrics: Mapping[str, Any], where: str | None, draw: Draw) -> list[Section]:
    """How classes are linked, and how right the model is by its nodes' neighbours; nothing where nothing was judged."""
    found = metrics.get("links")
    if found is None:
        return []
    counts = np.array(found["counts"])
    total = int(counts.sum())
    if not total:
        return []
    graph, shares = metrics["graph"], counts.sum(1) / total
    same = Share(int(counts.trace()), total)
    told = [
        f"{graph['name']} has {graph['nodes']:,} nodes with {graph['features']:,} features each. {same} links, counted"
        f" from both ends, join nodes of one class; if classes had nothing to do with links,"
        f" {100 * (shares**2).sum():.1f}% would."
    ]
    wrong = Share(**found["wrong_as_neighbours"])
    if wrong.of:
        told.append(
            f"Of the {wrong.of:,} {where} nodes it is wrong on and that have neighbours of known class,"
            f" {wrong.count:,} ({wrong.rate:.0%}) were taken for the class that is most common among those, or for one"
            " as common."
        )
    told.append("These counts use the true classes of all nodes, and nothing was chosen by them.")
    neighbours = [Share(**each) for each in found["neighbourhoods"]]
    rows = [[name, str(share)] for name, share in zip(NEIGHBOURHOODS, neighbours, strict=True) if share.of]
    tables = [Table(["neighbours", "right"], rows, f"On {where}, by the classes of a node's neighbours")]
    tables.append(_by_class(counts, np.array(metrics["confusion"]), metrics["classes"]))
    pictures = []
    if len(counts) <= MOST_CLASSES_DRAWN:
        drawn = confusion(counts, metrics["classes"], down="class of a node", across="class of its neighbour")
        caption = "Links from class to class, shaded by share of a class's links."
        pictures = [draw(drawn, "links", f"Link matrix. {told[0]}", caption)]
    return [Section("The graph", told, tables, pictures)]


def _by_class(links: np.ndarray, confused: np.ndarray, classes: list[str]) -> Table:
    """Whether a class is taken for the one it is linked to most."""
    rows = []
    for place, name in enumerate(classes):
        own = Share(int(links[place, place]), int(links[place].sum()))
        rows.append([name, str(own), _other(links, place, classes), _other(confused, place, classes)])
    headings = ["class", "links to its own", "of the others, most linked to", "most often taken for"]
    return Table(headings, rows, "Are classes taken for those they are linked to?")


def _other(counts: np.ndarray, place: int, classes: list[str]) -> str:
    others = np.where(np.arange(len(counts)) == place, 0, counts[place])
    most = int(others.argmax())
    return f"{classes[most]} ({others[most]:,})" if others[most] else "-"
