"""The rounds of training of a session: when one begins, which predictions hold, and what each of them changed."""

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from drift.annotate.answers import Answer
from drift.annotate.entries import Mark
from drift.annotate.estimate import Estimate, estimate
from drift.annotate.learner import Job, Result
from drift.annotate.pool import Pool
from drift.annotate.predictions import Predictions, learned_more
from drift.annotate.questions import Questions
from drift.annotate.state import State

FIRST_ROUND = 4  # labels before the first round of training
EVERY, GROWTH = 5, 0.05  # labels between rounds: at least so many, and this part of all labels
FLIPS_KEPT = 200  # texts whose prediction changed, to show


class Rounds:
    """What the model has learned so far. The session's lock is held by every caller.

    do: makes an event part of the state, and of the journal. flips: rows whose prediction changed in the last round,
    with the answer before and the answer now. shows_initial: whether the predictions are those of noisy labels or of a
    run, not yet of the model.
    """

    def __init__(
        self, pool: Pool, state: State, questions: Questions, do: Callable[[dict[str, Any]], None], *, seed: int
    ) -> None:
        self._pool, self._state, self._questions, self._do, self._seed = pool, state, questions, do, seed
        self._predictions: Predictions | None = None
        self._initial: Predictions | None = None
        self.shows_initial = False
        self.flips: list[tuple[int, Answer, Answer]] = []
        self._learned_at, self._jobs = 0, 0
        self._weak_pending = False

    @property
    def current(self) -> Predictions | None:
        """The predictions that are shown: those of the model, or the initial ones as long as they are better."""
        return self._initial if self.shows_initial else self._predictions

    def begin(self, submit: Callable[[Job], None]) -> None:
        """The first rounds: predictions from noisy labels or a run, and the first texts to ask about.

        submit: gives a job to the learner.
        """
        self._submit = submit
        self._initial = self._pool.first_predictions(self._state)
        self.shows_initial = self._initial is not None
        weak = None if self.shows_initial else self._pool.weak_codes(self._state)
        self._weak_pending = weak is not None
        if weak is None:
            self.teach(force=True)
            return
        rows, numbers = weak
        ids, none = self._ids(), np.empty(0, dtype=np.int64)
        codes = np.searchsorted(ids, numbers)
        submit(Job(0, ids, rows, codes, self._pool.usable, none, weak=True, seed=self._seed))

    def teach(self, *, force: bool = False) -> None:
        """Submit a round of training if there are enough new labels."""
        labels = len(self._state.marks)
        if self._weak_pending:
            return
        due = max(EVERY, int(GROWTH * labels)) if self._learned_at else FIRST_ROUND
        if not force and abs(labels - self._learned_at) < due and self._questions.queue:
            return
        self._learned_at = labels
        self._jobs += 1
        ids = self._ids()
        rows = np.array(sorted(self._state.marks), dtype=np.int64)
        codes = self._pool.codes(self._state.marks, rows.tolist(), ids)
        taken = self._questions.taken()
        seen = np.flatnonzero(taken)
        free = self._pool.usable[~taken[self._pool.usable]]
        initial = None if self._initial is None else self._initial.columns(ids, self._state)
        self._submit(Job(self._jobs, ids, rows, codes, free, seen, seed=self._seed, initial=initial))

    def learned(self, result: Result) -> None:
        """A round is done."""
        self._questions.queue = result.queue
        if result.job.weak:
            self._weak_pending = False
            if result.probabilities is not None:
                self._initial, self.shows_initial = self._pool.predictions(result), True
            self.teach(force=True)
        elif result.probabilities is not None:
            before = self.current
            self._predictions = self._pool.predictions(result)
            self.shows_initial = not learned_more(self._predictions, self._initial, self._state)
            self._record(before, len(result.job.rows))

    def estimate(self) -> Estimate:
        """The accuracy, from the labelled texts of the random sample, as predicted without their labels."""
        correct = []
        for row in self._questions.sample().tolist():
            mark = self._state.marks.get(row)
            held = None if mark is None else self._held_out(row, mark)
            if mark is not None and held is not None:
                correct.append(held == mark.answer)
        return estimate(np.array(correct, dtype=bool))

    def guess(self, row: int) -> Answer | None:
        """What is predicted for a row before it gets a label."""
        if self.current is None:
            return None
        mark = self._state.marks.get(row)
        return mark.guess if mark is not None else self.current.answer(row, self._state)[0]

    @property
    def judged(self) -> int:
        """Number of labels for which there is a prediction that was made without them."""
        current = self.current
        if current is None:
            return 0
        return sum(current.without_label(row, self._state) is not None for row in self._state.marks)

    def _held_out(self, row: int, mark: Mark) -> Answer | None:
        """The answer that was predicted for a labelled row without its label; None if there is no such prediction."""
        held = None if self.current is None else self.current.without_label(row, self._state)
        if held is not None:
            return held[0]
        return None if mark.guess is None else self._state.now(mark.guess)

    def _ids(self) -> list[int]:
        return self._pool.ids([each.id for each in self._state.active])

    def _record(self, before: Predictions | None, labels: int) -> None:
        """Note what a round changed."""
        now = self.current
        changed = None
        if before is not None and now is not None:
            rows = now.changed(before, self._state)
            changed = len(rows) / len(self._pool.texts)
            both = ((row, before.answer(row, self._state), now.answer(row, self._state)) for row in rows.tolist())
            self.flips = [(row, old[0], new[0]) for row, old, new in islice(both, FLIPS_KEPT)]
        at = self.estimate()
        last = self._state.rounds[-1].labels if self._state.rounds else -1
        if labels != last:
            event = {"do": "round", "labels": labels, "accuracy": at.accuracy, "low": at.low, "high": at.high}
            self._do({**event, "changed": changed})
