"""Write sentences with their tags and entities, as a table or as CoNLL columns; a file is complete or absent."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.conll_writer import conll_file, conll_lines
from drift.data.sentence_formats import SentenceRow, is_conll
from drift.data.table_formats import format_of
from drift.data.table_writer import TableWriter, with_columns


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


def _flat(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The columns with lists as JSON text."""
    return {name: [_text_of_list(value) for value in values] for name, values in columns.items()}


def _text_of_list(value: Any) -> Any:
    plain = value.tolist() if isinstance(value, np.ndarray) else value  # pandas reads lists of Parquet as arrays
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, (list, dict)) else value
