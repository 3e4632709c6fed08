"""The inside of a labelling session: questions, rounds of training, and what the page reads."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from drift.annotate.answers import Answer
from drift.annotate.estimate import Estimate, estimate
from drift.annotate.events import check_events
from drift.annotate.journal import Journal
from drift.annotate.learner import InlineLearner, Job, Learner, Result
from drift.annotate.policy import RANDOM, Audit, is_audit
from drift.annotate.pool import Pool
from drift.annotate.predictions import Predictions, learned_more
from drift.annotate.state import Class, Mark, State
from drift.annotate.wording import CHOSEN, WAITING, why
from drift.errors import LabelError, StateError

FIRST_ROUND = 4  # labels before the first round of training
EVERY, GROWTH = 5, 0.05  # labels between rounds: at least so many, and this part of all labels
FLIPS_KEPT = 200  # texts whose prediction changed, to show


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


class SessionCore:
    """What `Annotation` is made of. The lock is held by every caller of the methods that begin with an underscore."""

    def __init__(
        self,
        pool: Pool,
        classes: Sequence[str],
        *,
        journal: Any,
        encoder: str,
        vectors: np.ndarray | None,
        audit_every: int,
        background: bool,
        heads: int,
        seed: int,
        quiet: bool,
    ) -> None:
        self.pool, self.texts, self.seed, self.audit_every = pool, pool.texts, seed, audit_every
        self._lock = threading.RLock()
        self._closed = False
        self._folded: list[str] | None = None  # made by the first search
        self._state = State()
        self._journal = None if journal is None else Journal(journal, {**pool.header(), "seed": seed})
        try:
            self._restore(classes)
            made = self.pool.embedded(encoder, vectors, quiet=quiet)
            self.vectors = made.array
            self._audit = Audit(self.pool.usable, seed)
            self._served: dict[str, Question] = {}  # by client: what it is asked now
            self._asked: dict[int, Question] = {}  # by row: what was answered
            self._queue: list[tuple[int, str]] = []
            self._predictions: Predictions | None = None
            self._initial: Predictions | None = None
            self._use_initial = False
            self._flips: list[tuple[int, Answer, Answer]] = []
            self._learned_at, self._jobs = 0, 0
            self._listeners: list[Callable[[], None]] = []
            self._learner = (Learner if background else InlineLearner)(made, self._learned, heads=heads)
            self._begin()
        except BaseException:
            if self._journal is not None and self._journal.is_new:
                self._journal.remove()  # a wrong encoder leaves no journal behind
            self.close()
            raise

    def close(self) -> None:
        """End the training process, and close the journal."""
        learner, journal = getattr(self, "_learner", None), self._journal
        if learner is not None:
            learner.close()
        with self._lock:
            self._closed = True
            if journal is not None:
                journal.close()
                self._journal = None

    # What the page reads; see `drift.annotate.views`.

    @property
    def state(self) -> State:
        """Labels, flags, notes and classes, with the lock of the session held by the caller."""
        return self._state

    @property
    def lock(self) -> Any:
        """To be held while `state` is read."""
        return self._lock

    @property
    def names(self) -> dict[int, str]:
        """The names of all classes by number."""
        return {each.id: each.name for each in self._state.classes.values()}

    @property
    def current(self) -> Predictions | None:
        """The predictions that are shown: those of the model, or the initial ones as long as they are better."""
        return self._initial if self._use_initial else self._predictions

    @property
    def training(self) -> bool:
        """Whether a round is being trained."""
        return self._learner.busy

    @property
    def flips(self) -> list[tuple[int, Answer, Answer]]:
        """Rows whose prediction changed in the last round: row, answer before, answer now."""
        return self._flips

    @property
    def shows_initial(self) -> bool:
        """Whether the predictions are those of noisy labels or of a run, not yet of the model."""
        return self._use_initial

    @property
    def judged(self) -> int:
        """Number of labels for which there is a prediction that was made without them."""
        current = self.current
        return (
            0
            if current is None
            else sum(current.without_label(row, self._state) is not None for row in self._state.marks)
        )

    def describe(self, row: int) -> Question:
        """A text of the person's choice, in the form of a question."""
        return self._described(self._row(row), False, CHOSEN)

    def folded(self, row: int) -> str:
        """A text for a search that ignores case."""
        if self._folded is None:
            self._folded = [text.casefold() for text in self.texts]
        return self._folded[row]

    def listen(self, changed: Callable[[], None]) -> None:
        """Call a function after every round of training."""
        self._listeners.append(changed)

    # Inside.

    def _restore(self, classes: Sequence[str]) -> None:
        """The state at the beginning: labels of the table, then what the journal says, then new classes."""
        events = self._journal.events if self._journal is not None else []
        if self._journal is not None:
            check_events(events, len(self.texts), self._journal.path)
        first = list(dict.fromkeys([*classes, *self.pool.class_names]))
        if events and events[0]["do"] == "classes":
            self._state.apply(events[0])
        elif first:
            self._do({"do": "classes", "names": first})
        self._state.given(self._given())
        for event in events[1:] if events and events[0]["do"] == "classes" else events:
            self._state.apply(event)
        known = {name for each in self._state.classes.values() for name in each.names}
        if events and (new := [name for name in first if name not in known]):
            self._do({"do": "classes", "names": new})

    def _given(self) -> dict[int, Answer]:
        """The labels of the table whose classes are known."""
        numbers = {name: each.id for name in self.pool.class_names if (each := self._state.find(name)) is not None}
        return {
            row: self.pool.coded(row, label, numbers.__getitem__)
            for row, label in self.pool.given.items()
            if all(name in numbers for name in self.pool.names_in(label))
        }

    def _do(self, event: dict[str, Any]) -> None:
        """Make a change, and write it to disk before the caller hears of it."""
        if self._closed:
            raise StateError("the session is closed; open it again")
        self._state.apply(event)
        if self._journal is not None:
            try:
                self._journal.append({**event, "at": round(time.time(), 3)})
            except BaseException:
                self._state.revert()
                raise

    def _choose(self) -> Question | None:
        taken = self._taken()
        count = self._state.answered + len(self._served)
        if is_audit(count, self.audit_every):
            row = self._audit.next(taken, self._answered_audits())
            if row is not None:
                return self._described(row, True, RANDOM)
        while self._queue:
            row, reason = self._queue.pop(0)
            if not taken[row]:
                return self._described(row, False, reason)
        row = self._audit.next(taken, [])
        return None if row is None else self._described(row, False, WAITING)

    def _described(self, row: int, audit: bool, reason: str) -> Question:
        names, current = self.names, self.current
        if current is None:
            return Question(row, self.texts[row], audit, why(reason, ()), reason, words=self._words(row))
        chances = tuple((names[k], p) for k, p in current.chances(row, self._state))
        answer, p = current.answer(row, self._state)
        guess = self.pool.named(answer, names)
        return Question(row, self.texts[row], audit, why(reason, chances), reason, guess, p, chances, self._words(row))

    def _words(self, row: int) -> tuple[str, ...]:
        return tuple(self.pool.details(row).get("words", ()))

    def _taken(self) -> np.ndarray:
        """Rows that are not asked about, `(n,)`."""
        taken = np.zeros(len(self.texts), dtype=bool)
        for rows in (self._state.marks, self._state.skipped):
            taken[list(rows)] = True
        taken[[question.row for question in self._served.values()]] = True
        return taken

    def _is_taken(self, row: int) -> bool:
        return row in self._state.marks or row in self._state.skipped

    def _answered_audits(self) -> list[int]:
        rows = [row for row, mark in self._state.marks.items() if mark.by == "audit"]
        rows += [row for row, by in self._state.skipped.items() if by == "audit"]
        return rows + [each.row for each in self._served.values() if each.audit]

    def _sample(self) -> np.ndarray:
        """The random sample so far, labelled or not."""
        answered = [row for row in self._answered_audits() if self._is_taken(row)]
        return self._audit.passed(answered)

    def _audited(self) -> np.ndarray:
        """For each labelled text of the random sample: whether a prediction made without its label is right."""
        correct = []
        current = self.current
        for row in self._sample().tolist():
            mark = self._state.marks.get(row)
            held = None if mark is None else self._held_out(current, row, mark)
            if mark is not None and held is not None:
                correct.append(held == mark.answer)
        return np.array(correct, dtype=bool)

    def _estimate(self) -> Estimate:
        return estimate(self._audited())

    def _held_out(self, current: Predictions | None, row: int, mark: Mark) -> Answer | None:
        """The answer that was predicted for a labelled row without its label; None if there is no such prediction."""
        held = None if current is None else current.without_label(row, self._state)
        if held is not None:
            return held[0]
        return None if mark.guess is None else self._state.now(mark.guess)

    def _guess(self, row: int) -> Answer | None:
        current = self.current
        if current is None:
            return None
        mark = self._state.marks.get(row)
        return mark.guess if mark is not None else current.answer(row, self._state)[0]

    def _ids(self) -> list[int]:
        return self.pool.ids([each.id for each in self._state.active])

    def _begin(self) -> None:
        """The first rounds: predictions from noisy labels or a run, and the first texts to ask about."""
        self._initial = self.pool.first_predictions(self._state)
        self._use_initial = self._initial is not None
        weak = None if self._use_initial else self.pool.weak_codes(self._state)
        self._weak_pending = weak is not None
        if weak is None:
            self._teach(force=True)
            return
        rows, numbers = weak
        ids, none = self._ids(), np.empty(0, dtype=np.int64)
        codes = np.searchsorted(ids, numbers)
        self._learner.submit(Job(0, ids, rows, codes, self.pool.usable, none, weak=True, seed=self.seed))

    def _teach(self, *, force: bool = False) -> None:
        """Submit a round of training if there are enough new labels."""
        labels = len(self._state.marks)
        if self._weak_pending:
            return
        due = max(EVERY, int(GROWTH * labels)) if self._learned_at else FIRST_ROUND
        if not force and abs(labels - self._learned_at) < due and self._queue:
            return
        self._learned_at = labels
        self._jobs += 1
        ids = self._ids()
        rows = np.array(sorted(self._state.marks), dtype=np.int64)
        codes = self.pool.codes(self._state.marks, rows.tolist(), ids)
        taken = self._taken()
        seen = np.flatnonzero(taken)
        free = self.pool.usable[~taken[self.pool.usable]]
        initial = None if self._initial is None else self._initial.columns(ids, self._state)
        self._learner.submit(Job(self._jobs, ids, rows, codes, free, seen, seed=self.seed, initial=initial))

    def _learned(self, result: Result) -> None:
        """A round is done: called by the learner."""
        with self._lock:
            if self._closed:
                return
            self._queue = result.queue
            if result.job.weak:
                self._weak_pending = False
                if result.probabilities is not None:
                    self._initial, self._use_initial = self.pool.predictions(result), True
                self._teach(force=True)
            elif result.probabilities is not None:
                before = self.current
                self._predictions = self.pool.predictions(result)
                self._use_initial = not learned_more(self._predictions, self._initial, self._state)
                self._record(before, len(result.job.rows))
        for changed in self._listeners:
            changed()

    def _record(self, before: Predictions | None, labels: int) -> None:
        """Note what a round changed."""
        now = self.current
        changed = None
        if before is not None and now is not None:
            rows = now.changed(before, self._state)
            changed = len(rows) / len(self.texts)
            both = ((row, before.answer(row, self._state), now.answer(row, self._state)) for row in rows.tolist())
            self._flips = [(row, old[0], new[0]) for row, old, new in islice(both, FLIPS_KEPT)]
        at = self._estimate()
        last = self._state.rounds[-1].labels if self._state.rounds else -1
        if labels != last:
            event = {"do": "round", "labels": labels, "accuracy": at.accuracy, "low": at.low, "high": at.high}
            self._do({**event, "changed": changed})

    def _row(self, row: Any) -> int:
        number = int(row)
        if not 0 <= number < len(self.texts):
            raise LabelError(f"row {row}: there are rows 0 to {len(self.texts) - 1}")
        return number

    def _class(self, name: str) -> Class:
        each = self._state.find(str(name))
        if each is None:
            known = ", ".join(each.name for each in self._state.active)
            raise LabelError(f"{name!r} is not a class; the classes are {known or 'none yet'}")
        return each
