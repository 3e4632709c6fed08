"""A user's table as texts on disk and labels in memory."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from drift.data.columns import find_column, guess_label_column, guess_text_column, looks_multilabel
from drift.data.tables import read_chunks, source_name
from drift.data.texts import store_texts
from drift.errors import ConfigError, DataError, LabelError

if TYPE_CHECKING:
    import datasets


@dataclass(frozen=True)
class TextColumns:
    """Which column is what. guessed: those that nobody named, for telling."""

    text: str
    label: str | None = None
    weak: str | None = None
    guessed: tuple[str, ...] = ()


@dataclass(frozen=True)
class TextTable:
    """Rows in the order of the file. labels, weak: one a row, None where there is none. empty: rows without text."""

    name: str
    texts: "datasets.Dataset"  # column "text", memory-mapped
    labels: list[str | None]
    weak: list[str | None] = field(default_factory=list)
    empty: int = 0

    def __len__(self) -> int:
        return len(self.labels)


def choose_columns(
    source: Any, *, text: str | None = None, label: str | None = None, weak: str | None = None, encoding: str = "utf-8"
) -> TextColumns:
    """The columns that were named, and obvious ones for those that were not; label: "" means that there is none."""
    sample, name = next(read_chunks(source, encoding=encoding)), source_name(source)
    names = list(sample.columns)
    taken = [find_column(column, names, name) for column in (text, label, weak) if column]
    if len(set(taken)) < len(taken):
        raise ConfigError(f"{name}: text, label and weak are {', '.join(taken)}; each must be a column of its own")
    free = [column for column in names if column not in taken]
    guessed = []
    if text is None:
        text = guess_text_column(free, sample)
        guessed.append(f"text: {text}")
    if label is None:
        label = guess_label_column([column for column in free if column != text], sample, text)
        if label is not None:
            guessed.append(f"label: {label}")
    return TextColumns(text, label or None, weak, tuple(guessed))


def read_texts(source: Any, columns: TextColumns, *, encoding: str = "utf-8") -> TextTable:
    """Read a table; a row without text keeps its place as an empty text."""
    name = source_name(source)
    labels: list[str | None] = []
    weak: list[str | None] = []
    empty = 0

    def texts() -> Iterator[str]:
        nonlocal empty
        for chunk in read_chunks(source, encoding=encoding):
            names = list(chunk.columns)
            found = chunk.columns[find_column(columns.text, names, name)]
            for column, kept in ((columns.label, labels), (columns.weak, weak)):
                if column is None:
                    kept.extend([None] * len(chunk))
                else:
                    values = chunk.columns[find_column(column, names, name)]
                    if example := looks_multilabel(values):
                        raise LabelError(
                            f"{name}: column {column!r} holds several labels a row, such as {example!r};"
                            " this tool gives one label a row: keep the first, or make a column a label"
                        )
                    kept.extend(label_of(value) for value in values)
            read = [text_of(value, name, chunk.first + place) for place, value in enumerate(found)]
            empty += sum(not text or text.isspace() for text in read)
            yield from read

    stored = store_texts(texts())
    return TextTable(name, stored, labels, weak, empty)


def label_of(value: Any) -> str | None:
    """A label as a string; None where the cell is blank."""
    if value is None or value != value:  # NaN
        return None
    if isinstance(value, float) and value.is_integer():  # a column of whole numbers with blanks comes as floats
        value = int(value)
    return sys.intern(str(value).strip()) or None  # interned: a million rows share a few strings


def text_of(value: Any, name: str, row: int) -> str:
    """A text as it is, and an empty one for a blank cell. name, row: of the table and, from 0, of the row, to tell."""
    if value is None or value != value:
        return ""
    if not isinstance(value, str):
        raise DataError(
            f"{name}, row {row + 1}: the text is {value!r}, not a string; name the right column with --text"
        )
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            half = ascii(value[error.start])
            raise DataError(f"{name}, row {row + 1}: {half} is half a character; take it out of the text") from error
    return value
