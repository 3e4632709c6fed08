"""What a labelling session is about: texts or sentences, and the labels and predictions that exist already.

A pool is the one place where the server's side of a session knows whether it is about texts (`drift.annotate.texts`) or
the entities of sentences (`drift.annotate.sentences`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from drift.annotate.answers import Answer
from drift.annotate.entries import Mark
from drift.annotate.learner import Result, Vectors
from drift.annotate.predictions import Predictions
from drift.annotate.state import State
from drift.data.tables import source_name
from drift.errors import DataError

RULES = "rules"  # the name of the votes of rules among the noisy labels


@dataclass(frozen=True)
class Request:
    """What a session reads; each field is a parameter of `Annotation`."""

    source: Any
    text: str | None = None
    tokens: str | None = None
    label: str | None = None
    weak: Sequence[str] = ()
    rules: Any = None
    encoding: str = "utf-8"


@dataclass
class Pool(ABC):
    """Rows to label.

    source, encoding: where they come from. texts: of every row, as it is shown and searched. given: labels of the
    table, by row. weak: noisy labels by source, None where there is none. run: predicts at first.

    A label is what the Python interface takes and gives: the name of a class, or a list of entities.
    """

    source: Any
    texts: list[str]
    encoding: str = "utf-8"
    given: dict[int, Any] = field(default_factory=dict)
    weak: dict[str, list[Any]] = field(default_factory=dict)
    run: Any = None

    unit: ClassVar[str]  # what a row is called

    def __post_init__(self) -> None:
        self.usable = np.array([row for row, text in enumerate(self.texts) if text.strip()], dtype=np.int64)
        if not len(self.usable):
            raise DataError(f"{source_name(self.source)} has no {self.unit} to label")

    @property
    def class_names(self) -> list[str]:
        """All classes that are known from the run, labels and noisy labels."""
        given = sorted({name for label in self.given.values() for name in self.names_in(label)})
        votes = (vote for votes in self.weak.values() for vote in votes if vote is not None)
        weak = sorted({name for vote in votes for name in self.names_in(vote)})
        return list(dict.fromkeys([*([] if self.run is None else self.run_classes()), *given, *weak]))

    def votes_on(self, row: int) -> dict[str, str]:
        """The noisy labels of a row, by source, to be shown."""
        votes = ((source, votes[row]) for source, votes in self.weak.items())
        return {source: self.shown(row, vote) for source, vote in votes if vote is not None}

    def weak_codes(self, state: State) -> tuple[np.ndarray, np.ndarray] | None:
        """Rows with a noisy label and the class number of each, to train on first; None if they are not trained on."""
        return None

    @abstractmethod
    def header(self) -> dict[str, Any]:
        """What a journal must be about to belong to these rows."""

    @abstractmethod
    def run_classes(self) -> list[str]:
        """The classes of the run."""

    @abstractmethod
    def names_in(self, label: Any) -> list[str]:
        """The classes in a label."""

    @abstractmethod
    def coded(self, row: int, label: Any, number_of: Callable[[str], int]) -> Answer:
        """A label with class numbers; LabelError if it does not fit the row."""

    @abstractmethod
    def named(self, answer: Answer, names: Mapping[int, str]) -> Any:
        """The label for an answer. names: of the classes, by number."""

    @abstractmethod
    def shown(self, row: int, label: Any) -> str:
        """A label as a line of text."""

    @abstractmethod
    def details(self, row: int) -> dict[str, Any]:
        """What the page needs of a row besides its text."""

    @abstractmethod
    def ids(self, classes: Sequence[int]) -> list[int]:
        """What the columns of probabilities stand for, as class numbers."""

    @abstractmethod
    def codes(self, marks: Mapping[int, Mark], rows: Sequence[int], ids: Sequence[int]) -> np.ndarray:
        """The positions in `ids` that a round is trained on: one per row, or one per word of these rows."""

    @abstractmethod
    def predictions(self, result: Result) -> Predictions:
        """The predictions of a round."""

    @abstractmethod
    def first_predictions(self, state: State) -> Predictions | None:
        """Predictions that need no training, from the run or from noisy labels."""

    @abstractmethod
    def embedded(self, encoder: str, vectors: Any, *, quiet: bool) -> Vectors:
        """The vectors of all rows: the given ones, or those of `drift fit`, from the cache if they are there."""

    @abstractmethod
    def check_out(self, out: Path) -> None:
        """Refuse, with a ConfigError, a file that cannot hold the labels."""

    @abstractmethod
    def write(self, out: Path, labels: Sequence[Any], flags: set[int], notes: Mapping[int, str]) -> list[str]:
        """Write all rows with their labels; return the options with which `drift fit` reads them."""


def beside(rows: Sequence[int | None], flags: set[int], notes: Mapping[int, str]) -> dict[str, list[Any]]:
    """Columns for row number, flag and note. rows: None for a line of the table that was not shown."""
    return {
        "row": [None if row is None else row + 1 for row in rows],
        "flag": ["flag" if row in flags else None for row in rows],
        "note": [None if row is None else notes.get(row) for row in rows],
    }
