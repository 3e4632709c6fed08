"""Readers of table files, batch by batch: CSV, TSV and JSON lines (also gzipped), and Parquet."""

import codecs
import csv
import gzip
import io
import json
import re
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from drift.data.formulas import JOINER, restored
from drift.data.reading import check_regular
from drift.errors import INSTALL, ConfigError, DataError, DriftError, FileError, needed_for

Columns = dict[str, list[Any]]  # by name, all of the same length

DELIMITERS = {"csv": ",", "tsv": "\t"}
FORMATS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "json", ".ndjson": "json", ".json-lines": "json"}
# In characters. csv's default of 131072 refuses long documents; without a limit, an unclosed quote fills the memory.
FIELD_LIMIT = 2**26
KEYS_FROM = 1000  # the columns of a JSON lines file are the keys of this many first rows
HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")  # JSON's escape of one half of a surrogate pair


def format_of(path: Path) -> str:
    """The format of a file by its name: `csv`, `tsv`, `json` or `parquet`."""
    name = path.name.lower()
    if path.is_dir():
        raise FileError(f"{path} is a folder; give a file")
    if name.endswith(".parquet"):
        return "parquet"
    form = FORMATS.get(Path(name.removesuffix(".gz")).suffix)
    if form is None:
        raise FileError(
            f"{path}: the name does not end in a format known here;"
            " use .csv, .tsv or .jsonl (each also with .gz) or .parquet"
        )
    return form


def is_gzipped(path: Path) -> bool:
    """Whether a file is gzipped, by its name."""
    return path.name.lower().endswith(".gz")


def checked_names(names: list[str], where: str) -> list[str]:
    """Column names, validated: at least one, none empty, no duplicates. where: their file and line, for messages."""
    if not names:
        raise DataError(f"{where}: there are no columns; name them here")
    for position, name in enumerate(names, 1):
        if not name.strip():
            raise DataError(f"{where}: column {position} of {len(names)} has no name; give it one")
    if len(set(names)) < len(names):
        duplicate = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{where}: two columns are called {duplicate!r}; rename one")
    return names


def read_file(path: Path, size: int, encoding: str) -> Iterator[Columns]:
    """The table in a file, `size` rows at a time. encoding: of text files."""
    form = format_of(path)
    with _readable_errors(path, encoding):
        yield from _parquet_batches(path, size) if form == "parquet" else _text_batches(path, form, size, encoding)


def read_lines(path: Path, encoding: str) -> Iterator[str]:
    """The lines of a text file, with their line ends."""
    with _readable_errors(path, encoding), _opened(path, encoding) as lines:
        yield from _without_nul(lines, str(path))


@contextmanager
def _readable_errors(path: Path, encoding: str) -> Iterator[None]:
    """Turn errors while a file is read into one-line messages."""
    if path.is_dir():
        raise FileError(f"{path} is a folder; give the name of a file")
    check_regular(path)
    try:
        yield
    except UnicodeError:
        raise _undecodable(path, encoding) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileError(f"{path} is not a complete gzip file ({error}); copy or compress it again") from error
    except FileNotFoundError as error:
        raise FileError(f"{path} is not there; check the name") from error
    except DriftError:
        raise
    except OSError as error:
        reason = error.strerror or " ".join(str(error).split())  # of Parquet's library, on several lines
        raise FileError(f"{path} cannot be read ({reason})") from error


def _binary(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path) if is_gzipped(path) else path.open("rb"))


@contextmanager
def _opened(path: Path, encoding: str) -> Iterator[io.TextIOWrapper]:
    with _binary(path) as binary:
        try:
            lines = io.TextIOWrapper(
                binary, _with_mark(encoding), newline=""
            )  # newline: line ends inside quotes are kept
        except LookupError as error:
            raise ConfigError(f"--encoding {encoding}: no such encoding; utf-8, cp1252 and utf-16 are usual") from error
        yield lines


def _text_batches(path: Path, form: str, size: int, encoding: str) -> Iterator[Columns]:
    with _opened(path, encoding) as lines:
        rows = _json_rows(lines, str(path)) if form == "json" else _csv_rows(lines, str(path), DELIMITERS[form])
        names = next(rows, None)
        if names is None:
            raise DataError(f"{path} is empty")
        while batch := list(islice(rows, size)):
            yield dict(zip(names, map(list, zip(*batch, strict=True)), strict=True))


def _with_mark(encoding: str) -> str:
    """The encoding to open a file with: for utf-8, one that removes the byte order mark some programs write."""
    return "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding


