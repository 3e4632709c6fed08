"""Sections of the page about a node classifier: the graph, and how its links relate to the mistakes."""

from collections.abc import Sequence

import numpy as np

from drift.report.figures import confusion
from drift.report.page import Section, Table
from drift.tasks.class_report import MOST_CLASSES_DRAWN
from drift.tasks.nodes.links import NEIGHBOURHOODS
from drift.tasks.nodes.record import NodeRecord
from drift.tasks.parts import Draw
from drift.weak.diagnostics import Share


def graph_sections(record: NodeRecord, draw: Draw) -> list[Section]:
    """How classes are linked, and how often the model is right by a node's neighbours; empty if nothing was scored."""
    links, part, graph = record.links, record.held_out, record.graph
    if links is None or not sum(map(sum, links.counts)):
        return []
    counts = np.array(links.counts)
    total = int(counts.sum())
    shares, same = counts.sum(1) / total, Share(int(counts.trace()), total)
    text = [
        f"{graph.name} has {graph.nodes:,} nodes with {graph.features:,} features each. {same} links, counted from both"
        f" ends, join nodes of one class; {100 * (shares**2).sum():.1f}% would if links were independent of classes."
    ]
    wrong = links.wrong_as_neighbours
    if wrong.of:
        text.append(
            f"Of the {wrong.of:,} misclassified {part} nodes with neighbours of known class, {wrong.count:,}"
            f" ({wrong.rate:.0%}) were predicted as the most common class among their neighbours (or one as common)."
        )
    text.append("These counts use the true classes of all nodes; nothing was selected by them.")
    rows = [[name, str(share)] for name, share in zip(NEIGHBOURHOODS, links.neighbourhoods, strict=True) if share.of]
    tables = [Table(["neighbours", "right"], rows, f"On {part}, by the classes of a node's neighbours")]
    tables.append(_by_class(counts, np.array(record.confusion), record.classes))
    pictures = []
    if len(counts) <= MOST_CLASSES_DRAWN:
        figure = confusion(counts, record.classes, down="class of a node", across="class of its neighbour")
        caption = "Links from class to class, shaded by share of a class's links."
        pictures = [draw(figure, "links", f"Link matrix. {text[0]}", caption)]
    return [Section("The graph", text, tables, pictures)]


def _by_class(links: np.ndarray, confused: np.ndarray, classes: Sequence[str]) -> Table:
    """Whether a class is confused with the one it is linked to most."""
    rows = []
    for code, name in enumerate(classes):
        same = Share(int(links[code, code]), int(links[code].sum()))
        rows.append([name, str(same), _most(links, code, classes), _most(confused, code, classes)])
    headings = ["class", "links within the class", "other class with most links", "most often predicted as"]
    return Table(headings, rows, "Are classes confused with those they are linked to?")


def _most(counts: np.ndarray, code: int, classes: Sequence[str]) -> str:
    """The other class with the highest count."""
    others = np.where(np.arange(len(counts)) == code, 0, counts[code])
    most = int(others.argmax())
    return f"{classes[most]} ({others[most]:,})" if others[most] else "-"
