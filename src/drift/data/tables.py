"""Read users' tables from a file, a DataFrame or a Dataset.

Tables are read batch by batch, so that a table of any size takes the memory of one batch. `table_writer` writes them.
"""

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drift.data.table_formats import (
    Columns,
    checked_names,
    read_file,
)
from drift.errors import ConfigError, DataError, LabelError

NO_CLASS = -1  # the value of an unlabelled row in a ClassLabel column of datasets


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a table. columns: of equal length. first: number of the first row, counted from 0."""

    columns: Columns
    first: int

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


@dataclass(frozen=True)
class TablePart:
    """The rows of a table whose cell in `column` names this part; `values` lists the names, in lower case."""

    table: Any
    column: str
    part: str
    values: frozenset[str]


def read_chunks(source: Any, *, size: int = 2048, encoding: str = "utf-8") -> Iterator[Chunk]:
    """The rows of a table in order, in chunks, with all columns. A table without rows is an error.

    source: the path of a file (.csv, .tsv, .jsonl, .ndjson or .json-lines, each also with .gz; .parquet), a pandas
        DataFrame, a `datasets.Dataset`, or a part of one of these.
    size: maximum number of rows per chunk.
    encoding: of text files; Parquet has its own.

    Values of CSV and TSV are strings, also empty ones. The columns of JSON lines are the keys of the first rows: a
    missing key is None, and a key that comes later is an error. Missing values of pandas are None. A `ClassLabel` of a
    Dataset becomes the name of the class, and -1 becomes None.
    """
    first = 0
    for columns in _batches(source, size, encoding):
        chunk = Chunk(columns, first)
        yield chunk
        first += len(chunk)
    if not first:
        raise DataError(f"{source_name(source)} has no rows")


def column_names(source: Any, *, encoding: str = "utf-8") -> list[str]:
    """The column names of a table, in order. source, encoding: see `read_chunks`."""
    return list(next(read_chunks(source, size=1, encoding=encoding)).columns)


def source_name(source: Any) -> str:
    """The name of a table in messages: the path as given, "the DataFrame", or "the test rows of all.csv"."""
    if isinstance(source, TablePart):
        return f"the {source.part} rows of {source_name(source.table)}"
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else f"the {type(source).__name__}"


def is_in_memory(name: str) -> bool:
    """Whether a name from `source_name` is that of an object in memory, not of a file."""
    return re.fullmatch(r"the [A-Za-z_]\w*", name) is not None


def whole_table(source: Any) -> Any:
    """The table that a source is a part of; the source itself if it is whole."""
    return source.table if isinstance(source, TablePart) else source


def _batches(source: Any, size: int, encoding: str) -> Iterator[Columns]:
    if isinstance(source, TablePart):
        return _part_batches(source, size, encoding)
    if isinstance(source, (str, os.PathLike)):
        return read_file(Path(source), size, encoding)
    # If the source is one of theirs, the package is already imported.
    if (pandas := sys.modules.get("pandas")) and isinstance(source, pandas.DataFrame):
        return _frame_batches(source, size)
    if (datasets := sys.modules.get("datasets")) and isinstance(source, datasets.Dataset):
        return _dataset_batches(source, size, datasets.ClassLabel)
    raise ConfigError(
        f"{source_name(source)} is not a table; give the path of a file, a pandas DataFrame,"
        " or one split of a Hugging Face dataset (a list of texts goes to the predict of a run: run.predict(texts))"
    )


def _part_batches(source: TablePart, size: int, encoding: str) -> Iterator[Columns]:
    for columns in _batches(source.table, size, encoding):
        rows = [row for row, value in enumerate(columns[source.column]) if str(value).strip().lower() in source.values]
        if rows:
            yield {name: [values[row] for row in rows] for name, values in columns.items()}


def _frame_batches(frame: Any, size: int) -> Iterator[Columns]:
    names = checked_names([str(name) for name in frame.columns], source_name(frame))
    for start in range(0, len(frame), size):
        part = frame.iloc[start : start + size]
        yield {name: _without_missing(part.iloc[:, position]) for position, name in enumerate(names)}


def _without_missing(series: Any) -> list[Any]:
    return [None if missing else value for value, missing in zip(series.tolist(), series.isna(), strict=True)]


def _dataset_batches(dataset: Any, size: int, class_label: Any) -> Iterator[Columns]:
    checked_names(dataset.column_names, source_name(dataset))
    classes = {name: feature.names for name, feature in dataset.features.items() if isinstance(feature, class_label)}
    rows = dataset.with_format("arrow")  # stored values, whatever format the user has set
    for start in range(0, len(dataset), size):
        columns = rows[start : start + size].to_pydict()
        for column, names in classes.items():
            codes = enumerate(columns[column], start)
            columns[column] = [_class_name(code, names, column, row) for row, code in codes]
        yield columns


def _class_name(code: int | None, names: list[str], column: str, row: int) -> str | None:
    if code is None or code == NO_CLASS:
        return None
    if not 0 <= code < len(names):
        raise LabelError(
            f"the Dataset, row {row + 1}: column {column!r} has class {code}, and only {len(names)} have names;"
            f" fix the row, or write {NO_CLASS} for none"
        )
    return names[code]
