"""Read dictionaries: lines of phrases, or tables with columns for phrase, type, aliases and case, of any length."""

import io
import re
import reprlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, get_args

from drift.data.columns import named_column
from drift.data.reading import read_text
from drift.data.table_formats import FORMATS
from drift.data.table_writer import TableWriter
from drift.data.tables import column_names, read_chunks
from drift.errors import DataError
from drift.settings import nearest
from drift.weak.gazetteer import CasePolicy, Gazetteer

PHRASE_NAMES = ("phrase", "term", "name", "entity", "mention")  # the most likely first
TYPE_NAMES = ("type", "label", "class", "category")
ALIAS_NAMES = ("aliases", "alias", "synonyms")
ALIAS_SEPARATOR = "|"
CASES = get_args(CasePolicy)
TABLES = (*FORMATS, ".parquet")
ROWS_AT_ONCE = 4096


class Entry(NamedTuple):
    """A phrase of a dictionary. case: how it matches; None: as its rule says. where: its place, for messages."""

    type: str
    phrase: str
    case: CasePolicy | None
    where: str


def is_table(path: Path) -> bool:
    """Whether a file is a table, by its name."""
    return path.name.lower().removesuffix(".gz").endswith(TABLES)


def read_dictionary(path: Path, entity_type: str | None = None, *, plural: bool = False) -> Iterator[Entry]:
    """The phrases of a file, one after the other; nothing but the current rows is kept in memory.

    path: a table with named columns (.csv, .tsv, .jsonl, .parquet), or lines of text: TYPE, a tab and a phrase, or a
        phrase alone if there is an `entity_type`. A .tsv file without a column of phrases is lines of text.
    entity_type: the type of all phrases.
    plural: also return the regular English plural of each phrase.
    """
    empty = True
    for entry in _table_entries(path, entity_type) if _has_columns(path) else _lines(path, entity_type):
        empty = False
        yield entry
        if plural:
            yield entry._replace(phrase=plural_of(entry.phrase))
    if empty:
        raise DataError(f"{path} has no phrases; write one per line")


def write_dictionary(path: Path, gazetteer: Gazetteer) -> None:
    """Write phrases as a table that is read as the same phrases. Every row has its case."""
    entries = gazetteer.entries()
    with TableWriter(path) as table:
        while rows := list(islice(entries, ROWS_AT_ONCE)):
            types, phrases, cases = (list(column) for column in zip(*rows, strict=True))
            table.write({"phrase": phrases, "type": types, "case": cases})


def plural_of(phrase: str) -> str:
    """The regular English plural of the last word: drugs, therapies, boxes."""
    if re.search(r"[^aeiouAEIOU][yY]$", phrase):
        return phrase[:-1] + ("IES" if phrase.isupper() and len(phrase) > 1 else "ies")
    return phrase + ("es" if re.search(r"(?i)(s|x|z|ch|sh)$", phrase) else "s")


def _has_columns(path: Path) -> bool:
    if not is_table(path):
        return False
    if not path.name.lower().removesuffix(".gz").endswith(".tsv"):
        return True
    return path.is_file() and named_column(path_columns(path), PHRASE_NAMES) is not None


def path_columns(path: Path) -> list[str]:
    """The names in the first line of a .tsv file, which may be no names."""
    try:
        return column_names(path)
    except DataError:  # the first line is not a header
        return []


def _table_entries(path: Path, entity_type: str | None) -> Iterator[Entry]:
    names = column_names(path)
    phrase_column, type_column = named_column(names, PHRASE_NAMES), named_column(names, TYPE_NAMES)
    if phrase_column is None or (type_column is None and entity_type is None):
        wanted = "phrase" if phrase_column is None else "type"
        raise DataError(
            f"{path} has no column called {wanted} (it has {', '.join(names)}); name the columns phrase and type in its"
            " first line" + ("" if phrase_column is None else ", or give the rule a type")
        )
    alias_column, case_column = named_column(names, ALIAS_NAMES), named_column(names, ("case",))
    for chunk in read_chunks(path):
        columns = chunk.columns
        blank = [None] * len(chunk)
        types = columns[type_column] if type_column is not None and entity_type is None else [entity_type] * len(chunk)
        aliases = blank if alias_column is None else columns[alias_column]
        cases = blank if case_column is None else columns[case_column]
        rows = zip(types, columns[phrase_column], aliases, cases, strict=True)
        for row, (type_cell, phrase_cell, alias_cell, case_cell) in enumerate(rows, chunk.first + 1):
            where = f"{path}, row {row}"
            found, phrase = _text(type_cell, where), _text(phrase_cell, where)
            if not phrase and (not found or entity_type):
                continue  # a blank row
            if not found or not phrase:
                raise DataError(f"{where}: the {'phrase' if found else 'type'} is empty; fill it in or remove the row")
            case = _case(_text(case_cell, where), where)
            for each in (phrase, *_aliases(alias_cell, where)):
                yield Entry(found, each, case, where)


def _aliases(cell: Any, where: str) -> Iterable[str]:
    parts = cell if isinstance(cell, list) else _text(cell, where).split(ALIAS_SEPARATOR)  # a list in JSON and Parquet
    return filter(None, (_text(part, where) for part in parts))


def _case(value: str, where: str) -> CasePolicy | None:
    if not value:
        return None
    for case in CASES:
        if value == case:
            return case  # type: ignore[no-any-return]
    raise DataError(f"{where}: case {value!r} is not one of {', '.join(CASES)}{nearest(value, CASES)}")


def _text(cell: Any, where: str) -> str:
    if isinstance(cell, (dict, list)):
        raise DataError(f"{where}: {reprlib.repr(cell)} is no text; write one phrase or name in each cell")
    return "" if cell is None else str(cell).strip()


def _lines(path: Path, entity_type: str | None) -> Iterator[Entry]:
    for number, line in enumerate(io.StringIO(read_text(path), newline="\n"), 1):
        parts = [part.strip() for part in line.split("\t")]
        if not any(parts):
            continue
        if len(parts) != (2 if entity_type is None else 1) or not all(parts):
            one_type = f"a phrase alone (the rule has type {entity_type!r})"
            form = "TYPE, a tab and a phrase" if entity_type is None else one_type
            raise DataError(f"{path}:{number}: {line.strip()!r} is not {form}; fix the line or the rule")
        yield Entry(entity_type or parts[0], parts[-1], None, f"{path}:{number}")
