"""Which unlabelled texts to label next: doubtful ones from everywhere in the table, without near-duplicates."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.columns import find_column, guess_label_column
from drift.data.table_writer import TableWriter
from drift.data.tables import read_chunks, source_name
from drift.data.text_tables import label_of
from drift.errors import LabelError
from drift.quality.selection import disagreement, doubt
from drift.tasks.parts import ROWS_PER_CHUNK, TableOptions, Trained
from drift.tasks.suggestions import Candidate, Suggestion, choose, filled_in_table, new_pool, offer
from drift.tasks.text.predict import predicted_chunks, text_column

__all__ = ["Suggestion", "suggest_rows"]

LABEL = "label"  # the empty column of the new table, if no label column is known


def suggest_rows(run: Trained, source: Any, n: int, out: str | Path | None, options: TableOptions) -> list[Suggestion]:
    """At most `n` rows of a table, the most doubtful first; also written to `out`, if that is given.

    Memory does not grow with the table: of very many rows, a random sample that prefers doubtful ones is compared.
    """
    # First, so that a wrong name fails before the work.
    writer = None if out is None else TableWriter(out, spreadsheet=options.spreadsheet)
    text, label = _columns(run, source, options)
    pool = new_pool(n, options.seed)
    for candidate in _candidates(run, source, text, label, options):
        offer(pool, candidate)
    chosen = choose(pool, n, options.seed)
    if not chosen:
        where = f" in column {label!r}" if label else ""
        raise LabelError(f"{source_name(source)}: every row has a label{where} or no text; nothing is left to suggest")
    if writer is not None:
        with writer:
            writer.write(filled_in_table(chosen, label or run.record.columns.get("label") or LABEL))
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


def _candidates(run: Trained, source: Any, text: str, label: str | None, options: TableOptions) -> Iterator[Candidate]:
    """Every row that has a text and no label, with its two most likely classes."""
    classes = run.model.classes
    for piece in predicted_chunks(run, source, text, options.encoding):
        columns = piece.chunk.columns
        free = [
            row
            for row, content in enumerate(columns[text])
            if isinstance(content, str) and content.strip() and (label is None or label_of(columns[label][row]) is None)
        ]
        texts = [columns[text][row] for row in free]
        by_head = run.model.head_probabilities(texts)
        mean = piece.probabilities[free] if by_head is None else by_head.mean(0)
        doubts = doubt(mean)
        split = None if by_head is None else disagreement(by_head)
        vectors = run.model.vectors(texts)
        two_best = np.argsort(-mean, axis=-1, kind="stable")[:, :2]
        for place, row in enumerate(free):
            (first, second), p = two_best[place], mean[place]
            suggestion = Suggestion(
                piece.chunk.first + row + 1,
                columns[text][row],
                {name: values[row] for name, values in columns.items()},
                classes[first],
                float(p[first]),
                float(p[first] - p[second]),
                f"{classes[first]} {100 * p[first]:.0f} %, {classes[second]} {100 * p[second]:.0f} %",
                None if split is None else float(split[place]),
            )
            yield Candidate(suggestion, float(doubts[place]), None if vectors is None else vectors[place])
        options.tick()
