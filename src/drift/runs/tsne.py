"""Learned representations of several runs on the same data, side by side in the plane (the paper's figure 5)."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from drift.errors import ConfigError
from drift.report.embedding_figure import tsne_figure
from drift.report.figures import save
from drift.runs.load import load
from drift.tasks.parts import Representations

NAME = "tsne"  # of the files


def tsne(
    runs: Sequence[str | Path],
    out: str | Path,
    *,
    titles: Sequence[str] | None = None,
    tick: Callable[[], None] = lambda: None,
) -> Path:
    """Draw the learned representations of runs on one graph, one panel per run.

    Parameters
    ----------
    runs : sequence of paths
        Folders of runs on the nodes of the same graph, which is read again.
    out : path
        Folder for `tsne.png` and `tsne.svg`.
    titles : sequence of str, default=None
        One title per run; by default its method and graph.
    tick : callable, default=None
        Called after every panel.

    Returns
    -------
    Path
        The PNG file.
    """
    if isinstance(runs, (str, Path)):
        warnings.warn("tsne takes a list of runs; give tsne([run], out)", FutureWarning, stacklevel=2)
        runs = [runs]
    if not runs:
        raise ConfigError("no run was given; name the folder of one or more")
    if titles is not None and len(titles) != len(runs):
        raise ConfigError(f"{len(titles)} titles for {len(runs)} runs; give one per run")
    read = [_read(run) for run in runs]
    first = read[0][0]
    for run, (other, _) in zip(runs[1:], read[1:], strict=True):
        if not _same_rows(other, first):
            raise ConfigError(
                f"{run} is on other nodes ({_name(other)}) than {runs[0]} ({_name(first)}); give runs on the same graph"
            )
    if titles is None:
        titles = [f"{method} on {Path(data.source).name}" for data, method in read]
        if len(set(titles)) < len(titles):
            titles = [f"{title} ({run})" for title, run in zip(titles, runs, strict=True)]
    if len(set(titles)) < len(titles):
        raise ConfigError("two panels would have the same title; name each run once, and give each a title of its own")
    vectors = {title: data.vectors for title, (data, _) in zip(titles, read, strict=True)}
    return save(tsne_figure(vectors, first.labels, list(first.classes), tick=tick), Path(out), NAME)


def _read(run: str | Path) -> tuple[Representations, str]:
    """Representations of a run's data, and the name of its method."""
    opened = load(run)
    return opened.task.representations(opened.trained()), opened.record.method


def _same_rows(one: Representations, other: Representations) -> bool:
    named_alike = one.rows == other.rows and list(one.classes) == list(other.classes)
    return named_alike and np.array_equal(one.labels, other.labels)


def _name(data: Representations) -> str:
    return f"{data.source}, {len(data.labels):,} nodes"
