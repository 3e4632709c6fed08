"""Predictions of all texts, by class number: they stay valid when classes are added, renamed or merged."""

from dataclasses import dataclass, field

import numpy as np

from drift.annotate.learner import Result
from drift.annotate.state import State

FEW_JUDGED = 5  # labels with held-out predictions before the model may replace the initial predictions


@dataclass
class Predictions:
    """Probabilities of all texts.

    ids: class numbers, in the order of the columns. p: `(n, C)`. held_out: by labelled row, its probabilities `(C,)`
    from heads that were not trained on its label. disagreement: between the heads, `(n,)`. independent: whether no
    label was used, so that p itself is held out.
    """

    ids: list[int]
    p: np.ndarray
    held_out: dict[int, np.ndarray] = field(default_factory=dict)
    disagreement: np.ndarray | None = None
    independent: bool = False

    @classmethod
    def of(cls, result: Result) -> "Predictions":
        """The predictions of a round."""
        assert result.probabilities is not None
        assert result.left_out is not None
        known = ~np.isnan(result.left_out).any(1)
        held = dict(zip(result.job.rows[known].tolist(), result.left_out[known], strict=True))
        if result.job.weak:
            return cls(result.job.ids, result.probabilities, disagreement=result.disagreement, independent=True)
        return cls(result.job.ids, result.probabilities, held, result.disagreement)

    def top(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """The predicted class number of every text, and its probability; both `(n,)`."""
        ids, p = self._merged(state, self.p)
        codes = p.argmax(1)
        return ids[codes], p[np.arange(len(p)), codes]

    def chances(self, row: int, state: State) -> list[tuple[int, float]]:
        """Class numbers with their probabilities for one text, the most likely first."""
        ids, p = self._merged(state, self.p[row : row + 1])
        order = np.argsort(-p[0], kind="stable")
        return [(int(ids[k]), float(p[0, k])) for k in order]

    def without_label(self, row: int, state: State) -> tuple[int, float] | None:
        """The class predicted for a labelled text by heads that do not know its label, with its probability."""
        held = self.p[row] if self.independent else self.held_out.get(row)
        if held is None:
            return None
        ids, p = self._merged(state, held[None])
        code = int(p[0].argmax())
        return int(ids[code]), float(p[0, code])

    def suspects(self, state: State, most: int) -> list[tuple[int, int, float]]:
        """Labelled rows for which another class is predicted, with it and its probability, the surest first."""
        found = []
        for row, mark in state.marks.items():
            other = self.without_label(row, state)
            if other is not None and other[0] != mark.id:
                found.append((row, *other))
        return sorted(found, key=lambda each: (-each[2], each[0]))[:most]

    def columns(self, ids: list[int], state: State) -> np.ndarray:
        """Probabilities of these classes, `(n, len(ids))`; 0 for a class that is not predicted."""
        own, p = self._merged(state, self.p)
        columns = np.zeros((len(p), len(ids)), dtype=np.float32)
        place = {number: position for position, number in enumerate(own.tolist())}
        for position, number in enumerate(ids):
            if number in place:
                columns[:, position] = p[:, place[number]]
        return columns

    def _merged(self, state: State, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities `(k, C')` of the classes as they are now."""
        now = [state.resolve(number) for number in self.ids]
        if now == self.ids:
            return np.array(self.ids), p
        ids = sorted(set(now))
        merged = np.zeros((len(p), len(ids)), dtype=p.dtype)
        for column, number in enumerate(now):
            merged[:, ids.index(number)] += p[:, column]
        return np.array(ids), merged


def learned_more(model: Predictions | None, initial: Predictions | None, state: State) -> bool:
    """Whether the model has caught up with predictions that were there before it: on labels that neither has seen."""
    if model is None or initial is None:
        return initial is None
    rows = [row for row in state.marks if model.without_label(row, state) is not None]
    if len(rows) < FEW_JUDGED:
        return False

    def right(each: Predictions) -> int:
        found = ((each.without_label(row, state), state.marks[row].id) for row in rows)
        return sum(other is not None and other[0] == number for other, number in found)

    return right(model) >= right(initial)
