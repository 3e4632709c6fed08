"""Write sentences as CoNLL columns."""

import gzip
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from drift.data.files import atomic_file
from drift.data.sentence_formats import SentenceRow
from drift.data.table_formats import is_gzipped
from drift.errors import DataError, FileError

NOT_CONLL = re.compile("^$|^ |[\t\r\n]")  # words that would be read back as other words, or as none


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
