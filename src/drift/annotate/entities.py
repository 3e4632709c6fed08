"""Predicted entities of sentences: words next to each other with the same most likely type."""

from dataclasses import dataclass, field

import numpy as np

from drift.annotate.answers import OUTSIDE, Answer, Entity
from drift.annotate.predictions import Predictions
from drift.annotate.state import State


@dataclass
class EntityPredictions(Predictions):
    """Entities of every sentence. The first column of p is for no entity. sizes: number of words of each sentence."""

    sizes: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _made: tuple[list[int], np.ndarray, np.ndarray] | None = None

    def __post_init__(self) -> None:
        self.first = np.concatenate([[0], np.cumsum(self.sizes)])

    def answers(self, state: State) -> list[tuple[Answer, float]]:
        numbers, sure = self._words(state)[0], self.sure(state).tolist()
        parts = np.split(numbers, self.first[1:-1])
        return [(entities_of(part), p) for part, p in zip(parts, sure, strict=True)]

    def of_row(self, row: int) -> np.ndarray:
        return self.p[self.first[row] : self.first[row + 1]]

    def read(self, p: np.ndarray, state: State) -> tuple[Answer, float]:
        ids, p = self.merged(p, state)
        if not len(p):
            return (), 1.0
        codes = p.argmax(1)
        return entities_of(ids[codes]), float(p[np.arange(len(p)), codes].min())

    def chances(self, row: int, state: State) -> list[tuple[int, float]]:
        return []

    def sure(self, state: State) -> np.ndarray:
        """The probability of the least sure word of each sentence, `(n,)`."""
        least = np.ones(len(self.sizes))
        rows = np.flatnonzero(self.sizes)
        if len(rows):
            least[rows] = np.minimum.reduceat(self._words(state)[1], self.first[rows])
        return least

    def has(self, number: int, state: State) -> np.ndarray:
        return self._per_sentence(self._words(state)[0] == number)

    def shares(self, state: State) -> dict[int, float]:
        numbers = self._words(state)[0]
        begins = np.ones(len(numbers), dtype=bool)
        begins[1:] = numbers[1:] != numbers[:-1]
        begins[self.first[:-1][self.sizes > 0]] = True
        found = numbers[begins & (numbers != OUTSIDE)]
        return {int(number): float((found == number).mean()) for number in np.unique(found)}

    def changed(self, before: Predictions, state: State) -> np.ndarray:
        assert isinstance(before, EntityPredictions)
        return np.flatnonzero(self._per_sentence(before._words(state)[0] != self._words(state)[0]))

    def _words(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """The class number of every word, and its probability; both `(words,)`."""
        now = [state.resolve(number) for number in self.ids]
        if self._made is None or self._made[0] != now:  # they are asked for after every click
            ids, p = self.merged(self.p, state)
            codes = p.argmax(1)
            self._made = (now, ids[codes], p[np.arange(len(p)), codes])
        return self._made[1], self._made[2]

    def _per_sentence(self, words: np.ndarray) -> np.ndarray:
        """Whether something holds for any word of each sentence, `(n,)`. words: whether it does for each word."""
        sentence = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return np.bincount(sentence[words], minlength=len(self.sizes)) > 0


def entities_of(numbers: np.ndarray) -> tuple[Entity, ...]:
    """The entities of one sentence. numbers: the class number of each word, `OUTSIDE` for none."""
    edges = np.flatnonzero(np.diff(numbers)) + 1
    starts, ends = np.concatenate([[0], edges]), np.concatenate([edges, [len(numbers)]])
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    return tuple((start, end, int(numbers[start])) for start, end in pairs if start < end and numbers[start] != OUTSIDE)


def numbers_of(entities: Answer, size: int) -> np.ndarray:
    """The class number of each word of a sentence, `(size,)`."""
    numbers = np.full(size, OUTSIDE, dtype=np.int64)
    if isinstance(entities, tuple):
        for start, end, number in entities:
            numbers[start:end] = number
    return numbers
