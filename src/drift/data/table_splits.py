"""Tables that hold train, dev and test together: a column says which row belongs to which part."""

from collections import Counter
from typing import Any

from drift.data.columns import find_column, named_column
from drift.data.tables import TablePart, column_names, read_chunks, source_name
from drift.errors import ConfigError, DataError

SPLIT_NAMES = ("split", "subset", "partition")  # columns that are recognised
PARTS = {
    "train": frozenset({"train", "training"}),
    "dev": frozenset({"dev", "development", "val", "valid", "validation"}),
    "test": frozenset({"test", "testing"}),
}
PART_OF = {value: part for part, values in PARTS.items() for value in values}


def recognised_split(source: Any, *, encoding: str = "utf-8") -> str | None:
    """The column that divides a table into train and dev or test; None if there is none.

    It has a typical name, and all its values are names of parts. source, encoding: see `read_chunks`.
    """
    column = named_column(column_names(source, encoding=encoding), SPLIT_NAMES)
    if column is None:
        return None
    values: set[str] = set()
    for chunk in read_chunks(source, encoding=encoding):
        values |= {str(value).strip().lower() for value in chunk.columns[column]}
        if not values <= PART_OF.keys():
            return None
    parts = {PART_OF[value] for value in values}
    return column if "train" in parts and len(parts) > 1 else None


def split_table(source: Any, column: str, *, encoding: str = "utf-8") -> dict[str, TablePart]:
    """The parts of a table, by name: train, and dev and test if it has such rows.

    source, encoding: see `read_chunks`. column: says which part a row belongs to; DataError for any other value.
    """
    name = source_name(source)
    column = find_column(column, column_names(source, encoding=encoding), name)
    counts: Counter[str] = Counter()
    for chunk in read_chunks(source, encoding=encoding):
        for row, value in enumerate(chunk.columns[column], chunk.first + 1):
            part = PART_OF.get(str(value).strip().lower())
            if part is None:
                raise DataError(
                    f'{name}, row {row}: {column} is {value!r}; write train, dev or test, or give --split "" if the'
                    " column has another meaning"
                )
            counts[part] += 1
    if "train" not in counts:
        raise ConfigError(f"{name}: no row of column {column!r} says train; mark the training rows, or leave it out")
    return {part: TablePart(source, column, part, values) for part, values in PARTS.items() if part in counts}
