"""Tables of texts: the texts on disk, the labels in memory."""

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from drift.data.columns import (
    LABEL_NAMES,
    WEAK_NAMES,
    find_column,
    guess_label_column,
    guess_text_column,
    looks_multilabel,
    named_column,
)
from drift.data.tables import read_chunks, source_name
from drift.data.texts import store_texts
from drift.errors import ConfigError, DataError, LabelError

if TYPE_CHECKING:
    import datasets


@dataclass(frozen=True)
class TextColumns:
    """The columns of a table of texts. guessed, notes: messages about columns that the user did not name."""

    text: str
    label: str | None = None
    weak: str | None = None
    guessed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


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
    source: Any,
    *,
    text: str | None = None,
    label: str | None = None,
    weak: str | None = None,
    encoding: str = "utf-8",
    elsewhere: Callable[[], Collection[str]] = frozenset,
    taken: Collection[str] = (),
) -> TextColumns:
    """The text, label and weak-label columns of a table: as named, or guessed from names and values.

    source, encoding: see `read_chunks`. text, label, weak: column names; None means to guess (weak: none), and label=""
    that there is none. elsewhere: the columns of the other tables of the run. If this table lacks a text or label
    column that another one has, its own is guessed, with a note. taken: columns that are not guessed, as they are used.
    """
    sample, name = next(read_chunks(source, encoding=encoding)), source_name(source)
    names = list(sample.columns)
    missing = {column for column in (text, label) if column and column not in names and column in elsewhere()}
    named = [find_column(column, names, name) for column in (text, label, weak) if column and column not in missing]
    if len(set(named)) < len(named):
        raise ConfigError(f"{name}: text, label and weak are {', '.join(named)}; each must be a column of its own")
    free = [column for column in names if column not in named and column not in taken]
    guessed, notes = [], []
    with _naming(name, text if text in missing else None):
        if text is None or text in missing:
            chosen = guess_text_column(free, sample)
            guessed.append(f"text: {chosen}")
            notes += _instead(name, text, chosen)
            text = chosen
    if label is None or label in missing:
        column = guess_label_column([column for column in free if column != text], sample, text)
        if column is not None:
            guessed.append(f"label: {column}")
            notes += _instead(name, label, column)
        label = column
    if label and not weak and (ignored := named_column(names, WEAK_NAMES)) not in (None, label, text):
        notes.append(f"column {ignored!r} is ignored, as {label!r} has gold labels; --weak {ignored} uses it instead")
    return TextColumns(text, label or None, weak, tuple(guessed), tuple(notes))


def choose_held_out(
    source: Any,
    train: TextColumns,
    *,
    text: str | None = None,
    label: str | None = None,
    need_labels: bool = True,
    encoding: str = "utf-8",
) -> TextColumns:
    """The columns of another table of the run: as named, as in train, or else guessed, with a note.

    source, encoding: see `read_chunks`. train: the columns of the training table. text, label: as the user named them.
    need_labels: whether the table must have gold labels; otherwise its labels are not read.
    """
    sample, name = next(read_chunks(source, encoding=encoding)), source_name(source)
    names = list(sample.columns)
    notes = []
    column = next((known for known in (text, train.text) if known in names), None)
    if column is None:
        with _naming(name, train.text):
            column = guess_text_column([other for other in names if other != train.label], sample)
        notes += _instead(name, train.text, column)
    if not need_labels:
        return TextColumns(column, notes=tuple(notes))
    gold = next((known for known in (label, train.label) if known and known in names), None)
    if gold is None:
        noisy = train.weak if train.weak and train.weak.strip().lower() not in LABEL_NAMES else None
        with _naming(name, label or train.label):
            gold = guess_label_column([other for other in names if other != noisy], sample, column)
        if gold is None:  # scores against noisy labels would mean nothing
            raise ConfigError(f"{name} has no column that looks like labels; name it with --label COLUMN")
        notes += _instead(name, label or train.label, gold)
    if gold == train.weak:
        notes.append(f"column {gold!r} has weak labels in train, and is taken for gold labels in {name}")
    return TextColumns(column, gold, notes=tuple(notes))


def _instead(name: str, wanted: str | None, column: str) -> list[str]:
    """A note that another column is read than the wanted one, if one was wanted."""
    return [] if wanted is None else [f"{name} has no column {wanted!r}; its column {column!r} is used"]


@contextmanager
def _naming(name: str, missing: str | None) -> Iterator[None]:
    """Messages of a guess with the name of the table, and of the column that it lacks."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{name}{f' has no column {missing!r}' if missing else ''}: {error}") from None


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
