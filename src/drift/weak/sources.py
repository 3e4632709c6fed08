"""Sources of noisy labels: columns of a table, rules and class names, each with one vote per row.

A vote is a distribution over the classes. The cell of a column may hold a class, all classes but one ("not sports" or
"!sports"), probabilities ('{"sports": 0.7, "politics": 0.3}'), or nothing, which is an abstention.
"""

import json
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drift.data.columns import find_column, is_blank_cell
from drift.data.labels import normalized_label
from drift.data.text_tables import label_of
from drift.errors import ConfigError, LabelError
from drift.settings import listed, nearest
from drift.weak.ballots import leaders, spoken
from drift.weak.casting import ABSTAIN

NOT = ("!", "not ")  # beginnings of a cell that excludes a class
SUM_TOLERANCE = 0.02  # of probabilities that were rounded
ALL = "*"  # at the end of a column's name: one column of probabilities per class

Cell = str | dict[str, float] | None  # a class or "not a class", probabilities, or an abstention


@dataclass(frozen=True)
class Source:
    """Votes of one source on N rows.

    name: for messages. origin: "column", "rules" or "names". votes: `(N, C)`; each row sums to 1, or is zero where the
    source abstains.
    """

    name: str
    origin: str
    votes: np.ndarray

    @property
    def covered(self) -> np.ndarray:
        """Which rows have a vote, `(N,)`."""
        return np.asarray(self.votes.any(-1))


@dataclass(frozen=True)
class ColumnSource:
    """Which columns a source is read from: "gpt", "gpt=gpt_confidence", or "p_*" for one column per class.

    column: with the votes, or the beginning of the names of the columns. confidence: with the probability that a vote
    is right. per_class: whether there is one column per class.
    """

    name: str
    column: str
    confidence: str | None = None
    per_class: bool = False

    @classmethod
    def parse(cls, text: str, names: Sequence[str], source: str) -> "ColumnSource":
        """The columns that an option names. names: of all columns. source: the table, for messages."""
        if text in names:
            return cls(text, text)
        if text.endswith(ALL):
            start = text.removesuffix(ALL)
            if not any(name.startswith(start) and name != start for name in names):
                raise ConfigError(f"{source} has no column whose name begins with {start!r}, for --weak {text}")
            return cls(text, start, per_class=True)
        column, equals, confidence = text.partition("=")
        find_column(column, list(names), source)
        return cls(column, column, find_column(confidence, list(names), source) if equals else None)

    def columns(self, names: Sequence[str]) -> list[str]:
        """The columns to read."""
        if self.per_class:
            return [name for name in names if name.startswith(self.column) and name != self.column]
        return [self.column] + ([self.confidence] if self.confidence else [])


@dataclass
class Cells:
    """The cells of a source, before the classes are known. confidences: one per row, NaN where none is known."""

    source: ColumnSource
    values: list[Cell] = field(default_factory=list)
    confidences: list[float] = field(default_factory=list)

    def read(self, columns: Mapping[str, Sequence[Any]], first: int, where: str) -> None:
        """Add the rows of a chunk. first: number of its first row. where: the table, for messages."""
        source, rows = self.source, range(first + 1, first + 1 + len(next(iter(columns.values()))))
        if source.per_class:
            own = source.columns(list(columns))
            for row, values in zip(rows, zip(*(columns[name] for name in own), strict=True), strict=True):
                named = {name.removeprefix(source.column): value for name, value in zip(own, values, strict=True)}
                self.values.append(_probabilities(named, f"{where}, row {row}: columns {source.name!r}"))
                self.confidences.append(np.nan)
            return
        for row, value in zip(rows, columns[source.column], strict=True):
            self.values.append(_cell(value, f"{where}, row {row}: column {source.column!r}"))
        if source.confidence is None:
            self.confidences += [np.nan] * len(rows)
            return
        for row, value in zip(rows, columns[source.confidence], strict=True):
            self.confidences.append(_confidence(value, f"{where}, row {row}: column {source.confidence!r}"))


def classes_in(sources: Iterable[Cells], named: Iterable[str] = ()) -> list[str]:
    """All classes that cells vote for or exclude, sorted. named: classes that are known from elsewhere."""
    classes: set[str] = set(named)
    strings: set[str] = set()
    for source in sources:
        for value in source.values:
            if isinstance(value, dict):
                classes.update(value)
            elif value is not None:
                strings.add(value)
    excluded = {value for value in strings - classes if _excluded(value) is not None}
    classes |= strings - excluded
    return sorted(classes | {str(_excluded(value)) for value in excluded})


