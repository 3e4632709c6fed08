"""Which column of a table is the text and which the label: found by name, else by what the columns hold."""

import ast
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from drift.data.tables import Chunk
from drift.errors import ConfigError
from drift.settings import nearest

TEXT_NAMES = ("text", "body", "sentence", "content", "review", "document")  # the likeliest first
HEADING_NAMES = ("headline", "title")  # the text where there is no other
LABEL_NAMES = ("label", "labels", "class", "category", "topic", "target", "y", "sentiment")
TEXT_LENGTH = 20  # characters on average: what is shorter is a name or a number
LABEL_LENGTH = 40  # characters at most
ROWS_PER_LABEL = 5  # on average, at least: else the values are not classes
PREDICTED = ("predicted", "confidence")  # columns that `drift predict` adds, with one `p_CLASS` for each class
SEPARATORS = "|;,/"
RECURS = 3  # rows with a part as their whole label, before the part counts as a label


def find_column(wanted: str, names: list[str], source: str) -> str:
    """`wanted`, if it is among `names`; else an error that names the nearest. source: what the table is called."""
    if wanted in names:
        return wanted
    raise ConfigError(f"{source} has no column {wanted!r}{nearest(wanted, names)}")


def guess_text_column(names: list[str], sample: Chunk) -> str:
    """The column with the texts: the one with an obvious name, else the only one with long strings, else a heading.

    names: the columns to choose from. sample: the first rows.
    """
    strings = [name for name in names if any(isinstance(value, str) for value in sample.columns[name])]
    if (obvious := _named(strings, TEXT_NAMES)) is not None:
        return obvious
    found = [name for name in strings if len(names) == 1 or _is_prose(_filled(sample.columns[name]))]
    if not found and (heading := _named(strings, HEADING_NAMES)) is not None:
        return heading
    if len(found) != 1:
        seen = f"{len(found)} columns hold texts ({', '.join(found)})" if found else "no column holds long texts"
        raise ConfigError(f"{seen}; say which to read with --text COLUMN. Columns: {', '.join(names)}")
    return found[0]


def guess_label_column(names: list[str], sample: Chunk, text: str) -> str | None:
    """The column with the labels: the one with an obvious name, else the only one with few, short, recurring values.

    names: the columns to choose from. sample: the first rows. text: the column with the texts, never the answer. What a
    model predicted is no label.
    """
    names = [name for name in names if name != text and not _is_predicted(name, names)]
    if (obvious := _named(names, LABEL_NAMES)) is not None:
        return obvious
    found = [name for name in names if _are_classes(_filled(sample.columns[name]))]
    if len(found) > 1:
        raise ConfigError(
            f"{len(found)} columns could be the label ({', '.join(found)}); say which with --label COLUMN"
        )
    return found[0] if found else None


def _is_predicted(name: str, names: list[str]) -> bool:
    """Whether it is a column of predictions in a table that has such."""
    plain = name.removesuffix("_by_drift")
    return set(PREDICTED) <= set(names) and (plain in PREDICTED or plain.startswith("p_"))


def looks_multilabel(values: Iterable[Any]) -> str | None:
    """An example, if rows of a label column have several labels each: lists, or strings such as "a|b" or "['a', 'b']".

    A string such as "Sci/Tech" is one label unless its parts are the whole labels of other rows, again and again.
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


def _named(names: list[str], obvious: tuple[str, ...]) -> str | None:
    lowered = {name.strip().lower(): name for name in names}
    return next((lowered[name] for name in obvious if name in lowered), None)


def _filled(values: list[Any]) -> list[Any]:
    return [value for value in values if not _is_blank(value)]


def _is_blank(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and value != value)


def _is_prose(values: list[Any]) -> bool:
    """Long strings, most of several words; scripts without spaces are taken as such, addresses and keys are not."""
    texts = [value for value in values if isinstance(value, str)]
    several = sum(len(text.split()) > 1 or not text.isascii() for text in texts)
    return several > len(values) / 2 and sum(map(len, texts)) >= TEXT_LENGTH * len(texts)


def _are_classes(values: list[Any]) -> bool:
    if not all(isinstance(value, (str, int)) or (isinstance(value, float) and value.is_integer()) for value in values):
        return False
    short = all(len(str(value)) <= LABEL_LENGTH for value in values)
    return short and 2 <= len(set(values)) <= len(values) / ROWS_PER_LABEL


def _is_written_list(value: str) -> bool:
    """Whether a string is a list of several items in Python's or JSON's writing."""
    if not (value.startswith("[") and value.endswith("]")):
        return False
    try:
        return len(ast.literal_eval(value)) > 1
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return False
