"""Tables of texts: the texts on disk, the labels in memory."""

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
    """The columns of a table of texts. guessed: notes about the columns that the user did not name."""

    text: str
    label: str | None = None
    weak: str | None = None
    guessed: tuple[str, ...] = ()


@dataclass(frozen=True)
class TextTable:
    """A table of texts, rows in the order of the source.

    name: of the source, for messages. texts: column "text", memory-mapped. labels, weak: one per row, None if missing.
    empty: number of rows without text.
    """

    name: str
    texts: "datasets.Dataset"
    labels: list[str | None]
    weak: list[str | None] = field(default_factory=list)
    empty: int = 0

    def __len__(self) -> int:
        return len(self.labels)


def choose_columns(
    source: Any, *, text: str | None = None, label: str | None = None, weak: str | None = None, encoding: str = "utf-8"
) -> TextColumns:
    """The text, label and weak-label columns of a table: as named, or guessed from names and values.

    source, encoding: see `read_chunks`. text, label, weak: column names; None means to guess (weak: none), and label=""
    that there is none.
    """
    sample, name = next(read_chunks(source, encoding=encoding)), source_name(source)
    names = list(sample.columns)
    named = [find_column(column, names, name) for column in (text, label, weak) if column]
    if len(set(named)) < len(named):
        raise ConfigError(f"{name}: text, label and weak are {', '.join(named)}; each must be a column of its own")
    free = [column for column in names if column not in named]
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
    """Read a table of texts. A row without text is kept, with an empty text."""
    name = source_name(source)
    labels: list[str | None] = []
    weak: list[str | None] = []
    empty = 0

    def texts() -> Iterator[str]:
        nonlocal empty
        for chunk in read_chunks(source, encoding=encoding):
            names = list(chunk.columns)
            cells = chunk.columns[find_column(columns.text, names, name)]
            for column, target in ((columns.label, labels), (columns.weak, weak)):
                if column is None:
                    target.extend([None] * len(chunk))
                else:
                    values = chunk.columns[find_column(column, names, name)]
                    if example := looks_multilabel(values):
                        raise LabelError(
                            f"{name}: column {column!r} holds several labels per row, such as {example!r};"
                            " this tool gives one label per row: keep the first, or make one column per label"
                        )
                    target.extend(label_of(value) for value in values)
            chunk_texts = [text_of(value, name, row) for row, value in enumerate(cells, chunk.first)]
            empty += sum(not text or text.isspace() for text in chunk_texts)
            yield from chunk_texts

    stored = store_texts(texts())
    return TextTable(name, stored, labels, weak, empty)


def label_of(value: Any) -> str | None:
    """A label as a string; None for a blank cell."""
    if value is None or value != value:  # NaN
        return None
    if isinstance(value, float) and value.is_integer():  # integers with missing values are read as floats
        value = int(value)
    return sys.intern(str(value).strip()) or None  # interned: a million rows share a few strings


def text_of(value: Any, name: str, row: int) -> str:
    """A text unchanged; an empty one for a blank cell.

    name, row: name of the table, and row number from 0, for messages.
    """
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