def _undecodable(path: Path, encoding: str) -> DataError:
    """The error for the first byte that does not decode. The file is read again, because readers decode ahead."""
    decoder = codecs.getincrementaldecoder(_with_mark(encoding))()
    line = 1
    try:
        with _binary(path) as binary:
            for piece in binary:
                line += decoder.decode(piece).count("\n")
            decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        if "BOM" in error.reason:  # Python 3.13 names a byte here too
            return _no_mark(path, encoding)
        byte = error.object[error.start]
        other = "utf-16" if line == 1 and byte in codecs.BOM_UTF16 else "cp1252"
        return DataError(
            f"{path}:{line}: byte 0x{byte:02x} is not {encoding}; say what the file is in, such as --encoding {other}"
        )
    except UnicodeError:  # utf-16 and utf-32
        return _no_mark(path, encoding)
    return DataError(f"{path} changed while it was read; run again")


def _no_mark(path: Path, encoding: str) -> DataError:
    return DataError(f"{path}:1: no byte order mark, which {encoding} begins with; try --encoding {encoding}-le")


def _csv_rows(lines: io.TextIOWrapper, path: str, delimiter: str) -> Iterator[list[str]]:
    """The header, then the rows. Values stay strings; blank lines are skipped."""
    csv.field_size_limit(max(FIELD_LIMIT, csv.field_size_limit()))  # global: csv has no limit per reader
    whole = _without_nul(lines, path)
    head: list[str] = []
    for first in whole:
        head.append(first)
        if first.strip():
            delimiter = _delimiter(first, delimiter)
            break
    rows = csv.reader(chain(head, whole), delimiter=delimiter, strict=True)
    header: list[str] = []
    line = 1  # first line of the row, which may span several lines
    try:
        for row in rows:
            if row and not header:
                header = checked_names(list(map(restored, row)), f"{path}:{line}")
            elif row and len(row) != len(header):
                raise DataError(
                    f"{path}:{line}: {len(row)} fields, the header has {len(header)};"
                    f" fix the line, or put the field that has {delimiter!r} inside in quotes"
                )
            if row:
                yield list(map(restored, row)) if any(cell.startswith(JOINER) for cell in row) else row
            line = rows.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{path}:{line}: a quote in the row that begins here is not closed, or not at the end of its field"
            f" ({error}); write quotes inside a quoted field twice"
        ) from error


def _delimiter(header: str, usual: str) -> str:
    """The delimiter: `usual`, unless that is a comma and the header has semicolons or tabs instead, outside quotes."""
    unquoted = re.sub('"[^"]*"', "", header)
    other = re.search("[;\t]", unquoted)
    return usual if usual != "," or usual in unquoted or other is None else other[0]


def _without_nul(lines: io.TextIOWrapper, path: str) -> Iterator[str]:
    """The lines; DataError at the first NUL byte."""
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            raise DataError(
                f"{path}:{number}: a NUL byte; take it out, or give --encoding utf-16-le if the file is that"
            )
        yield line


def _json_rows(lines: io.TextIOWrapper, path: str) -> Iterator[list[Any]]:
    """The column names, then the rows. A missing key is None, a new key is an error; blank lines are skipped."""
    objects = (
        (f"{path}:{number}", _json_object(line.strip(), f"{path}:{number}"))
        for number, line in enumerate(lines, 1)
        if not line.isspace()
    )
    first = deque(islice(objects, KEYS_FROM))
    if not first:
        return
    names = checked_names(list(dict.fromkeys(name for _, row in first for name in row)), first[0][0])
    known = set(names)
    yield names
    for where, row in chain((first.popleft() for _ in range(len(first))), objects):
        if new := row.keys() - known:
            raise DataError(
                f"{where}: key {min(new)!r} is in none of the first {KEYS_FROM:,} rows; write it in one, null if empty"
            )
        yield [row.get(name) for name in names]


def _json_object(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
        if HALF_CHARACTER.search(line):
            json.dumps(row, ensure_ascii=False).encode()  # fails on an unpaired half, as any use of the text would
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise DataError(f"{where}: {half} is half a character, from a text cut in the middle; take it out") from error
    except (ValueError, RecursionError) as error:
        reason = str(error).replace(": line 1 column", " at column")
        raise DataError(f"{where}: not JSON ({reason}); each line must be one object") from error
    if not isinstance(row, dict):
        raise DataError(f'{where}: {line[:20]!r} is not an object such as {{"text": "..."}}; each line must be one')
    return row


def _parquet_batches(path: Path, size: int) -> Iterator[Columns]:
    arrow, parquet = pyarrow_modules()
    try:
        # By default a row group, often the whole file, is read into memory at once.
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20) as file:
            checked_names(file.schema_arrow.names, str(path))
            for batch in file.iter_batches(batch_size=size):
                yield batch.to_pydict()
    except arrow.ArrowException as error:
        raise FileError(
            f"{path} is not a complete Parquet file ({first_line(error)}); write or copy it again"
        ) from error


def pyarrow_modules() -> tuple[Any, Any]:
    """pyarrow and pyarrow.parquet, imported late."""
    with needed_for("Parquet", f"{INSTALL}, or use .csv or .jsonl"):
        import pyarrow.parquet
    return pyarrow, pyarrow.parquet


def first_line(error: Exception) -> str:
    """The first line of an error's message."""
    return str(error).split("\n")[0]