def votes_of(cells: Cells, classes: Sequence[str], where: str) -> Source:
    """The votes of a source. classes: in order; a vote for another class is an error. where: the table."""
    code_of = {name: code for code, name in enumerate(classes)}
    C = len(classes)
    votes = np.zeros((len(cells.values), C), dtype=np.float32)
    for row, (value, confidence) in enumerate(zip(cells.values, cells.confidences, strict=True)):
        if value is None:
            continue
        if isinstance(value, dict):
            for name, share in value.items():
                votes[row, _code(name, code_of, cells, row, where)] = share
            continue
        sure = 1.0 if np.isnan(confidence) else confidence
        excluded = _excluded(value) if value not in code_of else None
        code = _code(value if excluded is None else excluded, code_of, cells, row, where)
        if excluded is None:  # the rest of the confidence goes to the other classes
            votes[row] = (1 - sure) / (C - 1)
            votes[row, code] = sure
        else:
            votes[row] = sure / (C - 1)
            votes[row, code] = 1 - sure
    return Source(cells.source.name, "column", votes)


def from_codes(name: str, origin: str, codes: np.ndarray, C: int) -> Source:
    """A source of hard votes. codes: `(N,)`, `ABSTAIN` for none."""
    return Source(name, origin, (np.asarray(codes)[:, None] == np.arange(C)).astype(np.float32))


def says_something(source: Source) -> bool:
    """Whether a source tells rows apart: it votes, and not for the same class on all rows."""
    covered = source.covered
    return bool(covered.any()) and not (_constant(source) and covered.all() and len(covered) > 1)


def faults(source: Source, classes: Sequence[str]) -> list[str]:
    """Warnings about a source that says little: it never votes, or always the same."""
    if not source.covered.any():
        check = "check the column" if source.origin == "column" else "see `drift label`"
        return [f"warning: {source.name!r} abstains on every row; it is not used; {check}"]
    count = int(source.covered.sum())
    if _constant(source) and count > 1 and source.origin == "column":
        end = "check the column" if says_something(source) else "it is not used; check the column"
        vote = spoken(source.votes[source.covered][0], classes)
        return [f"warning: {source.name!r} says {vote!r} on each of its {count:,} rows; {end}"]
    return []


def _constant(source: Source) -> bool:
    """Whether all votes of a source favour the same classes."""
    favoured = leaders(source.votes[source.covered])
    return bool((favoured == favoured[:1]).all())


def _cell(value: Any, where: str) -> Cell:
    """One cell of a column. where: for messages."""
    if isinstance(value, Mapping):
        return _probabilities(value, where)
    if is_blank_cell(value):
        return None
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            content = json.loads(value)
        except json.JSONDecodeError as error:
            raise LabelError(f'{where} is not JSON: {error}; write {{"class": probability, ...}}') from None
        return _probabilities(content, where)
    if not isinstance(value, (str, int, float)) and hasattr(value, "__iter__"):
        raise LabelError(f"{where} holds {reprlib.repr(value)}; give one class, or an object {{class: probability}}")
    return label_of(value)


def _probabilities(content: Mapping[Any, Any], where: str) -> dict[str, float] | None:
    given = {str(name): value for name, value in content.items() if not is_blank_cell(value)}
    if not given:
        return None
    shares = {name: _number(value, f"{where}: the probability of {name!r}") for name, value in given.items()}
    total = sum(shares.values())
    if abs(total - 1) > SUM_TOLERANCE:
        raise LabelError(f"{where}: the probabilities sum to {total:.4g}, not 1; divide each by the sum")
    return {name: share / total for name, share in shares.items()}


def _confidence(value: Any, where: str) -> float:
    return float("nan") if is_blank_cell(value) else _number(value, f"{where}: the confidence")


def _number(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise LabelError(f"{what} is {reprlib.repr(value)}; give a number from 0 to 1") from None
    if not 0 <= number <= 1:
        advice = "divide percentages by 100" if 1 < number <= 100 else "give a number from 0 to 1"
        raise LabelError(f"{what} is {number:g}, which is not between 0 and 1; {advice}")
    return number


def _excluded(value: str) -> str | None:
    """The class that a cell excludes; None if it excludes none."""
    for beginning in NOT:
        if value.lower().startswith(beginning) and (rest := value[len(beginning) :].strip()):
            return rest
    return None


def _code(name: str, code_of: Mapping[str, int], cells: Cells, row: int, where: str) -> int:
    if name in code_of:
        return code_of[name]
    alike = next((known for known in code_of if normalized_label(known) == normalized_label(name)), None)
    hint = f"; if it is {alike!r}, write both alike" if alike else nearest(name, list(code_of))
    if not hint.startswith(";"):  # no class is similar
        hint = f" ({listed(list(code_of))}); add it to --classes, or empty the cell"
    column = cells.source.name
    raise LabelError(f"{where}, row {row + 1}: {name!r} in column {column!r} is not among the classes{hint}")


__all__ = ["ABSTAIN", "Cells", "ColumnSource", "Source", "classes_in", "faults", "from_codes", "votes_of"]
