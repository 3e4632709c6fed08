"""Splits of the labelled nodes of a graph into train, dev and test."""

from dataclasses import dataclass, field

import numpy as np

from drift.data.graph_formats import MASKS
from drift.data.graphs import Graph
from drift.data.labels import UNLABELED
from drift.errors import ConfigError, DataError, LabelError

HELD_OUT_SEED = 0  # of dev and test nodes, which are the same for every seed of the training labels


@dataclass(frozen=True)
class Split:
    """Sorted row numbers of the labelled nodes of each split; no node is in two of them. notes: messages for the user.

    All nodes of the graph are available for training without their labels.
    """

    train: np.ndarray
    dev: np.ndarray
    test: np.ndarray
    notes: list[str] = field(default_factory=list)


def public_split(graph: Graph) -> Split:
    """The split that the source defines; dev and test are empty if it does not define them."""
    if "train" not in graph.splits:
        raise DataError(f"{graph.name} came without train nodes; use random_split")
    train, dev, test = (graph.splits.get(split, np.empty(0, dtype=np.int64)) for split in MASKS)
    return Split(train, dev, test)


def whole_split(graph: Graph, *, dev: int = 500, test: int = 1000) -> Split:
    """All labelled nodes outside dev and test as train; dev and test are the same as in `random_split`.

    dev, test: number of labelled nodes to draw if the source does not define these splits.
    """
    held_out, notes = _held_out(graph, {"dev": dev, "test": test})
    return Split(_labelled_outside(graph, held_out), held_out["dev"], held_out["test"], notes)


def random_split(graph: Graph, per_class: int, *, dev: int = 500, test: int = 1000, seed: int) -> Split:
    """`per_class` random training labels per class, drawn with `seed`; dev and test are the same for every seed.

    dev, test: number of labelled nodes to draw if the source does not define these splits. If a class has fewer than
    `per_class` nodes left, all are taken, with a note: outside the public dev and test nodes, two classes of Cora have
    fewer than 100.
    """
    if per_class < 1 or dev < 0 or test < 0:
        raise ConfigError(f"per_class is {per_class}, dev {dev} and test {test}; give at least 1, 0 and 0")
    if not graph.classes:
        raise LabelError(f"{graph.name} has no labels; give some to split")
    held_out, notes = _held_out(graph, {"dev": dev, "test": test})
    pool = _labelled_outside(graph, held_out)
    generator = np.random.default_rng(seed)
    train = []
    for index, name in enumerate(graph.classes):
        rows = pool[graph.labels[pool] == index]
        if not len(rows):
            raise LabelError(
                f"{graph.name}: no node of class {name!r} is left for training; give a smaller dev or test"
            )
        if len(rows) < per_class:
            notes.append(f"class {name!r} has {len(rows)} nodes outside dev and test; all are taken, not {per_class}")
        train.append(generator.permutation(rows)[:per_class])
    return Split(np.sort(np.concatenate(train)), held_out["dev"], held_out["test"], notes)


def _held_out(graph: Graph, sizes: dict[str, int]) -> tuple[dict[str, np.ndarray], list[str]]:
    """The dev and test nodes of the source; a split that it does not define is drawn, with a fixed seed.

    If that would leave no label to train on, they get half of the labels, in proportion, with a note. sizes: number of
    nodes to draw for each split.
    """
    generator = np.random.default_rng(HELD_OUT_SEED)
    held_out = {split: graph.splits[split] for split in sizes if split in graph.splits}
    wanted = {split: size for split, size in sizes.items() if split not in held_out}
    free, notes = len(_labelled_outside(graph, held_out)), []
    if (asked := sum(wanted.values())) and asked >= free:
        wanted = {split: size * free // (2 * asked) for split, size in wanted.items()}
        shared = " and ".join(f"{size} {split} nodes" for split, size in wanted.items())
        notes.append(f"{graph.name} has {free} labels to share, too few for {asked} nodes of dev and test: {shared}")
    for split, size in wanted.items():
        held_out[split] = np.sort(generator.permutation(_labelled_outside(graph, held_out))[:size])
    return held_out, notes


def _labelled_outside(graph: Graph, held_out: dict[str, np.ndarray]) -> np.ndarray:
    """Row numbers of the labelled nodes outside these splits."""
    free = graph.labels != UNLABELED
    for rows in held_out.values():
        free[rows] = False
    return np.flatnonzero(free)
