"""Data that a method may use beyond batches: all unlabelled rows during training, and the texts before training."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from torch import Tensor

from drift.core.forward import Inputs
from drift.data.examples import Examples, Labeled
from drift.data.tokenized import Progress


class Pool(Protocol):
    """All unlabelled rows, for a method that selects among them."""

    @property
    def rows(self) -> Tensor:
        """Row numbers, `(n,)` or `(trials, n)`, as in `Batch.unlabeled_rows`."""

    @property
    def counts(self) -> np.ndarray | None:
        """Number of targets to classify in each row, `(n,)`; None if every row is one target."""

    def ask(self, answer: Callable[[Inputs], Tensor], places: Tensor | None = None) -> Tensor:
        """Return the results of `answer` on rows, without gradients: `(..., n, k)` for n targets.

        answer: a function from inputs to `(..., n, k)`; it sets the training mode of the models it calls. places:
        positions of rows in the pool, `(n,)` or `(trials, n)`. Default: all rows.
        """


@dataclass(frozen=True)
class Texts:
    """The training texts of a run, for a method that prepares data from them before training.

    texts: texts of all rows, labelled and unlabelled.
    classes: names of the classes.
    labeled: labelled rows, `(n,)` or `(trials, n)`, and their classes.
    weak: whether these labels are weak.
    encode: a function from texts to examples for the student.
    seeds: one per trial.
    progress: makes progress bars, as for `drift.models.embedding.embed`.
    columns: the columns of the table that the method's setting `column` names, each as long as `texts`.
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
    """What a method prepared from the texts.

    labeled: examples for the first phase in place of the labelled rows, which are then not used at all.
    views: augmented forms of all texts, row by row; a batch has those of its unlabelled rows.
    notes: messages for the user.
    """

    labeled: Labeled | None = None
    views: tuple[Examples, ...] = ()
    notes: list[str] = field(default_factory=list)
