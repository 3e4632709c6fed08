"""What is known about every text or sentence, as a function of the events in the journal.

Every change goes through `State.apply`, whether a person has just made it or the journal is read again, so that a
restart gives the same state. Tables are dictionaries, and each event remembers the entries it replaced: that is undo.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from drift.annotate.answers import OUTSIDE, Answer, classes_of, guessed, read_answer, resolved
from drift.annotate.entries import By, Class, Mark, checked_name, checked_note
from drift.annotate.estimate import Round
from drift.errors import ConfigError, LabelError, StateError

CHOSEN = ("audit", "policy")
MOST_UNDONE = 1000


@dataclass
class State:
    """Labels, flags, notes and skipped texts by row number; classes by number."""

    classes: dict[int, Class] = field(default_factory=dict)
    marks: dict[int, Mark] = field(default_factory=dict)
    skipped: dict[int, By] = field(default_factory=dict)
    flags: dict[int, bool] = field(default_factory=dict)
    notes: dict[int, str] = field(default_factory=dict)
    rounds: list[Round] = field(default_factory=list)
    version: int = 0  # counts events: a page asks for changes since one
    _undo: list[tuple[str, list[tuple[str, int, Any]]]] = field(default_factory=list)
    _changes: list[tuple[str, int, Any]] = field(default_factory=list)
    _last: str = ""
    _undone: tuple[str, list[tuple[str, int, Any]]] = ("", [])

    def apply(self, event: Mapping[str, Any]) -> None:
        """Make the change that an event describes."""
        do = str(event["do"])
        handler = getattr(self, f"_do_{do}", None)
        if handler is None:
            raise StateError(f"the journal has an event {do!r}, which this version does not know; use a newer one")
        self._changes, self._last = [], do
        handler(event)
        self.version += 1
        if do not in ("undo", "round"):
            self._undo.append((do, self._changes))
            del self._undo[:-MOST_UNDONE]

    def revert(self) -> None:
        """Take back the last event, which could not be written to the journal."""
        for table, key, old in reversed(self._changes):
            self._put(table, key, old)
        if self._last == "undo":
            self._undo.append(self._undone)
        elif self._last == "round":
            self.rounds.pop()
        else:
            self._undo.pop()

    @property
    def can_undo(self) -> bool:
        return any(do != "classes" for do, _ in self._undo)

    @property
    def active(self) -> list[Class]:
        """The classes that were not merged into others, in the order in which they were added."""
        return [each for each in self.classes.values() if each.into is None]

    def resolve(self, number: int) -> int:
        """The class that this one was merged into, in the end; itself if it was not."""
        if number == OUTSIDE:
            return number
        while (into := self.classes[number].into) is not None:
            number = into
        return number

    def find(self, name: str) -> Class | None:
        """The active class of this name. Names that a class had before find it too, unless another has the name now."""
        wanted = name.strip()
        for each in self.active:
            if each.name == wanted:
                return each
        old = next((each for each in self.classes.values() if wanted in each.names), None)
        return None if old is None else self.classes[self.resolve(old.id)]

    @property
    def answered(self) -> int:
        """Texts that were shown and labelled or skipped."""
        return sum(mark.by in CHOSEN for mark in self.marks.values()) + len(self.skipped)

    def given(self, rows: Mapping[int, Answer]) -> None:
        """Labels that the table has, by row. The journal holds only what was changed."""
        for row, answer in rows.items():
            self.marks[row] = Mark(answer, "given")

    def now(self, answer: Answer) -> Answer:
        """An answer with the classes as they are now."""
        return resolved(answer, self.resolve)

    # One method per event.

    def _do_classes(self, event: Mapping[str, Any]) -> None:
        for name in event["names"]:
            self._add(str(name), "")

    def _do_add(self, event: Mapping[str, Any]) -> None:
        self._add(str(event["name"]), str(event.get("guideline", "")))

    def _do_rename(self, event: Mapping[str, Any]) -> None:
        old, name = self._class(event["class"]), checked_name(event["name"])
        if any(each.name == name and each.id != old.id for each in self.active):
            raise ConfigError(f"there is a class {name!r} already; merge the two instead")
        self._set("classes", old.id, replace(old, name=name, names=tuple(dict.fromkeys((*old.names, name)))))

    def _do_merge(self, event: Mapping[str, Any]) -> None:
        old, into = self._class(event["class"]), self._class(event["into"])
        if old.id == into.id:
            raise ConfigError(f"{old.name!r} cannot be merged into itself; choose another class")
        self._set("classes", old.id, replace(old, into=into.id))
        for row, mark in list(self.marks.items()):
            if old.id in classes_of(mark.answer):
                self._set("marks", row, replace(mark, answer=self.now(mark.answer)))

    def _do_guideline(self, event: Mapping[str, Any]) -> None:
        old = self._class(event["class"])
        self._set("classes", old.id, replace(old, guideline=checked_note(event["text"])))

    def _do_label(self, event: Mapping[str, Any]) -> None:
        answer, rows = read_answer(event, self._number), event["rows"]
        self._label(rows, [answer] * len(rows), event)

    def _do_accept(self, event: Mapping[str, Any]) -> None:
        answers = [guessed(answer) for answer in event["answers"]]
        now = [None if answer is None else resolved(answer, self._number) for answer in answers]
        self._label(event["rows"], now, event)

    def _label(self, rows: Sequence[int], answers: Sequence[Answer | None], event: Mapping[str, Any]) -> None:
        guesses = event.get("guesses") or [None] * len(rows)
        for row, answer, guess in zip(rows, answers, guesses, strict=True):
            before = self.marks.get(row)
            # A correction does not change how the text was chosen, nor what the model had guessed before.
            by = before.by if before else self.skipped.get(row, event["by"])
            guess = before.guess if before else guessed(guess)
            self._set("marks", row, None if answer is None else Mark(answer, by, guess))
            self._set("skipped", row, None)

    def _do_skip(self, event: Mapping[str, Any]) -> None:
        row = event["row"]
        self._set("skipped", row, event["by"])
        self._set("marks", row, None)

    def _do_flag(self, event: Mapping[str, Any]) -> None:
        for row in event["rows"]:
            self._set("flags", row, True if event["on"] else None)

    def _do_note(self, event: Mapping[str, Any]) -> None:
        self._set("notes", event["row"], checked_note(event["text"]) or None)

    def _do_round(self, event: Mapping[str, Any]) -> None:
        self.rounds.append(Round(**{name: event[name] for name in ("labels", "accuracy", "low", "high", "changed")}))

    def _do_undo(self, _: Mapping[str, Any]) -> None:
        while self._undo and self._undo[-1][0] == "classes":
            self._undo.pop()
        if not self._undo:
            raise StateError("there is nothing to undo")
        self._undone = self._undo.pop()
        for table, row, old in reversed(self._undone[1]):
            self._set(table, row, old)

    def _add(self, name: str, guideline: str) -> None:
        name = checked_name(name)
        if any(each.name == name for each in self.active):
            raise ConfigError(f"there is a class {name!r} already")
        number = max(self.classes, default=-1) + 1
        self._set("classes", number, Class(number, name, (name,), checked_note(guideline)))

    def _number(self, number: int) -> int:
        return self._class(number).id

    def _class(self, number: Any) -> Class:
        if number not in self.classes:
            raise LabelError(f"there is no class number {number!r}; load the page again")
        return self.classes[self.resolve(number)]

    def _set(self, table: str, key: int, value: Any) -> None:
        self._changes.append((table, key, getattr(self, table).get(key)))
        self._put(table, key, value)

    def _put(self, table: str, key: int, value: Any) -> None:
        entries = getattr(self, table)
        if value is None:
            entries.pop(key, None)
        else:
            entries[key] = value
