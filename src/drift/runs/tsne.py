"""What node runs have learned, side by side: their representations of one graph in the plane (the paper's figure 5)."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from drift.data.graphs import Graph
from drift.errors import ConfigError
from drift.report.embedding_figure import tsne_figure
from drift.report.figures import save
from drift.runs.config import NodeDataSettings, config_of
from drift.runs.predict import load
from drift.tasks.nodes.data import open_graph
from drift.tasks.nodes.model import NodeModel
from drift.training.run_folder import RunFolder

NAME = "tsne"  # of the files


def tsne(
    runs: Sequence[str | Path],
    out: str | Path,
    *,
    titles: Sequence[str] | None = None,
    tick: Callable[[], None] = lambda: None,
) -> Path:
    """Draw what runs on the nodes of one graph have learned, a panel each, as `tsne.png` and `tsne.svg` in `out`.

    Each run's graph is read again from where the run had it. titles: one a run; its method and graph if left out.
    tick: called after every panel. Returns the path of the PNG.
    """
    if not runs:
        raise ConfigError("no run was given; name the folder of one or more")
    if titles is not None and len(titles) != len(runs):
        raise ConfigError(f"{len(titles)} titles for {len(runs)} runs; give one a run")
    read = [_read(run) for run in runs]
    first = read[0][1]
    for run, (_, graph, _) in zip(runs[1:], read[1:], strict=True):
        if not _same_nodes(graph, first):
            raise ConfigError(
                f"{run} is on other nodes ({_told(graph)}) than {runs[0]} ({_told(first)}); give runs on the same graph"
            )
    if titles is None:
        titles = [f"{method} on {Path(graph.name).name}" for _, graph, method in read]
        if len(set(titles)) < len(titles):
            titles = [f"{title} ({run})" for title, run in zip(titles, runs, strict=True)]
    if len(set(titles)) < len(titles):
        raise ConfigError("two panels would have the same title; name each run once, and give each a title of its own")
    representations = {
        title: model.representations(graph) for title, (model, graph, _) in zip(titles, read, strict=True)
    }
    return save(tsne_figure(representations, first.labels, first.classes, tick=tick), Path(out), NAME)


def _read(run: str | Path) -> tuple[NodeModel, Graph, str]:
    """A run's model, graph and method."""
    config = config_of(RunFolder(run).config(), str(run))
    if not isinstance(config.data, NodeDataSettings):
        raise ConfigError(f"{run} is a run of --task {config.task}; give runs on the nodes of a graph")
    model = load(run).model
    assert isinstance(model, NodeModel)
    return model, open_graph(config.data, config.data.train), config.method_name


def _same_nodes(one: Graph, other: Graph) -> bool:
    named_alike = one.nodes == other.nodes and one.classes == other.classes
    return named_alike and np.array_equal(one.labels, other.labels)


def _told(graph: Graph) -> str:
    return f"{graph.name}, {len(graph.labels):,} nodes"
