"""Tagged sentences as sources have them: CoNLL columns, tables of tokens, and tables of texts with character spans."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from numbers import Integral
from pathlib import Path
from typing import Any

from drift.data.columns import find_column
from drift.data.table_formats import read_lines
from drift.data.tables import NO_CLASS, Chunk, read_chunks, source_name
from drift.data.tags import OUTSIDE, Span, tags_of
from drift.data.text_tables import label_of, text_of
from drift.data.word_tokens import WORD
from drift.errors import ConfigError, DataError, LabelError

CONLL_SUFFIXES = (".conll", ".bio", ".iob", ".txt")
DOCUMENT_START = "-DOCSTART-"
NO_TAG = "_"

# Columns that need not be named, the likeliest first.
TOKENS = ("tokens", "words", "text")
LABELS, WEAK = ("labels", "ner_tags", "tags"), ("weak",)
SPANS, WEAK_SPANS = ("spans", "entities"), ("weak_spans",)

Tags = list[str | None]
Offsets = list[tuple[int, int]]


@dataclass(frozen=True)
class Wanted:
    """The columns that a user named: None asks for a guess, "" says that there is none."""

    tokens: str | None
    label: str | None
    weak: str | None


@dataclass(frozen=True)
class SentenceRow:
    """One sentence. where: its file or row; line: of its first token, where each token has a line of its own."""

    where: str
    tokens: list[str]
    labels: Tags | None
    weak: Tags | None
    line: int | None = None
    text: str | None = None
    offsets: Offsets | None = None

    def place(self, token: int) -> str:
        return f"{self.where}, token {token + 1}" if self.line is None else f"{self.where}:{self.line + token}"


def word_offsets(text: str) -> Offsets:
    """Where the tokens of a text begin and end: runs of word characters, and each other mark alone."""
    return [match.span() for match in WORD.finditer(text)]


def is_conll(source: Any) -> bool:
    """Whether a source is a file of CoNLL columns, by its name."""
    name = os.fspath(source) if isinstance(source, (str, os.PathLike)) else ""
    return name.lower().removesuffix(".gz").endswith(CONLL_SUFFIXES)


def conll_rows(source: Any, wanted: Wanted, encoding: str) -> Iterator[SentenceRow]:
    """The sentences of a file with one token a line, whose columns are called by their numbers, from 1."""
    name = source_name(source)
    names: list[str] = []
    for first, lines in _blocks(read_lines(Path(source), encoding)):
        if not names:
            separator = "\t" if "\t" in lines[0] else "[ \t]+"
            names = [str(number) for number, _ in enumerate(re.split(separator, lines[0]), 1)]
            free = [number for number in reversed(names) if number not in (wanted.tokens or "1", wanted.weak)]
            chosen = _choose(wanted, names, name, ("1",), free, ())
        rows = [re.split(separator, line) for line in lines]
        for number, fields in enumerate(rows, first):
            if len(fields) != len(names):
                raise DataError(
                    f"{name}:{number}: {len(fields)} columns, the first line has {len(names)};"
                    f" fix the line: a missing tag is {NO_TAG}, a blank line ends a sentence"
                )
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        tokens, label, weak = chosen
        yield SentenceRow(name, list(columns[tokens]), _written(columns, label), _written(columns, weak), first)


def _blocks(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """The lines of each sentence, with the number of the first."""
    block: list[str] = []
    for number, line in enumerate(chain(lines, [""]), 1):  # the last sentence may have no blank line after it
        if line.strip() and not line.startswith(DOCUMENT_START):
            block.append(line.strip(" \r\n"))
        elif block:
            yield number - len(block), block
            block = []


def _written(columns: dict[str, tuple[str, ...]], name: str | None) -> Tags | None:
    return None if name is None else [None if tag == NO_TAG else label_of(tag) for tag in columns[name]]


def table_rows(source: Any, wanted: Wanted, encoding: str) -> Iterator[SentenceRow]:
    """The sentences of a table, a row each: a column of strings holds texts, one of lists tokens."""
    name = source_name(source)
    chosen = None
    for chunk in read_chunks(source, encoding=encoding):
        if chosen is None:
            names = list(chunk.columns)
            tokens = token_column(wanted.tokens, names, name)
            raw = isinstance(next((value for value in chunk.columns[tokens] if value is not None), None), str)
            if raw and _first(SPANS, names) is None and (tags := _first(LABELS, names)) and wanted.label != "":
                raise DataError(
                    f"{name}: column {tokens!r} holds strings beside tags in {tags!r}; give a list of words a row, or"
                    " spans of the text in 'spans'"
                )
            chosen = _choose(wanted, names, name, (tokens,), *((SPANS, WEAK_SPANS) if raw else (LABELS, WEAK)))
        columns = (_values(source, chunk, column) for column in chosen)
        for row, (value, labels, weak) in enumerate(zip(*columns, strict=True), chunk.first):
            where = f"{name}, row {row + 1}"
            if raw:
                yield _text_row(where, text_of(value, name, row), labels, weak)
            else:
                yield _token_row(where, value, labels, weak)


def sentence_of(value: Any, source: str, row: int) -> SentenceRow:
    """One value of a table's column as a sentence without tags: a list of tokens, or a text."""
    where = f"{source}, row {row + 1}"
    if isinstance(value, str):
        return _text_row(where, text_of(value, source, row), None, None)
    return _token_row(where, value, None, None)


