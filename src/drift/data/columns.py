"""Find the text column and the label column of a table: by name, otherwise by their values."""

import ast
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from drift.data.tables import Chunk, column_names, read_chunks
from drift.errors import ConfigError
from drift.settings import listed, nearest, shortened

TEXT_NAMES = ("text", "body", "sentence", "content", "review", "document")  # the most likely first
HEADING_NAMES = ("headline", "title")  # used as the text if there is no other text column
LABEL_NAMES = ("label", "labels", "class", "category", "topic", "target", "y", "sentiment")
WEAK_NAMES = ("weak", "weak_label", "noisy_label", "weak_labels", "noisy_labels")  # never taken for gold labels
TEXT_LENGTH = 20  # characters on average; shorter values are names or numbers
LABEL_LENGTH = 40  # maximum number of characters
ROWS_PER_LABEL = 5  # minimum on average; otherwise the values are not classes
PREDICTED = ("predicted", "confidence")  # columns that `drift predict` adds, beside one `p_CLASS` per class
WHY = ("why_words", "why_rows")  # and those of `drift predict --explain`
SEPARATORS = "|;,/"
RECURS = 3  # a part of a label is a label itself if it is the whole label of at least this many rows


def named_column(names: Iterable[str], typical: Iterable[str]) -> str | None:
    """The first of the typical names that a table has, in any case; None if it has none of them."""
    lowered = {name.strip().lower(): name for name in names}
    return next((lowered[name] for name in typical if name in lowered), None)


def find_column(wanted: str, names: list[str], source: str) -> str:
    """Return `wanted` if it is among `names`; otherwise ConfigError suggests the nearest name.

    source: name of the table, for the message.
    """
    if wanted in names:
        return wanted
    raise ConfigError(f"{source} has no column {shortened(wanted)!r}{nearest(wanted, names)}")


def recognised_weak(
    source: Any,
    label: str | None,
    *,
    weak_names: Iterable[str] = WEAK_NAMES,
    label_names: Iterable[str] = LABEL_NAMES,
    encoding: str = "utf-8",
) -> str | None:
    """The column of weak labels, by its name, in a table without gold labels; None if there is none.

    source, encoding: see `read_chunks`. label: the column of gold labels that the user named, "" for none. Otherwise a
    column with one of `label_names` holds gold labels, if any of its cells does.
    """
    names = column_names(source, encoding=encoding)
    weak = named_column(names, weak_names)
    if weak is None or label in names:
        return None
    gold = None if label == "" else named_column(names, label_names)
    if gold is None:
        return weak
    cells = (value for chunk in read_chunks(source, encoding=encoding) for value in chunk.columns[gold])
    return None if any(_has_label(value) for value in cells) else weak


def _has_label(cell: Any) -> bool:
    """Whether a cell holds a label, or a list with at least one tag."""
    if isinstance(cell, str) or not hasattr(cell, "__iter__"):
        return not is_blank_cell(cell)
    return any(item is not None for item in cell)


def guess_text_column(names: list[str], sample: Chunk) -> str:
    """The text column: one with a typical name, else the only one with long strings, else a headline or title.

    names: the columns to choose from. sample: the first rows.
    """
    strings = [name for name in names if any(isinstance(value, str) for value in sample.columns[name])]
    if (typical := named_column(strings, TEXT_NAMES)) is not None:
        return typical
    candidates = [name for name in strings if len(names) == 1 or _is_prose(_filled(sample.columns[name]))]
    if not candidates and (heading := named_column(strings, HEADING_NAMES)) is not None:
        return heading
    if len(candidates) != 1:
        several = f"{len(candidates)} columns hold texts ({listed(candidates)})"
        problem = several if candidates else "no column holds long texts"
        raise ConfigError(f"{problem}; say which to read with --text COLUMN. Columns: {listed(names)}")
    return candidates[0]


def guess_label_column(names: list[str], sample: Chunk, text: str) -> str | None:
    """The label column: one with a typical name, else the only one with few, short, repeated values; None if none.

    names: the columns to choose from. sample: the first rows. text: the text column, which is never returned; nor are
    columns of predictions and of weak labels.
    """
    weak = {name for name in names if name.strip().lower() in WEAK_NAMES}
    names = [name for name in names if name != text and name not in weak and not _is_predicted(name, names)]
    if (typical := named_column(names, LABEL_NAMES)) is not None:
        return typical
    candidates = [name for name in names if _are_classes(_filled(sample.columns[name]))]
    if len(candidates) > 1:
        raise ConfigError(
            f"{len(candidates)} columns could be the label ({listed(candidates)}); say which with --label COLUMN"
        )
    return candidates[0] if candidates else None


def _is_predicted(name: str, names: list[str]) -> bool:
    """Whether it is one of the columns that `drift predict` added to this table."""
    plain = name.removesuffix("_by_drift")
    return set(PREDICTED) <= set(names) and (plain in (*PREDICTED, *WHY) or plain.startswith("p_"))


def looks_multilabel(values: Iterable[Any]) -> str | None:
    """An example value if rows of a label column have several labels (a list, "a|b" or "['a', 'b']"); otherwise None.

    A string such as "Sci/Tech" is one label, unless its parts are the whole labels of several other rows.
    """
    counts: Counter[str] = Counter()
    for value in values:
        if isinstance(value, str) and not _is_written_list(value):
            counts[value.strip()] += 1
        elif isinstance(value, Collection):
            return str(value)
    labels = {value for value, rows in counts.items() if value and rows >= RECURS}
    for separator in SEPARATORS:
        parts = {value: [part.strip() for part in value.split(separator)] for value in counts if separator in value}
        known = {value: sum(part in labels for part in parts[value]) for value in parts}
        if sum(known.values()) > sum(map(len, parts.values())) / 2:
            return max(known, key=lambda value: known[value])
    return None


def _filled(values: list[Any]) -> list[Any]:
    return [value for value in values if not is_blank_cell(value)]


def is_blank_cell(value: Any) -> bool:
    """Whether a cell is empty: None, NaN, or a string of spaces."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and value != value)


def _is_prose(values: list[Any]) -> bool:
    """Whether values are long strings, most of several words. Text in scripts without spaces counts; URLs do not."""
    texts = [value for value in values if isinstance(value, str)]
    multiword = sum(len(text.split()) > 1 or not text.isascii() for text in texts)
    return multiword > len(values) / 2 and sum(map(len, texts)) >= TEXT_LENGTH * len(texts)


def _are_classes(values: list[Any]) -> bool:
    if not all(isinstance(value, (str, int)) or (isinstance(value, float) and value.is_integer()) for value in values):
        return False
    short = all(len(str(value)) <= LABEL_LENGTH for value in values)
    return short and 2 <= len(set(values)) <= len(values) / ROWS_PER_LABEL


def _is_written_list(value: str) -> bool:
    """Whether a string is a list of several items in Python or JSON syntax."""
    if not (value.startswith("[") and value.endswith("]")):
        return False
    try:
        return len(ast.literal_eval(value)) > 1
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return False
