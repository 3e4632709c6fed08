"""Labels that a person filled in, merged into the rows that they are of: by row number, checked by content."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from drift.data.columns import PREDICTED, WHY, find_column, guess_label_column, named_column
from drift.data.tables import Chunk, column_names, read_chunks, source_name
from drift.data.text_tables import label_of
from drift.errors import ConfigError, DataError, LabelError

ROW_NAMES = ("row_by_drift", "row")  # columns with row numbers; the first if the table had a column `row` of its own
EXCERPT = 40


@dataclass(frozen=True)
class Filled:
    """Rows of a file with a label.

    name: of the file. places: the row in it, counted from 1. rows: numbers of the rows that the labels are of, counted
    from 1; None if the file has none. contents: what these rows hold. labels: a label each, or a list of tags.
    blank: number of rows whose label is still empty.
    """

    name: str
    places: list[int]
    rows: list[int | None]
    contents: list[Any]
    labels: list[Any]
    blank: int


@dataclass
class Merged:
    """Labels of a table after merging. used: places of the filled labels that were found in it."""

    labels: list[Any]
    used: set[int] = field(default_factory=set)
    moved: int = 0
    changed: int = 0


def read_filled(source: Any, *, text: str, label: str | None, encoding: str = "utf-8") -> Filled:
    """The rows of a table of texts that have a label. text, label: columns as in training; others are guessed."""
    name = source_name(source)
    filled = Filled(name, [], [], [], [], 0)
    names = column_names(source, encoding=encoding)
    content = find_column(text, names, name)
    row_column = named_column(names, ROW_NAMES)
    label_column = None
    blank = 0
    for chunk in read_chunks(source, encoding=encoding):
        label_column = label_column or _label_column(chunk, names, label, content, name)
        for place, (value, cell) in enumerate(
            zip(chunk.columns[content], chunk.columns[label_column], strict=True), chunk.first
        ):
            given = label_of(cell)
            if given is None:
                blank += 1
                continue
            cell = None if row_column is None else chunk.columns[row_column][place - chunk.first]
            row = _row_number(cell, f"{name}, row {place + 1}")
            filled.places.append(place + 1)
            filled.rows.append(row)
            filled.contents.append(value)
            filled.labels.append(given)
    if not filled.labels:
        raise LabelError(f"{name}: column {label_column!r} is empty in all {blank:,} rows; fill in some labels")
    return Filled(name, filled.places, filled.rows, filled.contents, filled.labels, blank)


def merge_labels(
    filled: Filled, contents: Sequence[Any], labels: Sequence[Any], key: Callable[[Any], Hashable] = hash
) -> Merged:
    """The labels of a table, with the filled ones in their places.

    A filled label belongs to the row with its number if that row has the same content, and otherwise to the rows with
    the same content, wherever they are. A filled label replaces one that the table has.

    contents, labels: of the table, one per row. key: a hashable value of a content.
    """
    merged = Merged(list(labels))
    keys = [key(content) for content in contents]
    rows_of: dict[Hashable, list[int]] = {}
    for row, each in enumerate(keys):
        rows_of.setdefault(each, []).append(row)
    rows = zip(filled.places, filled.rows, filled.contents, filled.labels, strict=True)
    for place, number, content, label in rows:
        wanted = key(content)
        there = number is not None and 0 < number <= len(keys) and keys[number - 1] == wanted
        targets = [number - 1] if there and number is not None else rows_of.get(wanted, [])
        for target in targets:
            merged.changed += merged.labels[target] not in (None, label)
            merged.labels[target] = label
        if targets:
            merged.used.add(place)
            merged.moved += number is not None and not there
    return merged


def merge_files(
    files: Sequence[Filled],
    names: Sequence[str],
    contents: Sequence[Sequence[Any]],
    labels: Sequence[Sequence[Any]],
    key: Callable[[Any], Hashable] = hash,
) -> tuple[list[list[Any]], list[str]]:
    """The labels of several tables with those of all files, and notes. Later files replace labels of earlier ones.

    names, contents, labels: one per table; content and label one per row. key: a hashable value of a content.
    """
    result, notes = [list(own) for own in labels], []
    for filled in files:
        merged = [merge_labels(filled, *both, key) for both in zip(contents, result, strict=True)]
        notes += check_used(filled, merged, names)
        result = [each.labels for each in merged]
    return result, notes


def check_used(filled: Filled, merged: Sequence[Merged], tables: Sequence[str]) -> list[str]:
    """Notes about merged labels; LabelError if a label is of a row that no table has. merged: one per table."""
    used = set().union(*(each.used for each in merged))
    if missing := [place for place in filled.places if place not in used]:
        position = filled.places.index(missing[0])
        content = filled.contents[position]
        excerpt = str(content)[:EXCERPT] + ("..." if len(str(content)) > EXCERPT else "")
        row = filled.rows[position]
        of = f"row {row} of {tables[0]} holds something else, and " if row is not None else ""
        raise LabelError(
            f"{filled.name}, row {missing[0]}: {of}{excerpt!r} is in no row of {' or '.join(tables)}; give the table"
            f" that the labels are of ({len(missing):,} of {len(filled.places):,} labels were not found)"
        )
    more = f", {filled.blank:,} rows without a label left out" if filled.blank else ""
    notes = [f"{len(filled.places):,} labels were read from {filled.name}{more}"]
    if moved := sum(each.moved for each in merged):
        notes.append(
            f"warning: {moved:,} labels of {filled.name} were found by content, not at the row numbers they have"
        )
    if changed := sum(each.changed for each in merged):
        notes.append(f"warning: {changed:,} labels of {filled.name} replace other labels of the same rows")
    return notes


def _label_column(chunk: Chunk, names: list[str], label: str | None, content: str, name: str) -> str:
    if label and label in names:
        return label
    others = [each for each in names if each not in (*ROW_NAMES, *PREDICTED, *WHY, "why", content)]
    column = guess_label_column(others, chunk, content)
    if column is None:
        raise ConfigError(
            f"{name} has no column of labels{f' {label!r}' if label else ''}; name it with --label COLUMN"
        )
    return column


def _row_number(value: Any, where: str) -> int | None:
    try:
        return int(float(value)) if value not in (None, "") else None
    except (TypeError, ValueError, OverflowError) as error:  # OverflowError: infinite
        raise DataError(
            f"{where}: row number {value!r} is not a number; leave the column `row` as it was written"
        ) from error
