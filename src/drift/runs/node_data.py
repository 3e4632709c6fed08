"""From a user's graph to what a run learns from: labelled nodes of every seed, dev and test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drift.data.graphs import Graph, Split, public_split, random_split, read_graph
from drift.errors import ConfigError, LabelError
from drift.runs.config import NodeDataSettings


@dataclass(frozen=True)
class NodeData:
    """A graph, and a split a seed; dev and test are the same in all of them."""

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


def read_node_data(settings: NodeDataSettings, sources: Mapping[str, Any], seeds: Sequence[int]) -> NodeData:
    """Read the graph and split it. sources: what train is, a graph or a table of nodes."""
    graph = read_graph(
        sources["train"],
        edges=settings.edges,
        id=settings.id,
        label=settings.label,
        source_column=settings.source,
        target_column=settings.target,
        directed=settings.directed,
    )
    if not graph.classes:
        raise LabelError(f"{graph.name} has no labels; give some nodes a class")
    if settings.labels_per_class is not None:
        counts = dict(dev=settings.dev_nodes, test=settings.test_nodes)
        return NodeData(graph, [random_split(graph, settings.labels_per_class, seed=seed, **counts) for seed in seeds])
    if "train" in graph.splits:
        return NodeData(graph, [public_split(graph)] * len(seeds))
    known = np.flatnonzero(graph.labels >= 0)
    if settings.dev_nodes + settings.test_nodes >= len(known):
        raise ConfigError(
            f"{graph.name} has {len(known)} labelled nodes and came without a split; say how many are for dev and test"
            " with data.dev_nodes and data.test_nodes, fewer than that in all"
        )
    drawn = np.random.default_rng(0).permutation(known)
    dev, test, train = np.split(drawn, [settings.dev_nodes, settings.dev_nodes + settings.test_nodes])
    return NodeData(graph, [Split(np.sort(train), np.sort(dev), np.sort(test))] * len(seeds))
