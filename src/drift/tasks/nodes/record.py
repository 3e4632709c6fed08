"""The record of a run on the nodes of a graph."""

from drift.tasks.nodes.links import NEIGHBOURHOODS
from drift.tasks.record import ClassRecord
from drift.tasks.record_parts import Part
from drift.weak.diagnostics import Share


class GraphFacts(Part):
    """The graph. labeled: how many nodes have a known class."""

    name: str
    nodes: int
    edges: int
    features: int
    labeled: int


class Links(Part):
    """How links relate to classes.

    counts: links from class to class. neighbourhoods: how often nodes are right, grouped by the share of neighbours
    with the same class. wrong_as_neighbours: misclassified nodes that got the most common class of their neighbours.
    """

    counts: list[list[int]]
    neighbourhoods: list[Share]
    wrong_as_neighbours: Share


class NodeRecord(ClassRecord):
    """The record of a run on nodes."""

    graph: GraphFacts
    links: Links | None = None

    def faults(self) -> list[str]:
        faults = super().faults()
        if self.links is None:
            return faults
        if self.confusion is None:
            faults.append("links: there are no scores beside them")
        if len(self.links.neighbourhoods) != len(NEIGHBOURHOODS):
            faults.append(f"links.neighbourhoods: {len(self.links.neighbourhoods)} entries, not {len(NEIGHBOURHOODS)}")
        return faults + self.shape_faults("links.counts", self.links.counts)
