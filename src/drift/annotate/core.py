"""The inside of a labelling session: its journal, its questions and rounds of training, and what the page reads."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from drift.annotate.answers import Answer
from drift.annotate.entries import Class
from drift.annotate.events import check_events
from drift.annotate.journal import Journal
from drift.annotate.learner import InlineLearner, Learner, Result
from drift.annotate.pool import Pool
from drift.annotate.predictions import Predictions
from drift.annotate.questions import Question, Questions
from drift.annotate.rounds import Rounds
from drift.annotate.state import State
from drift.annotate.wording import CHOSEN, why
from drift.errors import LabelError, StateError


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
            self._questions = Questions(pool, self._state, self._described, audit_every=audit_every, seed=seed)
            self._rounds = Rounds(pool, self._state, self._questions, self._do, seed=seed)
            self._listeners: list[Callable[[], None]] = []
            self._learner = (Learner if background else InlineLearner)(made, self._learned, heads=heads)
            self._rounds.begin(self._learner.submit)
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
        return self._rounds.current

    @property
    def training(self) -> bool:
        """Whether a round is being trained."""
        return self._learner.busy

    @property
    def flips(self) -> list[tuple[int, Answer, Answer]]:
        """Rows whose prediction changed in the last round: row, answer before, answer now."""
        return self._rounds.flips

    @property
    def shows_initial(self) -> bool:
        """Whether the predictions are those of noisy labels or of a run, not yet of the model."""
        return self._rounds.shows_initial

    @property
    def judged(self) -> int:
        """Number of labels for which there is a prediction that was made without them."""
        return self._rounds.judged

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

    def _learned(self, result: Result) -> None:
        """A round is done: called by the learner."""
        with self._lock:
            if self._closed:
                return
            self._rounds.learned(result)
        for changed in self._listeners:
            changed()

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
