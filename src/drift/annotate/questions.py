"""The questions of a session: which text is asked about next, who chose it, and which client it was served to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from drift.annotate.policy import RANDOM, WAITING, Audit, is_audit
from drift.annotate.pool import Pool
from drift.annotate.state import State


@dataclass(frozen=True)
class Question:
    """A text or sentence to label.

    row: its number, from 0. audit: whether it was drawn at random. reason: why it was chosen. reason_code: the same,
    as a key of `wording.SENTENCES`. guess, confidence: the model's prediction, if there is one: a class, or a list of
    entities with the probability of the least sure word. chances: of a text, probability by class, the most likely
    first. words: of a sentence.
    """

    row: int
    text: str
    audit: bool
    reason: str
    reason_code: str
    guess: Any = None
    confidence: float | None = None
    chances: tuple[tuple[str, float], ...] = ()
    words: tuple[str, ...] = ()


class Questions:
    """Texts of the audit in turn with those of the policy. The session's lock is held by every caller.

    describe: makes a question of a row, whether it is an audit, and the reason. queue: rows with reasons that the
    policy chose in the last round.
    """

    def __init__(
        self, pool: Pool, state: State, describe: Callable[[int, bool, str], Question], *, audit_every: int, seed: int
    ) -> None:
        self._texts, self._state, self._describe, self._every = len(pool.texts), state, describe, audit_every
        self._audit = Audit(pool.usable, seed)
        self._served: dict[str, Question] = {}  # by client: what it is asked now
        self._asked: dict[int, Question] = {}  # by row: what was answered
        self.queue: list[tuple[int, str]] = []

    def next(self, client: str) -> Question | None:
        """The open question of a client, with what the model thinks now, or else a new one."""
        question = self._served.get(client)
        if question is not None and not self._is_answered(question.row):
            return self._describe(question.row, question.audit, question.reason_code)
        if question is not None:
            self._asked[question.row] = self._served.pop(client)
        chosen = self._choose()
        if chosen is not None:
            self._served[client] = chosen
        return chosen

    def chosen_by(self, row: int) -> Literal["audit", "policy"] | None:
        """Who chose a row that is being asked about; None if it is not."""
        question = next((each for each in self._served.values() if each.row == row), None)
        return None if question is None else "audit" if question.audit else "policy"

    def answered(self) -> list[int]:
        """Rows that were asked about and have an answer."""
        return [row for row in self._asked if self._is_answered(row)]

    def ask_again(self, client: str, rows: Sequence[int]) -> None:
        """After an undo, ask about the row among these that lost its answer, if it is only one."""
        again = [row for row in rows if not self._is_answered(row)]
        if len(again) == 1:
            self._served[client] = self._asked.pop(again[0])

    def taken(self) -> np.ndarray:
        """Rows that are not asked about, `(n,)`."""
        taken = np.zeros(self._texts, dtype=bool)
        for rows in (self._state.marks, self._state.skipped):
            taken[list(rows)] = True
        taken[[question.row for question in self._served.values()]] = True
        return taken

    def sample(self) -> np.ndarray:
        """The random sample so far, labelled or not."""
        return self._audit.passed([row for row in self._audits() if self._is_answered(row)])

    def _choose(self) -> Question | None:
        taken = self.taken()
        if is_audit(self._state.answered + len(self._served), self._every):
            row = self._audit.next(taken, self._audits())
            if row is not None:
                return self._describe(row, True, RANDOM)
        while self.queue:
            row, reason = self.queue.pop(0)
            if not taken[row]:
                return self._describe(row, False, reason)
        row = self._audit.next(taken, [])
        return None if row is None else self._describe(row, False, WAITING)

    def _is_answered(self, row: int) -> bool:
        return row in self._state.marks or row in self._state.skipped

    def _audits(self) -> list[int]:
        """Rows that were asked about because the audit drew them."""
        rows = [row for row, mark in self._state.marks.items() if mark.by == "audit"]
        rows += [row for row, by in self._state.skipped.items() if by == "audit"]
        return rows + [each.row for each in self._served.values() if each.audit]
