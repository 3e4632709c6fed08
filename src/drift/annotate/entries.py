"""The entries of a session's state: classes, and the answer for a text, with the checks of what a person typed."""

from dataclasses import dataclass
from typing import Any, Literal

from drift.annotate.answers import Answer
from drift.errors import ConfigError

By = Literal["given", "audit", "policy", "list"]  # who chose the text: the table, chance, the model, the person
LONGEST_NAME, LONGEST_NOTE = 60, 4000  # characters


@dataclass(frozen=True)
class Class:
    """A class. names: all it has had, so that an old name still finds it. into: the class it was merged into."""

    id: int
    name: str
    names: tuple[str, ...]
    guideline: str = ""
    into: int | None = None


@dataclass(frozen=True)
class Mark:
    """The answer for a text or sentence. guess: what the model predicted before, if it did."""

    answer: Answer
    by: By
    guess: Answer | None = None


def checked_name(name: Any) -> str:
    """The name of a class, without spaces around it."""
    text = " ".join(str(name).split())
    if not text:
        raise ConfigError("the class has no name; type one")
    if len(text) > LONGEST_NAME:
        raise ConfigError(f"the name {text[:20]!r}… has {len(text)} characters; give one of at most {LONGEST_NAME}")
    return text


def checked_note(text: Any) -> str:
    """A note or guideline that is not too long."""
    note = str(text).strip()
    if len(note) > LONGEST_NOTE:
        raise ConfigError(f"the note has {len(note):,} characters; at most {LONGEST_NOTE:,} are kept")
    return note
