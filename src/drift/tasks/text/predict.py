"""Predict and evaluate tables of texts of any size, chunk by chunk."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.columns import WHY, find_column, guess_label_column, guess_text_column
from drift.data.labels import UNLABELED, known_labels
from drift.data.table_writer import TableWriter, with_columns
from drift.data.tables import Chunk, read_chunks, source_name
from drift.data.text_tables import label_of, text_of
from drift.errors import ConfigError, DataError, LabelError
from drift.tasks.explaining import Explanation
from drift.tasks.parts import ROWS_PER_CHUNK, TableOptions, Trained
from drift.tasks.scoring import evaluation_scores
from drift.tasks.text.explain import explain_texts

WORDS, NEAREST = 5, 3  # of an explanation


@dataclass(frozen=True)
class PredictedChunk:
    """Some rows of a table with their predictions. probabilities: `(n, C)`."""

    chunk: Chunk
    probabilities: np.ndarray

    @property
    def confidence(self) -> np.ndarray:
        return np.asarray(self.probabilities.max(-1))

    def labels(self, classes: list[str], abstain_below: float) -> list[str | None]:
        """The most likely class of each row; None where the confidence is too low."""
        sure = self.confidence >= abstain_below
        codes = self.probabilities.argmax(-1)
        return [classes[code] if kept else None for code, kept in zip(codes, sure, strict=True)]


def predict_table(
    run: Trained, source: Any, out: str | Path | None, options: TableOptions
) -> Iterator[list[str | None]]:
    """The labels of every chunk of a table.

    out: a new table with all columns of the old one, `predicted`, `confidence` and one `p_CLASS` per class; with
        `options.explain` also `why_words` and `why_rows`.
    """
    classes = run.model.classes
    with nullcontext() if out is None else TableWriter(out, spreadsheet=options.spreadsheet) as writer:
        for piece in predicted_chunks(run, source, options.column, options.encoding):
            labels = piece.labels(classes, options.abstain_below)
            if writer is not None:
                why = explained(run, piece, options) if options.explain else {}
                added: dict[str, list[Any]] = {"predicted": labels, "confidence": _rounded(piece.confidence)}
                added |= {f"p_{name}": _rounded(piece.probabilities[:, c]) for c, name in enumerate(classes)}
                added |= why
                writer.write(with_columns(piece.chunk.columns, added))
            if options.tally is not None:
                options.tally.add(len(labels), labels, piece.confidence.tolist())
            yield labels


def explain_table(run: Trained, source: Any, count: int, options: TableOptions) -> list[Explanation]:
    """Explanations of texts that are drawn at random from the first rows of a table."""
    name = source_name(source)
    chunk = next(iter(read_chunks(source, size=ROWS_PER_CHUNK, encoding=options.encoding)))
    texts = _texts(run, chunk, options.column, name)
    rows = np.sort(np.random.default_rng(options.seed).permutation(len(texts))[:count])
    return explain_texts(run, [texts[row] for row in rows], WORDS, NEAREST)


def explained(run: Trained, piece: PredictedChunk, options: TableOptions) -> dict[str, list[Any]]:
    """Columns that say why: the words that matter most, and the nearest labelled rows."""
    texts = _texts(run, piece.chunk, options.column, "the table")
    cells = [each.cells() for each in explain_texts(run, texts, WORDS, NEAREST)]
    return {WHY[0]: [words for words, _ in cells], WHY[1]: [rows for _, rows in cells]}


def evaluate_table(run: Trained, source: Any, options: TableOptions) -> dict[str, Any]:
    """Accuracy, macro-F1 and calibration error on the labelled rows of a table."""
    name, label = source_name(source), options.label
    labels: list[str | None] = []
    kept: list[np.ndarray] = []
    for piece in predicted_chunks(run, source, options.column, options.encoding):
        columns = piece.chunk.columns
        if label is None:
            label = _label_column(run, piece.chunk, options.column or "", name)
        cells = [label_of(value) for value in columns[find_column(label, list(columns), name)]]
        labels += cells
        kept.append(piece.probabilities[[cell is not None for cell in cells]])
        options.tick()
    known = known_labels(labels, run.model.classes, name, refuse=False)
    truth = known.codes[known.codes != UNLABELED]
    if not len(truth):
        raise LabelError(f"{name}: none of the {len(labels)} rows has a label to score against")
    scores = evaluation_scores(np.concatenate(kept), truth, run.model.classes, options.abstain_below)
    return {"rows": len(labels), "labeled_rows": len(truth), "label": label, **scores, "notes": known.notes}


def predicted_chunks(run: Trained, source: Any, column: str | None, encoding: str) -> Iterator[PredictedChunk]:
    """A table chunk by chunk, with the probabilities of each row."""
    name = source_name(source)
    for chunk in read_chunks(source, size=ROWS_PER_CHUNK, encoding=encoding):
        column = column or text_column(run, chunk, name)
        yield PredictedChunk(chunk, run.model.predict_proba(_texts(run, chunk, column, name)))


def _texts(run: Trained, chunk: Chunk, column: str | None, name: str) -> list[str]:
    """The texts of a chunk. column: None for the one that was trained on. name: of the table."""
    names = list(chunk.columns)
    values = chunk.columns[find_column(column or text_column(run, chunk, name), names, name)]
    return [text_of(value, name, chunk.first + row) for row, value in enumerate(values)]


def text_column(run: Trained, sample: Chunk, name: str) -> str:
    """The column with the texts if none was named: the one that was trained on. name: of the table."""
    names = list(sample.columns)
    column: str = run.record.columns.get("text") or guess_text_column(names, sample)
    if column in names:
        return column
    raise ConfigError(f"{name} has no column {column!r}, which the run was trained on; name another with --text COLUMN")


def _label_column(run: Trained, sample: Chunk, text: str, name: str) -> str:
    """The column with the labels if none was named: the one that was trained on, or an obvious one."""
    names = list(sample.columns)
    trained = run.record.columns.get("label")
    column = trained if trained in names else guess_label_column(names, sample, text)
    if column is None:
        raise DataError(f"{name} has no column that looks like labels; name it with --label COLUMN")
    return str(column)


def _rounded(values: np.ndarray) -> list[float]:
    return [round(float(value), 6) for value in values]
