"""Write tables batch by batch, atomically."""

import csv
import gzip
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

from drift.data.files import atomic_file
from drift.data.formulas import marked
from drift.data.table_formats import DELIMITERS, Columns, first_line, format_of, is_gzipped, pyarrow_modules
from drift.errors import DataError, DriftError, FileError, StateError


def with_columns(existing: Mapping[str, list[Any]], added: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Add columns to a table. A new column with the name of an existing one is renamed, with the suffix _by_drift."""
    columns = dict(existing)
    for name, values in added.items():
        while name in columns:
            name += "_by_drift"
        columns[name] = values
    return columns


class TableWriter:
    """Write a table batch by batch. The file appears only if the block ends without an error.

        with TableWriter("out.csv") as table:
            table.write({"text": ["a", "b"], "label": ["x", None]})

    path: the file to write; its name determines the format, as in reading.
    spreadsheet: write CSV and TSV for spreadsheet programs: no text can become a formula, and a mark at the beginning
    says that the file is in UTF-8. `read_chunks` restores the texts.

    The first batch determines the columns and, in Parquet, their types (a column of None is a column of strings). None
    is empty in CSV and null elsewhere. NaN is null in JSON, which has no such number.
    """

    def __init__(self, path: str | os.PathLike[str], *, spreadsheet: bool = False) -> None:
        self.path, self.spreadsheet = Path(path), spreadsheet
        self._names: list[str] = []
        self._form = format_of(self.path)
        self._open = ExitStack()
        self._parquet: Any = None
        if self.path.is_dir():
            raise FileError(f"{self.path} is a folder; give the name of a file")

    def __enter__(self) -> "TableWriter":
        with self._readable_errors():
            aside = self._open.enter_context(atomic_file(self.path))
            self._file: BinaryIO = self._open.enter_context(aside.open("wb"))
        if is_gzipped(self.path):
            # Without file name and time: the same rows give the same bytes.
            packed = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=self._file, mtime=0)
            self._file = cast(BinaryIO, self._open.enter_context(packed))
        return self

    def write(self, columns: Columns) -> None:
        """Add rows. columns: the values of each column, all of the same length; every batch has the same columns."""
        is_first = not self._names
        if not is_first and list(columns) != self._names:
            raise DataError(f"{self.path}: columns {list(columns)} after {self._names}; every batch must have the same")
        self._names = list(columns)
        rows = zip(*columns.values(), strict=True)
        with self._readable_errors():
            if self._form == "parquet":
                self._write_parquet(columns)
            elif self._form == "json":
                self._file.write(_json_text(self._names, rows).encode())
            else:
                self._file.write(self._csv(chain([self._names] if is_first else [], rows), is_first).encode())

    def _csv(self, rows: Iterable[Iterable[Any]], is_first: bool) -> str:
        if not self.spreadsheet:
            return _csv_text(rows, DELIMITERS[self._form])
        text = _csv_text((map(marked, row) for row in rows), DELIMITERS[self._form])
        return "\ufeff" + text if is_first else text

    def __exit__(self, error_type: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if error_type is None and not self._names:
            with self._open:
                raise StateError(f"nothing was written to {self.path}; write at least the columns, if without rows")
        with self._readable_errors():
            self._open.__exit__(error_type, error, trace)

    def _write_parquet(self, columns: Columns) -> None:
        arrow, parquet = pyarrow_modules()
        table = arrow.table({name: _arrow_column(name, values) for name, values in columns.items()})
        if self._parquet is None:
            types = [arrow.string() if arrow.types.is_null(field.type) else field.type for field in table.schema]
            schema = arrow.schema(zip(self._names, types, strict=True))
            self._parquet = self._open.enter_context(parquet.ParquetWriter(self._file, schema))
        schema = self._parquet.schema
        # Compared before the cast, which would silently drop a new key of a nested value.
        if arrow.unify_schemas([schema, table.schema], promote_options="permissive") != schema:
            field = next(field for field in table.schema if field.type != schema.field(field.name).type)
            expected = schema.field(field.name).type
            raise ValueError(f"column {field.name!r} is {field.type}, in the first rows it was {expected}")
        self._parquet.write_table(table.cast(schema))

    @contextmanager
    def _readable_errors(self) -> Iterator[None]:
        """Turn errors of writing into one-line messages."""
        try:
            yield
        except DriftError:
            raise
        except OSError as error:
            raise FileError(f"{self.path} cannot be written ({error.strerror or error})") from error
        except (ValueError, TypeError, OverflowError, NotImplementedError) as error:
            raise DataError(
                f"{self.path} cannot hold these rows ({first_line(error)}); change them or use another format"
            ) from error


class _Lines(list[str]):
    """A list that csv can write to: one line per item."""

    def write(self, line: str) -> None:
        self.append(line)


def _csv_text(rows: Iterable[Iterable[Any]], delimiter: str) -> str:
    lines = _Lines()
    # csv quotes fields that contain a character of the line terminator: with this one, also \r. Our lines end in \n.
    csv.writer(lines, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    text = "".join(line.removesuffix("\r\n") + "\n" for line in lines)
    if "\0" in text:
        raise ValueError("a text has a NUL character, which CSV readers refuse")
    return text


def _json_text(names: list[str], rows: Iterable[Iterable[Any]]) -> str:
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_json_value).encode
    return "".join(encode(dict(zip(names, map(_null_for_nan, row), strict=True))) + "\n" for row in rows)


def _null_for_nan(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value


def _json_value(value: Any) -> Any:
    """Numpy values as Python values; dates and decimals as strings. JSON cannot hold bytes."""
    if isinstance(value, bytes):
        raise TypeError("JSON cannot hold bytes")
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _arrow_column(name: str, values: list[Any]) -> Any:
    arrow, _ = pyarrow_modules()
    try:
        return arrow.array(values)
    except (arrow.ArrowException, OverflowError) as error:
        raise ValueError(f"column {name!r}: {first_line(error)}") from error
