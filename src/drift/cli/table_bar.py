"""A progress bar over a table that is processed in chunks."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def table_bar(title: str, table: str | Path, size: int, *, encoding: str, quiet: bool) -> Iterator[Callable[[], None]]:
    """Yields a function to call after every chunk of `size` rows; nothing is drawn into a pipe or if `quiet`.

    If a bar is drawn, the table is read once more to count its rows, which takes little time beside the work on them.
    """
    from drift.data.sentence_formats import Wanted, conll_rows, is_conll
    from drift.data.tables import read_chunks
    from drift.training.progress import progress

    shown = not quiet and sys.stderr.isatty()
    rows = 0
    if shown and is_conll(table):
        rows = sum(1 for _ in conll_rows(table, Wanted(None, "", ""), encoding))
    elif shown:
        rows = sum(len(chunk) for chunk in read_chunks(table, encoding=encoding))
    done = 0
    with progress(title, -(-rows // size), shown=shown) as tick:

        def chunk_done() -> None:
            nonlocal done
            done = min(done + size, rows)
            tick(f"{done:,} of {rows:,} rows")

        yield chunk_done
