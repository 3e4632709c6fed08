"""Readers of tagged sentences: CoNLL columns, tables of tokens, and tables of texts with character spans."""

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from numbers import Integral
from pathlib import Path
from typing import Any

from drift.data.columns import find_column
from drift.data.table_formats import read_lines
from drift.data.tables import NO_CLASS, Chunk, column_names, read_chunks, source_name, whole_table
from drift.data.tags import OUTSIDE, Span, tags_of
from drift.data.text_tables import label_of, text_of
from drift.data.word_tokens import WORD
from drift.errors import ConfigError, DataError, LabelError

CONLL_SUFFIXES = (".conll", ".bio", ".iob", ".txt")
DOCUMENT_START = "-DOCSTART-"
NO_TAG = "_"

# Column names that are recognised, the most likely first.
TOKENS = ("tokens", "words", "text")
LABELS, WEAK = ("labels", "ner_tags", "tags", "label"), ("weak", "weak_labels", "weak_tags")
SPANS, WEAK_SPANS = ("spans", "entities", "label"), ("weak_spans",)

Tags = list[str | None]
Offsets = list[tuple[int, int]]


@dataclass(frozen=True)
class Wanted:
    """The columns that the user named: None means to guess, "" that there is none."""

    tokens: str | None
    label: str | None
    weak: str | None


@dataclass(frozen=True)
class SentenceRow:
    """One sentence.

    where: its file or row, for messages. tokens: its words. labels, weak: gold and weak tags, None if there are none.
    line: line number of its first token in a CoNLL file. text, offsets: the raw text and the character range of each
    token, if the source has texts.
    """

    where: str
    tokens: list[str]
    labels: Tags | None
    weak: Tags | None
    line: int | None = None
    text: str | None = None
    offsets: Offsets | None = None

    def place(self, token: int) -> str:
        """Where a token (counted from 0) is in the source, for messages."""
        return f"{self.where}, token {token + 1}" if self.line is None else f"{self.where}:{self.line + token}"


def word_offsets(text: str) -> Offsets:
    """The character range of each token of a text. A token is a run of word characters, or one other character."""
    return [match.span() for match in WORD.finditer(text)]


def is_conll(source: Any) -> bool:
    """Whether a source is a file of CoNLL columns, judged by its name."""
    name = os.fspath(source) if isinstance(source, (str, os.PathLike)) else ""
    return name.lower().removesuffix(".gz").endswith(CONLL_SUFFIXES)


def sentence_columns(source: Any, encoding: str) -> list[str]:
    """The names of the columns of a table; for a CoNLL file their numbers, from 1."""
    if not is_conll(source):
        return column_names(source, encoding=encoding)
    _, lines = next(_blocks(read_lines(Path(source), encoding)), (0, [""]))
    return _numbered(lines[0])[1]


def adapted(
    wanted: Wanted, source: Any, elsewhere: Callable[[], Collection[str]], encoding: str
) -> tuple[Wanted, list[str]]:
    """The wanted columns for a source that may lack some of them, and notes.

    In place of a column that only another table has, an obvious one of this source is read. elsewhere: the columns of
    the other tables of the run.
    """
    names, notes = sentence_columns(source, encoding), []
    likely = {"tokens": TOKENS, "label": (*SPANS, *LABELS)}
    if is_conll(source):
        likely = {"tokens": ("1",), "label": tuple(names[::-1])}
    for field, typical in likely.items():
        column = getattr(wanted, field)
        if column and column not in names and column in elsewhere():
            instead = _first(typical, names)
            wanted = replace(wanted, **{field: instead})
            used = "it is read without" if instead is None else f"its column {instead!r} is used"
            notes.append(f"{source_name(source)} has no column {column!r}; {used}")
    return wanted, notes


def conll_rows(source: Any, wanted: Wanted, encoding: str) -> Iterator[SentenceRow]:
    """The sentences of a CoNLL file, with one token per line. Its columns are named by their numbers, from 1."""
    name = source_name(source)
    names: list[str] = []
    for first, lines in _blocks(read_lines(Path(source), encoding)):
        if not names:
            separator, names = _numbered(lines[0])
            free = [number for number in reversed(names) if number not in (wanted.tokens or "1", wanted.weak)]
            columns = _choose(wanted, names, name, ("1",), free, ())
        rows = [re.split(separator, line) for line in lines]
        for number, fields in enumerate(rows, first):
            if len(fields) != len(names):
                raise DataError(
                    f"{name}:{number}: {len(fields)} columns, the first line has {len(names)};"
                    f" fix the line: a missing tag is {NO_TAG}, a blank line ends a sentence"
                )
        values = dict(zip(names, zip(*rows, strict=True), strict=True))
        tokens, label, weak = columns
        yield SentenceRow(name, list(values[tokens]), _column_tags(values, label), _column_tags(values, weak), first)