def token_column(wanted: str | None, names: list[str], source: str) -> str:
    """The column with tokens or texts: the one named, or the likeliest that is there."""
    return find_column(wanted or _first(TOKENS, names) or TOKENS[0], names, source)


def _choose(
    wanted: Wanted, names: list[str], source: str, tokens: Sequence[str], label: Sequence[str], weak: Sequence[str]
) -> tuple[str, str | None, str | None]:
    """The columns that were named, and for those that were not the first of the likely ones that is there."""
    found = [
        _first(likely, names) if name is None else find_column(name, names, source) if name else None
        for name, likely in ((wanted.tokens or None, tokens), (wanted.label, label), (wanted.weak, weak))
    ]
    taken = [name for name in found if name]
    if len(set(taken)) < len(taken):
        raise ConfigError(f"{source}: tokens, label and weak are {', '.join(taken)}; each must be a column of its own")
    return taken[0], found[1], found[2]


def _first(likely: Sequence[str], names: list[str]) -> str | None:
    return next((name for name in likely if name in names), None)


def _values(source: Any, chunk: Chunk, column: str | None) -> list[Any]:
    """A column, None for every row where there is none; class numbers of a Dataset as the names it has for them."""
    if column is None:
        return [None] * len(chunk)
    values = chunk.columns[column]
    if (datasets := sys.modules.get("datasets")) and isinstance(source, datasets.Dataset):
        feature = getattr(source.features[column], "feature", None)
        if isinstance(feature, datasets.ClassLabel):
            # A number without a name stays, to be told with its place.
            known = {NO_CLASS: None, **dict(enumerate(feature.names))}
            return [None if codes is None else [known.get(code, code) for code in codes] for codes in values]
    return values


def _token_row(where: str, value: Any, labels: Any, weak: Any) -> SentenceRow:
    tokens = [] if value is None else _listed(value, "tokens", where)
    for place, token in enumerate(tokens, 1):
        if not isinstance(token, str):
            raise DataError(f"{where}, token {place}: {token!r} is not a string; write every token as one")
    return SentenceRow(
        where, tokens, _tags(labels, len(tokens), "labels", where), _tags(weak, len(tokens), "weak tags", where)
    )


def _tags(value: Any, length: int, what: str, where: str) -> Tags | None:
    if value is None:
        return None
    tags = _listed(value, what, where)
    if len(tags) != length:
        raise LabelError(f"{where}: {length} tokens and {len(tags)} {what}; give each token one, null for none")
    for place, tag in enumerate(tags, 1):
        if tag is not None and not isinstance(tag, str):
            raise LabelError(
                f"{where}, token {place}: {tag!r} is not the name of a tag; write names such as 'B-LOC',"
                " or give a Dataset whose ClassLabel has them"
            )
    return [label_of(tag) for tag in tags]


def _text_row(where: str, text: str, labels: Any, weak: Any) -> SentenceRow:
    offsets = word_offsets(text)
    gold, votes = (_span_tags(spans, text, offsets, where) for spans in (labels, weak))
    if votes is not None:
        votes = [None if tag == OUTSIDE else tag for tag in votes]  # where no rule fired, nobody has said O
    return SentenceRow(where, [text[start:end] for start, end in offsets], gold, votes, text=text, offsets=offsets)


def _span_tags(value: Any, text: str, offsets: Offsets, where: str) -> Tags | None:
    """IOB2 tags for spans of characters, which must begin and end where tokens do."""
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
            fault = f"cuts the token {cut[0]!r}" if cut else "begins or ends with a space"
            raise LabelError(
                f"{where}: span {span.start}-{span.end} {text[span.start : span.end]!r} {fault};"
                " move it to where tokens begin and end"
            )
    return list(tags_of((Span(begins[span.start], ends[span.end], span.type) for span in spans), len(offsets)))


def _span(entry: Any, text: str, where: str) -> Span:
    """A span of characters: {"start": 0, "end": 5, "label": "LOC"} or [0, 5, "LOC"]."""
    parts = [entry.get(key) for key in ("start", "end", "label")] if isinstance(entry, dict) else entry
    start, end, kind = parts if isinstance(parts, (list, tuple)) and len(parts) == 3 else (None, None, None)
    if not (isinstance(start, Integral) and isinstance(end, Integral) and isinstance(kind, str) and kind.strip()):
        raise LabelError(f'{where}: {str(entry)[:60]!r} is not a span such as {{"start": 0, "end": 5, "label": "LOC"}}')
    if kind == OUTSIDE:
        raise LabelError(f"{where}: span {start}-{end} is labelled {OUTSIDE}, which no entity is; take it out")
    span = Span(int(start), int(end), kind.strip())
    if not 0 <= span.start < span.end <= len(text):
        raise LabelError(f"{where}: span {start}-{end} is not within the {len(text)} characters of the text")
    return span


def _listed(value: Any, what: str, where: str) -> list[Any]:
    found = value.tolist() if hasattr(value, "tolist") else value  # pandas reads lists of Parquet as arrays
    if not isinstance(found, (list, tuple)):
        raise DataError(f"{where}: the {what} are {str(value)[:40]!r}, not a list; name the right column")
    return list(found)
