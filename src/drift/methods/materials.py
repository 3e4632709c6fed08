"""What a method may ask of the data beyond batches: all unlabelled rows now and then, and texts before training."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from torch import Tensor

from drift.core.forward import Inputs
from drift.data.examples import Examples, Labeled
from drift.data.tokenized import Progress


class Pool(Protocol):
    """All unlabelled rows, for a method that chooses among them."""

    @property
    def rows(self) -> Tensor:
        """Which examples these are, `(n,)` or `(trials, n)`: what batches have as `unlabeled_rows`."""

    @property
    def counts(self) -> np.ndarray | None:
        """How many targets are classified in each row, `(n,)`; None if it is one, the row itself."""

    def ask(self, answer: Callable[[Inputs], Tensor], places: Tensor | None = None) -> Tensor:
        """What `answer` says of rows, without gradients: `(..., n, k)` for inputs that have n targets to classify.

        answer: from inputs to `(..., n, k)`; it sets the modes of the models it asks. places: which rows, `(n,)` or
        `(trials, n)`; all if left out.
        """


@dataclass(frozen=True)
class Texts:
    """The training texts of a run, for a method that makes something of them before training.

    texts: labelled rows and unlabelled ones. labeled: rows with a label, `(n,)` or `(trials, n)`, and their classes,
    weak ones if `weak`. encode: from texts to what the student is called with. columns: of the table, as long as
    `texts`, those that the method's setting `column` names.
    """

    texts: Sequence[str]
    classes: list[str]
    labeled: Labeled
    weak: bool
    encode: Callable[[Sequence[str]], Examples]
    seeds: Sequence[int]
    progress: Progress
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Materials:
    """What a method made of the texts.

    labeled: what finds the start in place of the labelled rows, which are then not used again. views: other forms of
    all texts, row by row; a batch has those of its unlabelled rows.
    """

    labeled: Labeled | None = None
    views: tuple[Examples, ...] = ()
    notes: list[str] = field(default_factory=list)