def _numbered(line: str) -> tuple[str, list[str]]:
    """What separates the columns of a CoNLL file, as a pattern, and their numbers. line: the first one."""
    separator = "\t" if "\t" in line else "[ \t]+"
    return separator, [str(number) for number, _ in enumerate(re.split(separator, line), 1)]


def _blocks(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """The lines of each sentence, with the number of its first line."""
    block: list[str] = []
    for number, line in enumerate(chain(lines, [""]), 1):  # the last sentence may have no blank line after it
        if line.strip() and not line.startswith(DOCUMENT_START):
            block.append(line.strip(" \r\n"))
        elif block:
            yield number - len(block), block
            block = []


def _column_tags(values: dict[str, tuple[str, ...]], column: str | None) -> Tags | None:
    return None if column is None else [None if tag == NO_TAG else label_of(tag) for tag in values[column]]


def table_rows(source: Any, wanted: Wanted, encoding: str) -> Iterator[SentenceRow]:
    """The sentences of a table, one per row. A column of strings holds texts; a column of lists holds tokens."""
    name = source_name(source)
    columns = None
    for chunk in read_chunks(source, encoding=encoding):
        if columns is None:
            names = list(chunk.columns)
            tokens = token_column(wanted.tokens, names, name)
            raw = isinstance(next((value for value in chunk.columns[tokens] if value is not None), None), str)
            tags = _first([column for column in LABELS if column != wanted.weak], names)
            if raw and _first(SPANS, names) is None and tags and wanted.label in (None, tags):
                raise DataError(
                    f"{name}: column {tokens!r} holds strings beside tags in {tags!r}; give a list of words per row, or"
                    " spans of the text in 'spans'"
                )
            columns = _choose(wanted, names, name, (tokens,), *((SPANS, WEAK_SPANS) if raw else (LABELS, WEAK)))
        values = (_values(source, chunk, column) for column in columns)
        for row, (value, labels, weak) in enumerate(zip(*values, strict=True), chunk.first):
            where = f"{name}, row {row + 1}"
            if raw:
                yield _text_row(where, text_of(value, name, row), labels, weak)
            else:
                yield _token_row(where, value, labels, weak)


def sentence_of(value: Any, source: str, row: int) -> SentenceRow:
    """A sentence without tags from one cell of a table: a list of tokens, or a text.

    source, row: name of the table, and row number from 0, for messages.
    """
    where = f"{source}, row {row + 1}"
    if isinstance(value, str):
        return _text_row(where, text_of(value, source, row), None, None)
    return _token_row(where, value, None, None)


def token_column(wanted: str | None, names: list[str], source: str) -> str:
    """The column with tokens or texts: the one that the user named, or the most likely one in the table."""
    return find_column(wanted or _first(TOKENS, names) or TOKENS[0], names, source)


def _choose(
    wanted: Wanted, names: list[str], source: str, tokens: Sequence[str], label: Sequence[str], weak: Sequence[str]
) -> tuple[str, str | None, str | None]:
    """The columns for tokens, labels and weak tags: the one that the user named, else the first likely one."""
    label = [column for column in label if column != wanted.weak]
    columns = [
        _first(likely, names) if name is None else find_column(name, names, source) if name else None
        for name, likely in ((wanted.tokens or None, tokens), (wanted.label, label), (wanted.weak, weak))
    ]
    used = [name for name in columns if name]
    if len(set(used)) < len(used):
        raise ConfigError(f"{source}: tokens, label and weak are {', '.join(used)}; each must be a column of its own")
    return used[0], columns[1], columns[2]


def _first(likely: Sequence[str], names: list[str]) -> str | None:
    return next((name for name in likely if name in names), None)


def _values(source: Any, chunk: Chunk, column: str | None) -> list[Any]:
    """The values of a column, or None for every row if there is no column. Class numbers of a Dataset become names."""
    if column is None:
        return [None] * len(chunk)
    values, source = chunk.columns[column], whole_table(source)
    if (datasets := sys.modules.get("datasets")) and isinstance(source, datasets.Dataset):
        feature = getattr(source.features[column], "feature", None)
        if isinstance(feature, datasets.ClassLabel):
            # A number without a name is kept, to be reported with its position.
            known = {NO_CLASS: None, **dict(enumerate(feature.names))}
            return [None if codes is None else [known.get(code, code) for code in codes] for codes in values]
    return values


def _token_row(where: str, value: Any, labels: Any, weak: Any) -> SentenceRow:
    tokens = [] if value is None else _listed(value, "tokens", where)
    for number, token in enumerate(tokens, 1):
        if not isinstance(token, str):
            raise DataError(f"{where}, token {number}: {token!r} is not a string; write every token as one")
    return SentenceRow(
        where, tokens, _tags(labels, len(tokens), "labels", where), _tags(weak, len(tokens), "weak tags", where)
    )


def _tags(value: Any, length: int, what: str, where: str) -> Tags | None:
    if value is None:
        return None
    tags = _listed(value, what, where)
    if len(tags) != length:
        raise LabelError(f"{where}: {length} tokens and {len(tags)} {what}; give each token one, null for none")
    for number, tag in enumerate(tags, 1):
        if tag is not None and not isinstance(tag, str):
            raise LabelError(
                f"{where}, token {number}: {tag!r} is not the name of a tag; write names such as 'B-LOC',"
                " or give a Dataset whose ClassLabel has them"
            )
    return [label_of(tag) for tag in tags]


def _text_row(where: str, text: str, labels: Any, weak: Any) -> SentenceRow:
    offsets = word_offsets(text)
    gold, votes = (_span_tags(spans, text, offsets, where) for spans in (labels, weak))
    if votes is not None:
        votes = [None if tag == OUTSIDE else tag for tag in votes]  # where no rule fired, the tag is unknown, not O
    return SentenceRow(where, [text[start:end] for start, end in offsets], gold, votes, text=text, offsets=offsets)


def _span_tags(value: Any, text: str, offsets: Offsets, where: str) -> Tags | None:
    """IOB2 tags for character spans, which must begin and end at token boundaries."""
    if value is None:
        return None
    begins = {start: token for token, (start, _) in enumerate(offsets)}
    ends = {end: token + 1 for token, (_, end) in enumerate(offsets)}
    spans = sorted(_span(entry, text, where) for entry in _listed(value, "spans", where))
    for before, after in pairwise(spans):
        if after.start < before.end:
            raise LabelError(
                f"{where}: span {after.start}-{after.end} {after.type} overlaps {before.start}-{before.end}"
                f" {before.type}; keep one of them"
            )
    for span in spans:
        if span.start not in begins or span.end not in ends:
            cut = [text[a:b] for a, b in offsets if a < span.start < b or a < span.end < b]
            problem = f"cuts the token {cut[0]!r}" if cut else "begins or ends with a space"
            raise LabelError(
                f"{where}: span {span.start}-{span.end} {text[span.start : span.end]!r} {problem};"
                " move it to where tokens begin and end"
            )
    return list(tags_of((Span(begins[span.start], ends[span.end], span.type) for span in spans), len(offsets)))


def _span(entry: Any, text: str, where: str) -> Span:
    """A character span, from {"start": 0, "end": 5, "label": "LOC"} or [0, 5, "LOC"]."""
    parts = [entry.get(key) for key in ("start", "end", "label")] if isinstance(entry, dict) else entry
    start, end, label = parts if isinstance(parts, (list, tuple)) and len(parts) == 3 else (None, None, None)
    if not (isinstance(start, Integral) and isinstance(end, Integral) and isinstance(label, str) and label.strip()):
        raise LabelError(f'{where}: {str(entry)[:60]!r} is not a span such as {{"start": 0, "end": 5, "label": "LOC"}}')
    if label == OUTSIDE:
        raise LabelError(f"{where}: span {start}-{end} is labelled {OUTSIDE}, which no entity is; take it out")
    span = Span(int(start), int(end), label.strip())
    if not 0 <= span.start < span.end <= len(text):
        raise LabelError(f"{where}: span {start}-{end} is not within the {len(text)} characters of the text")
    return span


def _listed(value: Any, what: str, where: str) -> list[Any]:
    items = value.tolist() if hasattr(value, "tolist") else value  # pandas reads lists of Parquet as arrays
    if not isinstance(items, (list, tuple)):
        raise DataError(f"{where}: the {what} are {str(value)[:40]!r}, not a list; name the right column")
    return list(items)
