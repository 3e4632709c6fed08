"""What a labelling session has so far: labels, predictions, the estimate of accuracy and suspected label errors."""

from typing import Any

from drift.annotate.core import SessionCore
from drift.annotate.estimate import Estimate, advice


class Results(SessionCore):
    """The part of `Annotation` that is only read. target: an accuracy that is good enough, if there is one."""

    target: float | None = None

    def labels(self) -> list[Any]:
        """The label of every text: a class, or a list of entities; None if it has none."""
        with self._lock:
            names, marks = self.names, self._state.marks
            return [
                self.pool.named(marks[row].answer, names) if row in marks else None for row in range(len(self.texts))
            ]

    def predictions(self) -> list[tuple[Any, float] | None]:
        """The predicted label of every text, and how sure it is; None while there is no model."""
        with self._lock:
            current, names = self.current, self.names
            if current is None:
                return [None] * len(self.texts)
            return [(self.pool.named(answer, names), p) for answer, p in current.answers(self._state)]

    def estimate(self) -> Estimate:
        """The accuracy of the model on all texts, from those that were drawn at random, with a 95 % interval."""
        with self._lock:
            return self._rounds.estimate()

    def advice(self, target: float | None = None) -> tuple[str, str]:
        """Whether more labels are worth it: "early", "go on", "level" or "enough", and a sentence that says why.

        target: an accuracy that is good enough; default: that of the session.
        """
        with self._lock:
            return advice(self.estimate(), self._state.rounds, self.target if target is None else target)

    def suspects(self, most: int = 100) -> list[tuple[int, Any, float]]:
        """Labels that are probably wrong: row, predicted label, and how sure it is, the most suspicious first.

        The prediction is of heads that were not trained on the label.
        """
        with self._lock:
            current = self.current
            if current is None:
                return []
            found, names = current.suspects(self._state, most), self.names
            return [(row, self.pool.named(answer, names), p) for row, answer, p in found]
