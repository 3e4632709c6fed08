"""Texts on disk, memory-mapped: memory use does not grow with the number of rows."""

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from drift.data.cache import cache_file, cache_place, content_key
from drift.data.sealed import is_sealed
from drift.errors import DataError, needed_for

if TYPE_CHECKING:
    import datasets

CHUNK = 1000  # rows in memory at a time, and rows per record batch


def store_texts(texts: Iterable[str], *, folder: Path | None = None) -> "datasets.Dataset":
    """Write texts to an Arrow file and open it memory-mapped, with one column, "text".

    texts: read once, as a stream. folder: where to put the file; default: the cache. Its name is a hash of its content,
    so the same texts give the same file.
    """
    with needed_for("texts"):
        import datasets

    folder = folder or cache_place("texts")
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".", dir=folder) as aside:
        file = Path(aside) / "texts.arrow"
        target = folder / f"{content_key(_written(texts, file))}.arrow"
        if not is_sealed(target):
            with cache_file(target) as temporary:
                os.replace(file, temporary)
    return datasets.Dataset.from_file(str(target))


def checked(texts: Iterable[Any]) -> Iterator[str]:
    """The texts unchanged; DataError names the first row that is not a valid text."""
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(f"row {row} (counted from 0): {text!r} is not a text; fill it in or leave the row out")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"row {row} (counted from 0): half a character, {text[error.start]!a}, at position {error.start};"
                " remove it, or read the text again with the right encoding"
            ) from error
        yield text


def _written(texts: Iterable[str], file: Path) -> Iterator[str]:
    """Write the texts to a file, and yield them as they are written."""
    import pyarrow as pa  # installed with datasets

    schema = pa.schema({"text": pa.large_string()})  # 64-bit offsets: a chunk may hold more than 2 GB
    rows = checked(texts)
    with file.open("wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        while chunk := list(islice(rows, CHUNK)):
            writer.write_batch(pa.RecordBatch.from_pydict({"text": chunk}, schema))
            yield from chunk
