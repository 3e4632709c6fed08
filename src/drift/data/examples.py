"""Training data: examples by row number, labelled and unlabelled subsets of them, and batches."""

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from drift.core.forward import Inputs
from drift.core.objective import Totals


class Examples(Protocol):
    """A collection of rows that can be turned into model inputs, batch by batch."""

    @property
    def lengths(self) -> np.ndarray | None:
        """The length of each row, `(rows,)`, for batches of similar length; None if all rows have one length."""

    @property
    def counts(self) -> np.ndarray | None:
        """Number of classified targets in each row, `(rows,)`; None if each row is one target."""

    @property
    def at_once(self) -> int:
        """Number of rows per forward without gradients."""

    def __len__(self) -> int: ...

    def inputs(self, rows: Tensor) -> Inputs:
        """Model inputs for these row numbers, on the CPU."""


@dataclass(frozen=True)
class Vectors:
    """Feature vectors as examples. Row numbers `(trials, N)` give stacked inputs `(trials, N, features)`.

    x: `(rows, features)`. lengths, counts, at_once: see `Examples`.
    """

    x: Tensor
    lengths: np.ndarray | None = None
    counts: np.ndarray | None = None
    at_once: int = 2048

    def __len__(self) -> int:
        return len(self.x)

    def inputs(self, rows: Tensor) -> Tensor:
        # index_select and not x[rows]: it copies whole rows, which is four times as fast.
        return self.x.index_select(0, rows.reshape(-1)).view(*rows.shape, *self.x.shape[1:])


@dataclass(frozen=True)
class Labeled:
    """A labelled subset of examples.

    rows: row numbers in `examples`. labels: the class index of each. Both are `(n,)`, or `(trials, n)` if stacked.
    soft: distributions over the classes for all rows of `examples`, `(rows, C)`, if labels are soft; `labels` then
        holds the most likely class. certain: with `soft`, which labels are not soft: `(n,)` or `(trials, n)`.
    """

    examples: Examples
    rows: Tensor
    labels: Tensor
    soft: Tensor | None = None
    certain: Tensor | None = None

    @property
    def size(self) -> int:
        """Number of labels per trial."""
        return self.targets(torch.arange(self.rows.shape[-1]))

    def targets(self, positions: Tensor) -> int:
        """Number of labels per trial that `pair` returns for these positions."""
        return positions.shape[-1]

    def first(self, rows: int) -> tuple[Tensor, Tensor]:
        """The first row numbers, and the labels of all targets in these rows, -1 where unknown."""
        return self.rows[..., :rows], self.labels[..., :rows]

    def pair(self, positions: Tensor) -> tuple[Inputs, Tensor]:
        """Inputs and labels: class indices, or distributions `(..., N, C)` if labels are soft.

        positions: indices into `rows`, `(N,)` or `(trials, N)`.
        """
        rows, labels = self.rows.gather(-1, positions), self.labels.gather(-1, positions)
        return self.examples.inputs(rows), labels if self.soft is None else self._soft(rows, labels, positions)

    def _soft(self, rows: Tensor, labels: Tensor, positions: Tensor) -> Tensor:
        assert self.soft is not None
        y = self.soft[rows]
        if self.certain is None:
            return y
        known = torch.nn.functional.one_hot(labels, y.shape[-1]).to(y.dtype)
        return torch.where(self.certain.gather(-1, positions).unsqueeze(-1), known, y)


@dataclass(frozen=True)
class Unlabeled:
    """An unlabelled subset of examples.

    rows: row numbers in `examples`, `(n,)`, or `(trials, n)` if stacked. gold: true class indices of the same shape, -1
    if unknown; used only to measure the accuracy of pseudo-labels. views: augmented versions of the same examples, with
    the same row numbers.
    """

    examples: Examples
    rows: Tensor
    gold: Tensor | None = None
    views: tuple[Examples, ...] = ()

    def only(self, positions: Tensor) -> Self:
        """A subset of these rows. positions: indices into `rows`, `(k,)` or `(trials, k)`."""
        gold = None if self.gold is None else self.gold.gather(-1, positions)
        return replace(self, rows=self.rows.gather(-1, positions), gold=gold)

    def targets(self, positions: Tensor) -> int:
        """Number of classified targets per trial in the rows at these positions."""
        counts = self.examples.counts
        return positions.shape[-1] if counts is None else int(counts[self.rows[positions].numpy()].sum())

    def first_targets(self, rows: int) -> Tensor:
        """Indices, among all targets of the examples, of the targets in the first `rows` rows."""
        return self.rows[..., :rows]

    def first_gold(self, rows: int) -> Tensor | None:
        """True classes of the targets in the first `rows` rows; None if unknown."""
        return None if self.gold is None else self.gold[..., :rows]


@dataclass(frozen=True)
class Batch:
    """The data of one step or one micro-batch: labelled inputs, unlabelled inputs, or both.

    labeled: inputs and class indices. unlabeled: inputs. labeled_rows, unlabeled_rows: the row numbers of these
    examples. views: augmented versions of the unlabelled inputs. totals: number of rows in the whole step, if this is
    one micro-batch of it. pieces: number of micro-batches of the step in this process.
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
        """The same batch with its inputs and labels on another device."""
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
