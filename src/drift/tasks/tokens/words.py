"""Batches of tagged words, where a row is a window of sub-words."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from drift.core.forward import Inputs
from drift.data.examples import Labeled, Unlabeled
from drift.data.windows import Windows


@dataclass(frozen=True)
class LabeledWords(Labeled):
    """Windows with the tags of their words. labels: of all words, -1 where unknown.

    Words without a tag are context only: they have no logits and no loss.
    """

    examples: Windows

    def targets(self, places: Tensor) -> int:
        return int((self.labels[self.examples.words(self.rows[places])] >= 0).sum())

    def first(self, rows: int) -> tuple[Tensor, Tensor]:
        return self.rows[:rows], self.labels[self.examples.words(self.rows[:rows])]

    def pair(self, places: Tensor) -> tuple[Inputs, Tensor]:
        rows = self.rows[places]
        labels = self.labels[self.examples.words(rows)]
        return self.examples.inputs(rows, known=(self.labels >= 0).numpy()), labels[labels >= 0]


@dataclass(frozen=True)
class UnlabeledWords(Unlabeled):
    """Windows of words without tags. gold: the true tags of all words."""

    examples: Windows

    def only(self, places: Tensor) -> Self:
        return replace(self, rows=self.rows[places])

    def first_targets(self, rows: int) -> Tensor:
        return torch.from_numpy(self.examples.words(self.rows[:rows]))

    def first_gold(self, rows: int) -> Tensor | None:
        return None if self.gold is None else self.gold[self.first_targets(rows)]


def tagged(windows: Windows, labels: np.ndarray) -> LabeledWords:
    """The windows that have at least one tag. labels: of all words, -1 for none."""
    known = np.add.reduceat(labels >= 0, windows.first_words[:-1])
    return LabeledWords(windows, torch.from_numpy(np.flatnonzero(known)), torch.from_numpy(labels))
