"""The data of `why.py`: heads on fixed vectors of texts, and a GCN on citation graphs, with ten redrawn seeds each."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from cached_texts import rows_of, vectors_of
from drift.data.examples import Batch, Examples, Vectors
from drift.data.graphs import read_graph
from drift.data.labels import sample_per_class
from drift.models.gcn import GCN
from drift.models.propagation import row_normalized
from drift.models.stacked import Stacked
from drift.tasks.heads import linear_head, scaling
from drift.tasks.nodes.examples import Nodes
from drift.training.settings import TrainingSettings

SEEDS = range(10)
SHARE = 0.75  # of the training texts that a seed sees
POOL, TEST = {"agnews": 8000, "imdb": 4000}, {"agnews": 3000, "imdb": 2000}  # texts
TEST_NODES = 1000
SGD_RATE = 0.05  # learning rate of runs with plain SGD
PIECE = 500  # texts that are embedded between two lines of progress


@dataclass(frozen=True)
class Drawn:
    """The data of a cell: rows of all seeds, `(seeds, n)`, in `examples`, and an untrained student of all seeds.

    labels: of the labelled rows. test, gold: rows that are scored, and their classes.
    supervises: whether the game has a supervised term, as with gold labels. sizes: labelled and unlabelled rows of a
    batch; None: all.
    """

    student: nn.Module
    examples: Examples
    labeled: Tensor
    labels: Tensor
    unlabeled: Tensor
    test_examples: Examples
    test: Tensor
    gold: Tensor
    supervises: bool
    sizes: tuple[int, int] | None

    def batches(self, *, initial: bool) -> Iterator[list[Batch]]:
        """The same batches for every method."""
        generator = torch.Generator().manual_seed(int(initial))
        while True:
            at_l = self._positions(self.labeled, 0, generator)
            rows, labels = self.labeled.gather(1, at_l), self.labels.gather(1, at_l)
            labeled = (self.examples.inputs(rows), labels) if initial or self.supervises else None
            if initial:
                yield [Batch(labeled)]
                continue
            rows = self.unlabeled.gather(1, self._positions(self.unlabeled, 1, generator))
            yield [Batch(labeled, self.examples.inputs(rows), unlabeled_rows=rows)]

    def _positions(self, rows: Tensor, side: int, generator: torch.Generator) -> Tensor:
        if self.sizes is None or rows.shape[1] <= self.sizes[side]:
            return torch.arange(rows.shape[1]).expand(len(rows), -1)
        return torch.randint(rows.shape[1], (len(rows), self.sizes[side]), generator=generator)


@dataclass(frozen=True)
class Cell:
    """A cell of the study. draw: makes its data. alpha, tau: DRIFT's."""

    title: str
    draw: Callable[[], Drawn]
    alpha: float
    tau: float
    training: TrainingSettings


def texts(dataset: str, labels_per_class: int | None) -> Drawn:
    """Heads on the vectors of a dataset. labels_per_class: None: labels from rules."""
    train, test = rows_of(dataset, "train", POOL[dataset]), rows_of(dataset, "test", TEST[dataset])
    classes = sorted({row["label"] for row in train})
    gold = np.array([classes.index(row["label"]) for row in train])
    weak = np.array([-1 if row["weak"] is None else classes.index(row["weak"]) for row in train])
    x, x_test = vectors_of([row["text"] for row in train]), vectors_of([row["text"] for row in test])
    mean, scale = scaling(x)
    labeled, labels, unlabeled = [], [], []
    for seed in SEEDS:
        seen = np.sort(np.random.default_rng(seed).permutation(len(train))[: int(SHARE * len(train))])
        if labels_per_class is None:
            rows, codes, others = seen[weak[seen] >= 0], weak, seen
        else:
            rows, codes = seen[sample_per_class(gold[seen], labels_per_class, seed=seed)], gold
            others = np.setdiff1d(seen, rows)
        labeled, labels, unlabeled = [*labeled, rows], [*labels, codes[rows]], [*unlabeled, others]
    fewest = min(map(len, labeled))  # seeds differ by a few rows of rules
    seen_by_all = torch.arange(len(test)).expand(len(SEEDS), -1)
    codes = torch.tensor([classes.index(row["label"]) for row in test]).expand(len(SEEDS), -1)
    return Drawn(
        Stacked([linear_head(x.shape[1], len(classes)) for _ in SEEDS]),
        Vectors(torch.from_numpy((x - mean) / scale)),
        _stacked([rows[:fewest] for rows in labeled]),
        _stacked([codes[:fewest] for codes in labels]),
        _stacked(unlabeled),
        Vectors(torch.from_numpy((x_test - mean) / scale)),
        seen_by_all,
        codes,
        supervises=labels_per_class is not None,
        sizes=(256, 512),
    )


def nodes(name: str, labels_per_class: int) -> Drawn:
    """A GCN on a graph. Labelled and test nodes are drawn anew for each seed; all nodes are unlabelled in the game."""
    graph = read_graph(name)
    known = np.flatnonzero(graph.labels >= 0)
    labeled, test = [], []
    for seed in SEEDS:
        rows = known[sample_per_class(graph.labels[known], labels_per_class, seed=seed)]
        others = np.random.default_rng(seed).permutation(np.setdiff1d(known, rows))
        labeled, test = [*labeled, rows], [*test, others[:TEST_NODES]]
    everything = np.arange(len(graph.labels))
    unlabeled = [np.setdiff1d(everything, rows) for rows in labeled]
    examples, codes = Nodes(len(graph.labels)), torch.from_numpy(graph.labels)
    student = GCN(row_normalized(graph.features), graph.edges, len(graph.classes), seeds=SEEDS)
    rows, scored = _stacked(labeled), _stacked(test)
    return Drawn(
        student, examples, rows, codes[rows], _stacked(unlabeled), examples, scored, codes[scored], True, sizes=None
    )


def _stacked(rows: Sequence[np.ndarray]) -> Tensor:
    return torch.from_numpy(np.stack(rows)).long()


def _heads(title: str, dataset: str, labels_per_class: int | None) -> Cell:
    decay = 0.01 if labels_per_class is None else 0.2  # these and the rest: presets of the laptop profile
    training = TrainingSettings(
        optimizer="adam",
        initial_steps=300,
        initial_learning_rate=0.01,
        initial_weight_decay=0.3,
        steps=400,
        learning_rate=0.003,
        weight_decay=decay,
    )
    return Cell(title, partial(texts, dataset, labels_per_class), 0.9, 0.5, training)


def _gcn(name: str) -> Cell:
    training = TrainingSettings(optimizer="adam", initial_steps=200, steps=300, learning_rate=0.01, weight_decay=5e-4)
    return Cell(f"{name}, 10 per class", partial(nodes, name, 10), 0.7, 0.25, training)


CELLS = {
    "agnews-rules": _heads("AG News, rules", "agnews", None),
    "agnews-10": _heads("AG News, 10 per class", "agnews", 10),
    "agnews-30": _heads("AG News, 30 per class", "agnews", 30),
    "imdb-rules": _heads("IMDB, rules", "imdb", None),
    "cora-10": _gcn("Cora"),
    "citeseer-10": _gcn("CiteSeer"),
}


def embed(dataset: str) -> None:
    """Compute the vectors of a dataset in pieces; those in the cache are not computed again."""
    for part, rows in (("train", POOL[dataset]), ("test", TEST[dataset])):
        chosen = [row["text"] for row in rows_of(dataset, part, rows)]
        for first in range(0, len(chosen), PIECE):
            vectors_of(chosen[first : first + PIECE])
            print(dataset, part, first, flush=True)
