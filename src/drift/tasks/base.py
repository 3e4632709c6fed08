"""What differs between runs on texts, on words and on nodes; `Fitting` does the rest, which is the same."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from torch import nn

from drift.data.examples import Labeled
from drift.data.tokenized import Progress
from drift.errors import ConfigError
from drift.runs.config import RunConfig
from drift.training.data import TrainingData
from drift.training.evaluation import Score

STACKED = ("frozen", "gcn", "grand")  # kinds of model that are many seeds in one


@dataclass(frozen=True)
class HeldOut:
    """Rows with labels that nothing is trained on, and how predictions of them are scored."""

    part: Labeled
    score: Score


@dataclass(frozen=True)
class Prepared:
    """A student, what it learns from, and how a trained one becomes a model that can be kept.

    dev: to choose by, the same as in `training`. test: made when it is asked for, after training. finished: from the
    trained student, and the place of a seed in it if several are stacked.
    """

    student: nn.Module
    training: TrainingData
    dev: HeldOut | None
    test: Callable[[], HeldOut | None]
    finished: Callable[[nn.Module, int], Any]
    notes: list[str]


def learning_from_dev(prepared: Prepared, seeds: Sequence[int]) -> Prepared:
    """The labels of dev in place of those of train: what they alone would give. Nothing is left to choose by."""
    if prepared.dev is None:
        raise ConfigError("there is no dev set to learn from; give one with --dev")
    part, stacked = prepared.dev.part, prepared.training.labeled.rows.dim() == 2
    if stacked:
        trials = len(seeds)
        part = replace(part, rows=part.rows.expand(trials, -1), labels=part.labels.expand(trials, -1))
    return replace(prepared, training=TrainingData(part), dev=None)


class Task(ABC):
    """One run's data and models. What is read is kept, so that every part can be asked for in turn."""

    unit: ClassVar[str]  # what a row is, in the plural

    def __init__(self, config: RunConfig, kind: str, seeds: Sequence[int], progress: Progress) -> None:
        self.config, self.kind, self.seeds, self.progress = config, kind, seeds, progress

    @property
    def stacked(self) -> bool:
        """Whether all seeds are trained at once."""
        return self.kind in STACKED

    @property
    @abstractmethod
    def measures(self) -> dict[str, str]:
        """Scores that are shown, and what they are called; the first is chosen by."""

    @abstractmethod
    def read(self, sources: Mapping[str, Any]) -> None:
        """Read everything. sources: what train, unlabeled, dev and test are, paths or objects."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A name for what was read: other rows or labels have another."""

    @abstractmethod
    def prepare(self) -> Prepared:
        """From what was read to what is trained."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What is true of the data, for the account: classes, whether labels are weak, rows, diagnostics."""

    @abstractmethod
    def judge(self, part: str, probabilities: np.ndarray, model: Any) -> dict[str, Any]:
        """More than scores of the kept model on dev or test. probabilities: `(n, C)`, before the temperature."""

    @abstractmethod
    def shown(self, thing: int) -> str:
        """A text, a word or a node of those that are learnt from, by its number, for a reader."""

    @abstractmethod
    def notes(self) -> list[str]:
        """What a user should know of the data: guesses, overlaps."""
