"""A graph to training data: labelled nodes for every seed, dev and test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drift.data.graph_splits import Split, public_split, random_split, whole_split
from drift.data.graphs import Graph, read_graph
from drift.errors import LabelError
from drift.tasks.nodes.filled import with_filled_labels
from drift.tasks.nodes.settings import NodeDataSettings

SIMULATED_TEST = 1000  # test nodes by default, where most labels are hidden to simulate a small budget


@dataclass(frozen=True)
class NodeData:
    """A graph, and one split per seed; dev and test are the same in all of them."""

    graph: Graph
    splits: list[Split]

    @property
    def dev(self) -> np.ndarray:
        return self.splits[0].dev

    @property
    def test(self) -> np.ndarray:
        return self.splits[0].test

    @property
    def notes(self) -> list[str]:
        return [*self.graph.notes, *self.splits[0].notes]


def open_graph(settings: NodeDataSettings, source: Any) -> Graph:
    """Read a graph as the settings say; a `Graph` is returned as it is."""
    if isinstance(source, Graph):
        return source
    return read_graph(
        source,
        edges=settings.edges,
        id=settings.id,
        label=settings.label,
        source_column=settings.source,
        target_column=settings.target,
        directed=settings.directed,
    )


def read_node_data(settings: NodeDataSettings, sources: Mapping[str, Any], seeds: Sequence[int]) -> NodeData:
    """Read the graph and split it. sources: train, a graph or a table of nodes."""
    graph = with_filled_labels(open_graph(settings, sources["train"]), sources.get("labels") or settings.labels)
    if len(graph.classes) < 2:
        raise LabelError(f"{graph.name} has labels of {len(graph.classes)} classes; give nodes of two or more a label")
    test = settings.test_nodes
    if test is None:  # who gives labels wants them used; who hides labels wants a score on the hidden ones
        test = 0 if settings.labels_per_class is None else SIMULATED_TEST
    counts = dict(dev=settings.dev_nodes, test=test)
    if settings.labels_per_class is not None:
        splits = [random_split(graph, settings.labels_per_class, seed=seed, **counts) for seed in seeds]
    else:
        splits = [public_split(graph) if "train" in graph.splits else whole_split(graph, **counts)] * len(seeds)
    if not len(splits[0].train):
        raise LabelError(f"{graph.name}: no node with a label is left to train on; give more, or a smaller dev or test")
    return NodeData(graph, splits)
