"""The labels of a session on sentences as a file that `drift fit --task tokens` reads."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift.annotate.pool import beside
from drift.data.conll_writer import conll_file, conll_lines
from drift.data.sentence_formats import LABELS, NO_TAG, SPANS, SentenceRow, is_conll, sentence_of, token_column
from drift.data.table_formats import format_of
from drift.data.table_writer import TableWriter, with_columns
from drift.data.tables import read_chunks, source_name
from drift.errors import ConfigError

if TYPE_CHECKING:
    from drift.annotate.sentences import SentencePool


def check_sentence_output(out: Path) -> None:
    """Refuse a file that cannot hold entities."""
    form = "conll" if is_conll(out) else format_of(out)
    if form not in ("conll", "json"):
        raise ConfigError(f"{out}: entities are lists, which {form} cannot hold; write .jsonl or .conll")


def write_sentences(
    pool: "SentencePool",
    out: Path,
    tags: Sequence[Sequence[str] | None],
    labels: Sequence[Any],
    flags: set[int],
    notes: Mapping[int, str],
    *,
    not_label: Sequence[str],
) -> list[str]:
    """Write all sentences; return the options of `drift fit`.

    CoNLL files have words and tags, JSON lines also the other columns of the table. Tables of texts have spans of
    characters, other ones lists of tags. tags, labels: of each sentence, None for one without. not_label: columns with
    noisy labels.
    """
    tokens = pool.sentences.tokens
    if is_conll(out):
        rows = [SentenceRow(f"sentence {row + 1}", words, None, None) for row, words in enumerate(tokens)]
        lines = [each or [NO_TAG] * len(words) for each, words in zip(tags, tokens, strict=True)]
        with conll_file(out) as file:
            file.writelines(conll_lines(rows, lines))
        return ["--task", "tokens"]
    raw = pool.sentences.offsets is not None
    values = [_spans(pool, row, label) for row, label in enumerate(labels)] if raw else tags
    likely = SPANS if raw else LABELS
    name, column, start = "", "", 0
    with TableWriter(out) as writer:
        for words, columns, places in _chunks(pool, raw):
            if not column:
                name = words
                known = [each for each in likely if each in columns and each not in not_label]
                column = pool.label or (known[0] if known and pool.label is None else likely[0])
                while column in columns and pool.label == "":
                    column += "_by_drift"
            numbers = count(start)
            shown = [next(numbers) if has else None for has in places]
            columns[column] = [None if row is None else values[row] for row in shown]
            writer.write(with_columns(columns, beside(shown, flags, notes)))
            start += sum(places)
    return ["--task", "tokens", "--tokens", name, "--label", column]


def _spans(pool: "SentencePool", row: int, label: Any) -> list[dict[str, Any]] | None:
    """Character spans of entities."""
    if label is None:
        return None
    assert pool.sentences.offsets is not None
    offsets = pool.sentences.offsets[row]
    return [{"start": offsets[a][0], "end": offsets[b - 1][1], "label": name} for a, b, name in label]


def _chunks(pool: "SentencePool", raw: bool) -> Iterator[tuple[str, dict[str, list[Any]], list[bool]]]:
    """Rows of the source: the column of words, all columns, and whether each row is a sentence of the pool."""
    if isinstance(pool.source, (list, tuple)) or is_conll(pool.source):
        words: list[Any] = pool.texts if raw else pool.sentences.tokens
        yield ("text" if raw else "tokens"), {"text" if raw else "tokens": list(words)}, [True] * len(words)
        return
    name = source_name(pool.source)
    for chunk in read_chunks(pool.source, encoding=pool.encoding):
        column = token_column(pool.tokens, list(chunk.columns), name)
        rows = enumerate(chunk.columns[column], chunk.first)
        has_words = [value is not None and bool(sentence_of(value, name, row).tokens) for row, value in rows]
        yield column, dict(chunk.columns), has_words
