"""What tasks and runs exchange: trained models, prepared data, options and results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from torch import nn

from drift.data.examples import Labeled
from drift.data.tokenized import Progress, silent
from drift.errors import ConfigError
from drift.report.page import Picture
from drift.settings import check_seed
from drift.tasks.explaining import LabeledRows
from drift.tasks.settings import MOST_TOKENS
from drift.tasks.tally import Tally
from drift.training.data import TrainingData
from drift.training.evaluation import Score

ROWS_PER_CHUNK = 512  # rows of a table that are predicted at once
FEWEST_TOKENS = 3  # that an encoder is given of a text: the first, the last and one between

Draw = Callable[[Any, str, str, str], Picture]
"""Puts a figure on the page: the figure, a name for its file, alternative text, and a caption."""


class Model(Protocol):
    """A trained model, as a run keeps it."""

    @property
    def classes(self) -> list[str]: ...
    @property
    def temperature(self) -> float: ...
    def calibrated(self, temperature: float) -> Self:
        """The same model with its logits divided by this temperature."""

    def predict_proba(self, rows: Any) -> Any:
        """Probability of each class, in the order of `classes`."""

    def predict(self, rows: Any) -> list[Any]:
        """The most likely class of each row, or the tags of each sentence."""

    def save(self, folder: Path) -> None:
        """Write the model into a folder."""

    def export_onnx(self, file: Path) -> None:
        """Write the model as ONNX; called only for kinds with `exports_onnx`."""


@dataclass(frozen=True)
class HeldOut:
    """Labelled rows that are not trained on, and the function that scores predictions on them.

    answers: probabilities of these rows by the finished model, `(n, C)`, in its own precision and from its first layer,
        as in later predictions; None if the student has the same ones.
    """

    part: Labeled
    score: Score
    answers: Callable[[Any], np.ndarray] | None = None


@dataclass(frozen=True)
class Prepared:
    """Everything a run trains: the student, its data, and how to keep the result.

    dev: for model selection; the same as in `training`.
    test: builds the test set; called once.
    finish: makes the model to keep from the trained student and the position of the kept seed in it; None for the
        average of all seeds.
    """

    student: nn.Module
    training: TrainingData
    dev: HeldOut | None
    test: Callable[[], HeldOut | None]
    finish: Callable[[nn.Module, Any], Model]
    notes: list[str]


def train_on_dev(prepared: Prepared, seeds: Sequence[int]) -> Prepared:
    """Train on the labels of dev instead of those of train. Nothing is left for model selection."""
    if prepared.dev is None:
        raise ConfigError("there is no dev set to learn from; give one with --dev")
    part, stacked = prepared.dev.part, prepared.training.labeled.rows.dim() == 2
    if stacked:
        part = replace(part, rows=part.rows.expand(len(seeds), -1), labels=part.labels.expand(len(seeds), -1))
    return replace(prepared, training=TrainingData(part), dev=None)


@dataclass(frozen=True)
class Sample:
    """Rows as `predict_proba` takes them, and their classes `(n,)`, -1 where unknown. part: train, dev or test."""

    rows: Any
    codes: np.ndarray
    part: str


@dataclass(frozen=True)
class Usage:
    """How to use a trained model. In commands, RUN stands for the run's folder.

    commands: after `drift` on the command line; the first is suggested when a run ends.
    python: lines after `run = drift.load(...)`.
    """

    commands: Sequence[str]
    python: Sequence[str]


@dataclass(frozen=True)
class TableOptions:
    """How to read a table for prediction or evaluation.

    column: with the rows' content. label: with the labels. edges: table of edges beside a table of nodes.
    abstain_below: rows with lower confidence get no label. tick: called after every chunk. seed: of random choices.
    spreadsheet: see `TableWriter`. tally: counts what is predicted. explain: also write why.
    """

    column: str | None = None
    label: str | None = None
    edges: str | Path | None = None
    abstain_below: float = 0.0
    encoding: str = "utf-8"
    tick: Callable[[], None] = field(default=lambda: None)
    seed: int = 0
    spreadsheet: bool = False
    tally: Tally | None = None
    explain: bool = False

    def __post_init__(self) -> None:
        check_seed(self.seed)


@dataclass(frozen=True)
class CheckOptions:
    """How to read and check a table.

    column: with the rows' content. label: with the labels. test: another table, whose copies are looked for.
    encoder: gives rows vectors; max_length: tokens that it reads. seed: of folds and draws.
    progress: draws bars.
    """

    column: str | None = None
    label: str | None = None
    test: Any = None
    encoder: str = "default"
    max_length: int = 256
    encoding: str = "utf-8"
    seed: int = 0
    progress: Progress = silent

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if not FEWEST_TOKENS <= self.max_length <= MOST_TOKENS:
            raise ConfigError(f"max_length is {self.max_length}; give {FEWEST_TOKENS} to {MOST_TOKENS:,} tokens")


@dataclass(frozen=True)
class Trained:
    """A trained model with what a task needs to use it on new data.

    config: the settings of its run, if known. labeled: rows that it was trained on, if they were kept.
    """

    model: Any
    record: Any
    config: Mapping[str, Any] = field(default_factory=dict)
    labeled: LabeledRows | None = None


@dataclass(frozen=True)
class Representations:
    """Learned vectors `(n, D)` with the classes of their rows `(n,)`, -1 where unknown. rows: names them, if named."""

    vectors: np.ndarray
    labels: np.ndarray
    classes: Sequence[str]
    source: str
    rows: Sequence[Any] | None = None
