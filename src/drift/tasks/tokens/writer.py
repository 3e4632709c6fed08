"""Write sentences with their tags and entities, as a table or as CoNLL columns; a file is complete or absent."""

import gzip
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from drift.data.files import atomic_file
from drift.data.sentence_formats import SentenceRow, is_conll
from drift.data.table_formats import format_of, is_gzipped
from drift.data.table_writer import TableWriter, with_columns
from drift.errors import DataError, FileError

NOT_CONLL = re.compile("^$|^ |[\t\r\n]")  # words that would be read back as other words, or as none


@dataclass(frozen=True)
class SentenceChunk:
    """Some sentences of a file, with the other columns if it is a table."""

    rows: Sequence[SentenceRow]
    columns: dict[str, list[Any]]


Write = Callable[[SentenceChunk, list[list[str]], list[list[dict[str, Any]]]], None]


@contextmanager
def token_writer(out: str | Path | None, *, spreadsheet: bool = False) -> Iterator[Write]:
    """Yields the function that writes a chunk with its tags and entities. Formats without lists get JSON text."""
    if out is None:
        yield lambda chunk, tags, entities: None
        return
    if is_conll(out):
        with conll_file(Path(out)) as file:
            yield lambda chunk, tags, entities: file.writelines(conll_lines(chunk.rows, tags))
        return
    form = format_of(Path(out))
    with TableWriter(out, spreadsheet=spreadsheet) as table:

        def write(chunk: SentenceChunk, tags: list[Any], entities: list[Any]) -> None:
            columns = chunk.columns if form in ("json", "parquet") else _flat(chunk.columns)
            added = {"predicted": tags, "entities": entities}
            # Parquet has typed lists, and the first chunk may not show the type.
            table.write(with_columns(columns, added if form == "json" else _flat(added)))

        yield write


@contextmanager
def conll_file(path: Path) -> Iterator[TextIO]:
    """A file of CoNLL columns, opened to write; it appears only if the block ends without an error."""
    opened: Any = gzip.open if is_gzipped(path) else open
    try:
        with atomic_file(path) as aside, opened(aside, "wt", encoding="utf-8", newline="") as file:
            yield file
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{path} cannot be written ({error.strerror or error})") from error


def conll_lines(rows: Sequence[SentenceRow], tags: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of each sentence: words and tags; a tag may hold a tab, for two columns."""
    for row, row_tags in zip(rows, tags, strict=True):
        if lost := [word for word in row.tokens if NOT_CONLL.search(word)]:
            raise DataError(f"{row.where}: {lost[0]!r} cannot stand in CoNLL columns; write JSON lines instead")
        yield "".join(f"{word}\t{tag}\n" for word, tag in zip(row.tokens, row_tags, strict=True)) + "\n"


def _flat(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The columns with lists as JSON text."""
    return {name: [_text_of_list(value) for value in values] for name, values in columns.items()}


def _text_of_list(value: Any) -> Any:
    plain = value.tolist() if isinstance(value, np.ndarray) else value  # pandas reads lists of Parquet as arrays
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, (list, dict)) else value
