"""Which unlabelled texts to label next: the least certain ones, without near-duplicates."""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappush, heappushpop
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.columns import find_column, guess_label_column
from drift.data.table_writer import TableWriter, with_columns
from drift.data.tables import read_chunks, source_name
from drift.data.text_tables import label_of
from drift.errors import LabelError
from drift.tasks.parts import ROWS_PER_CHUNK, TableOptions, Trained
from drift.tasks.text.predict import predicted_chunks, text_column

POOL = 10  # candidates that are kept, as a multiple of the rows that are wanted
ALIKE = 0.6  # cosine of character 4-grams: two papers on the same news item have about this, other pairs 0.03


@dataclass(frozen=True)
class Suggestion:
    """A row to label.

    row: counted from 1, as in messages. columns: the row as it is in the table. margin: how far the most likely class
    is ahead of the second. why: both classes with their probabilities.
    """

    row: int
    text: str
    columns: dict[str, Any]
    predicted: str
    confidence: float
    margin: float
    why: str


def suggest_rows(run: Trained, source: Any, n: int, out: str | Path | None, options: TableOptions) -> list[Suggestion]:
    """At most `n` rows of a table, the least certain first; also written to `out`, if that is given.

    Memory holds ten times `n` rows, however long the table is.
    """
    writer = None if out is None else TableWriter(out)  # first, so that a wrong name fails before the work
    text, label = _columns(run, source, options)
    pool: list[tuple[float, int, Suggestion]] = []  # a heap with the most certain row on top
    pooled: set[str] = set()  # copies of one text would fill the pool
    for candidate in _candidates(run, source, text, label, options):
        if candidate.text in pooled:
            continue
        pooled.add(candidate.text)
        entry = (-candidate.margin, -candidate.row, candidate)
        if len(pool) < POOL * n:
            heappush(pool, entry)
        else:
            pooled.remove(heappushpop(pool, entry)[-1].text)
    if not pool:
        where = f" in column {label!r}" if label else ""
        raise LabelError(f"{source_name(source)}: every row has a label{where} or no text; nothing is left to suggest")
    ranked = [candidate for *_, candidate in sorted(pool, reverse=True)]
    chosen = [ranked[position] for position in _different([candidate.text for candidate in ranked], n)]
    if writer is not None:
        with writer:
            writer.write(_table(chosen))
    return chosen


def _columns(run: Trained, source: Any, options: TableOptions) -> tuple[str, str | None]:
    """The columns of texts and labels: named by the user, trained on, or guessed. A label of "" means no labels."""
    sample = next(read_chunks(source, size=ROWS_PER_CHUNK, encoding=options.encoding))
    name, names, label = source_name(source), list(sample.columns), options.label
    text = options.column or text_column(run, sample, name)
    if label is None:
        trained = run.record.columns.get("label")
        label = trained if trained in names else guess_label_column(names, sample, text)
    return find_column(text, names, name), find_column(label, names, name) if label else None


def _candidates(run: Trained, source: Any, text: str, label: str | None, options: TableOptions) -> Iterator[Suggestion]:
    """Every row that has a text and no label, with its two most likely classes."""
    classes = run.model.classes
    for piece in predicted_chunks(run, source, text, options.encoding):
        columns = piece.chunk.columns
        two_best = np.argsort(-piece.probabilities, axis=-1, kind="stable")[:, :2]
        for row, (first, second) in enumerate(two_best):
            content = columns[text][row]
            labeled = label is not None and label_of(columns[label][row]) is not None
            if labeled or not isinstance(content, str) or not content.strip():
                continue
            high, low = (float(piece.probabilities[row, c]) for c in (first, second))
            yield Suggestion(
                piece.chunk.first + row + 1,
                content,
                {name: values[row] for name, values in columns.items()},
                classes[first],
                high,
                high - low,
                f"{classes[first]} {100 * high:.0f} %, {classes[second]} {100 * low:.0f} %",
            )
        options.tick()


def _different(texts: list[str], most: int) -> list[int]:
    """Positions of texts in order, without those that are too similar to an earlier one."""
    from sklearn.feature_extraction.text import HashingVectorizer

    # Characters, because not every script puts spaces between words.
    grams = HashingVectorizer(analyzer="char", ngram_range=(4, 4), n_features=2**18, alternate_sign=False)
    vectors = grams.transform(texts)  # rows of length 1
    similarity = np.zeros(len(texts))  # to the most similar chosen text
    chosen: list[int] = []
    for position in range(len(texts)):
        if len(chosen) < most and similarity[position] < ALIKE:
            chosen.append(position)
            similarity = np.maximum(similarity, (vectors @ vectors[position].T).toarray()[:, 0])
    return chosen


def _table(chosen: list[Suggestion]) -> dict[str, list[Any]]:
    """The columns of the table, with the model's prediction for each row."""
    columns = {name: [each.columns[name] for each in chosen] for name in chosen[0].columns}
    added: dict[str, list[Any]] = {
        "row": [each.row for each in chosen],
        "predicted": [each.predicted for each in chosen],
        "confidence": [round(each.confidence, 6) for each in chosen],
        "why": [each.why for each in chosen],
    }
    return with_columns(columns, added)
