"""Predictions of all texts, by class number: they stay valid when classes are added, renamed or merged."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from drift.annotate.answers import Answer
from drift.annotate.state import State

FEW_JUDGED = 5  # labels with held-out predictions before the model may replace the initial predictions


@dataclass
class Predictions(ABC):
    """Probabilities of all texts, or of all words of sentences.

    ids: class numbers, in the order of the columns. p: `(n, C)`. held_out: by labelled row, its probabilities from
    heads that were not trained on its label. independent: whether no label was used, so that p itself is held out.
    """

    ids: list[int]
    p: np.ndarray
    held_out: dict[int, np.ndarray] = field(default_factory=dict)
    independent: bool = False

    def answer(self, row: int, state: State) -> tuple[Answer, float]:
        """The predicted answer for one row, and how sure it is."""
        return self.read(self.of_row(row), state)

    def without_label(self, row: int, state: State) -> tuple[Answer, float] | None:
        """The answer predicted for a labelled row by heads that do not know its label, and how sure it is."""
        held = self.of_row(row) if self.independent else self.held_out.get(row)
        return None if held is None else self.read(held, state)

    def suspects(self, state: State, most: int) -> list[tuple[int, Answer, float]]:
        """Labelled rows for which another answer is predicted, with it and how sure it is, the surest first."""
        found = []
        for row, mark in state.marks.items():
            other = self.without_label(row, state)
            if other is not None and other[0] != mark.answer:
                found.append((row, *other))
        return sorted(found, key=lambda each: (-each[2], each[0]))[:most]

    def columns(self, ids: list[int], state: State) -> np.ndarray:
        """Probabilities of these classes, `(n, len(ids))`; 0 for a class that is not predicted."""
        own, p = self.merged(self.p, state)
        columns = np.zeros((len(p), len(ids)), dtype=np.float32)
        place = {number: position for position, number in enumerate(own.tolist())}
        for position, number in enumerate(ids):
            if number in place:
                columns[:, position] = p[:, place[number]]
        return columns

    def merged(self, p: np.ndarray, state: State) -> tuple[np.ndarray, np.ndarray]:
        """Class numbers `(C',)` and probabilities `(k, C')` of the classes as they are now."""
        now = [state.resolve(number) for number in self.ids]
        if now == self.ids:
            return np.array(self.ids), p
        ids = sorted(set(now))
        merged = np.zeros((len(p), len(ids)), dtype=p.dtype)
        for column, number in enumerate(now):
            merged[:, ids.index(number)] += p[:, column]
        return np.array(ids), merged

    @abstractmethod
    def answers(self, state: State) -> list[tuple[Answer, float]]:
        """The predicted answers for all rows, and how sure they are."""

    @abstractmethod
    def of_row(self, row: int) -> np.ndarray:
        """The probabilities of one text, `(1, C)`, or of the words of a sentence, `(words, C)`."""

    @abstractmethod
    def read(self, p: np.ndarray, state: State) -> tuple[Answer, float]:
        """The answer that probabilities of one row stand for, and how sure it is."""

    @abstractmethod
    def chances(self, row: int, state: State) -> list[tuple[int, float]]:
        """The classes of a text with their probabilities, the most likely first; none for a sentence."""

    @abstractmethod
    def sure(self, state: State) -> np.ndarray:
        """How sure the answer for each row is, `(n,)`."""

    @abstractmethod
    def has(self, number: int, state: State) -> np.ndarray:
        """Whether a class is in the predicted answer of each row, `(n,)`."""

    @abstractmethod
    def shares(self, state: State) -> dict[int, float]:
        """The share of each class among all predicted texts or entities."""

    @abstractmethod
    def changed(self, before: "Predictions", state: State) -> np.ndarray:
        """Rows whose answer is another one than before."""


class TextPredictions(Predictions):
    """One class per text."""

    def top(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """The predicted class number of every text, and its probability; both `(n,)`."""
        ids, p = self.merged(self.p, state)
        codes = p.argmax(1)
        return ids[codes], p[np.arange(len(p)), codes]

    def answers(self, state: State) -> list[tuple[Answer, float]]:
        numbers, p = self.top(state)
        return list(zip(numbers.tolist(), p.tolist(), strict=True))

    def of_row(self, row: int) -> np.ndarray:
        return self.p[row : row + 1]

    def read(self, p: np.ndarray, state: State) -> tuple[Answer, float]:
        ids, p = self.merged(np.atleast_2d(p), state)
        code = int(p[0].argmax())
        return int(ids[code]), float(p[0, code])

    def chances(self, row: int, state: State) -> list[tuple[int, float]]:
        ids, p = self.merged(self.of_row(row), state)
        order = np.argsort(-p[0], kind="stable")
        return [(int(ids[k]), float(p[0, k])) for k in order]

    def sure(self, state: State) -> np.ndarray:
        return self.top(state)[1]

    def has(self, number: int, state: State) -> np.ndarray:
        return np.asarray(self.top(state)[0] == number)

    def shares(self, state: State) -> dict[int, float]:
        codes = self.top(state)[0]
        return {int(number): float((codes == number).mean()) for number in np.unique(codes)}

    def changed(self, before: Predictions, state: State) -> np.ndarray:
        assert isinstance(before, TextPredictions)
        return np.flatnonzero(before.top(state)[0] != self.top(state)[0])


def learned_more(model: Predictions | None, initial: Predictions | None, state: State) -> bool:
    """Whether the model has caught up with predictions that were there before it: on labels that neither has seen."""
    if model is None or initial is None:
        return initial is None
    rows = [row for row in state.marks if model.without_label(row, state) is not None]
    if len(rows) < FEW_JUDGED:
        return False

    def right(each: Predictions) -> int:
        found = ((each.without_label(row, state), state.marks[row].answer) for row in rows)
        return sum(other is not None and other[0] == answer for other, answer in found)

    return right(model) >= right(initial)
