"""The events of a journal as a typed schema: a journal with other values is refused in one line that names the line."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from drift.annotate.entries import By
from drift.errors import FileError

FIRST_LINE = 2  # the first one is the header
Number = Annotated[int, Field(ge=0)]
Name = str | int | float  # classes may be numbers
Spans = list[Annotated[list[Number], Field(min_length=3, max_length=3)]]
"""Entities of a sentence: first word, word after the last, class number."""


class _Event(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _Classes(_Event):
    names: list[Name]


class _Add(_Event):
    name: Name
    guideline: str = ""


class _OfClass(_Event):
    number: Number = Field(alias="class")


class _Rename(_OfClass):
    name: Name


class _Merge(_OfClass):
    into: Number


class _Guideline(_OfClass):
    text: str


class _Answers(_Event):
    rows: list[Number]
    by: By
    guesses: list[Number | Spans | None] = []


class _Label(_Answers):
    number: Number | None = Field(None, alias="class")
    spans: Spans | None = None


class _Accept(_Answers):
    answers: list[Number | Spans | None]


class _Skip(_Event):
    row: Number
    by: By


class _Flag(_Event):
    rows: list[Number]
    on: bool


class _Note(_Event):
    row: Number
    text: str


class _Round(_Event):
    labels: Number
    accuracy: float | None
    low: float
    high: float
    changed: float | None


EVENTS: dict[str, type[_Event]] = {
    "classes": _Classes,
    "add": _Add,
    "rename": _Rename,
    "merge": _Merge,
    "guideline": _Guideline,
    "label": _Label,
    "accept": _Accept,
    "skip": _Skip,
    "flag": _Flag,
    "note": _Note,
    "round": _Round,
    "undo": _Event,
}


def check_events(events: Iterable[Mapping[str, Any]], texts: int, path: Path) -> None:
    """Refuse events that cannot be replayed. An unknown one is left to `State.apply`. texts: their number."""
    for line, event in enumerate(events, FIRST_LINE):
        if fault := _fault(event, texts):
            raise FileError(f"{path}:{line} is damaged ({fault}); restore the file from a copy")


def _fault(event: Mapping[str, Any], texts: int) -> str | None:
    do = event.get("do")
    if not isinstance(do, str):
        return "it does not say what was done"
    try:
        read = EVENTS.get(do, _Event).model_validate(event)
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg'][:1].lower()}{first['msg'][1:]}"
    rows = read.rows if isinstance(read, (_Answers, _Flag)) else [read.row] if isinstance(read, (_Skip, _Note)) else []
    if rows and max(rows) >= texts:
        return f"row {max(rows)}, and there are {texts:,} texts"
    if isinstance(read, _Answers) and read.guesses and len(read.guesses) != len(rows):
        return f"{len(rows)} rows and {len(read.guesses)} guesses"
    if isinstance(read, _Accept) and len(read.answers) != len(rows):
        return f"{len(rows)} rows and {len(read.answers)} answers"
    if isinstance(read, _Label) and "spans" not in event and "class" not in event:
        return "a label without class and spans"
    return None
