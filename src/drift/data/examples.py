"""What there is to learn from: examples by row number, and the batches a step sees."""

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from drift.core.forward import Inputs
from drift.core.objective import Totals


class Examples(Protocol):
    """Rows that can be turned into what a model is called with, some at a time."""

    @property
    def lengths(self) -> np.ndarray | None:
        """What each row costs, `(rows,)`, if rows differ: batches are made of rows of like length."""

    @property
    def counts(self) -> np.ndarray | None:
        """How many targets are classified in each row, `(rows,)`; None if it is one, the row itself."""

    @property
    def at_once(self) -> int:
        """How many rows a forward without gradients takes."""

    def __len__(self) -> int: ...

    def inputs(self, rows: Tensor) -> Inputs:
        """These rows as a batch, on the CPU."""


@dataclass(frozen=True)
class Vectors:
    """Feature vectors `(rows, features)`. Row numbers `(trials, N)` give stacked inputs `(trials, N, features)`."""

    x: Tensor
    lengths: np.ndarray | None = None
    counts: np.ndarray | None = None
    at_once: int = 2048

    def __len__(self) -> int:
        return len(self.x)

    def inputs(self, rows: Tensor) -> Tensor:
        return self.x[rows]


@dataclass(frozen=True)
class Labeled:
    """Some rows of some examples with the class index of each. rows, labels: `(n,)`, or `(trials, n)` if stacked."""

    examples: Examples
    rows: Tensor
    labels: Tensor

    @property
    def size(self) -> int:
        """How many labels there are, a trial."""
        return self.targets(torch.arange(self.rows.shape[-1]))

    def targets(self, places: Tensor) -> int:
        """How many labels `pair` gives of these, a trial."""
        return places.shape[-1]

    def pair(self, places: Tensor) -> tuple[Inputs, Tensor]:
        """Inputs and labels of some of these. places: where in `rows`, `(N,)` or `(trials, N)`."""
        return self.examples.inputs(self.rows.gather(-1, places)), self.labels.gather(-1, places)


@dataclass(frozen=True)
class Unlabeled:
    """Some rows of some examples, without labels. rows: `(n,)`, or `(trials, n)` if stacked.

    gold: true class indices like `rows`, -1 where unknown, if there are any: to measure pseudo-labels with, no more.
    views: other forms of the same examples, by the same row numbers, such as texts in other words.
    """

    examples: Examples
    rows: Tensor
    gold: Tensor | None = None
    views: tuple[Examples, ...] = ()

    def only(self, places: Tensor) -> Self:
        """Some of these rows. places: where in `rows`, `(k,)` or `(trials, k)`."""
        gold = None if self.gold is None else self.gold.gather(-1, places)
        return replace(self, rows=self.rows.gather(-1, places), gold=gold)

    def targets(self, places: Tensor) -> int:
        """How many targets are classified in these rows, a trial."""
        counts = self.examples.counts
        return places.shape[-1] if counts is None else int(counts[self.rows[places].numpy()].sum())

    def first_targets(self, rows: int) -> Tensor:
        """Numbers, among all there are, of what is classified in the first of these rows."""
        return self.rows[..., :rows]

    def first_gold(self, rows: int) -> Tensor | None:
        """True classes of what is classified in the first of these rows."""
        return None if self.gold is None else self.gold[..., :rows]


@dataclass(frozen=True)
class Batch:
    """What one step, or one micro-batch of it, sees: inputs with class indices, inputs without, or both.

    labeled_rows, unlabeled_rows: which examples these are. views: other forms of the unlabelled inputs. totals: of the
    step that this is a part of, if it is not the whole; pieces: how many of such parts this process has.
    """

    labeled: tuple[Inputs, Tensor] | None = None
    unlabeled: Inputs = None
    labeled_rows: Tensor | None = None
    unlabeled_rows: Tensor | None = None
    views: tuple[Inputs, ...] = ()
    totals: Totals | None = None
    pieces: int = 1

    @property
    def labeled_total(self) -> int | None:
        return None if self.totals is None else self.totals.labeled

    @property
    def unlabeled_total(self) -> int | None:
        return None if self.totals is None else self.totals.unlabeled

    def to(self, device: torch.device) -> "Batch":
        if device.type == "cpu":
            return self
        labeled = None if self.labeled is None else (moved(self.labeled[0], device), moved(self.labeled[1], device))
        unlabeled, views = moved(self.unlabeled, device), tuple(moved(view, device) for view in self.views)
        return replace(self, labeled=labeled, unlabeled=unlabeled, views=views)


def moved(inputs: Any, device: torch.device) -> Any:
    """The same inputs on another device."""
    if isinstance(inputs, Tensor):
        return inputs.to(device, non_blocking=True)
    if isinstance(inputs, dict):
        return {name: moved(value, device) for name, value in inputs.items()}
    if isinstance(inputs, (tuple, list)):
        return tuple(moved(value, device) for value in inputs)
    return inputs
