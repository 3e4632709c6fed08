"""Use a trained run: open it, predict tables of any size in constant memory, and score it on labelled ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.columns import find_column, guess_label_column, guess_text_column
from drift.data.table_writer import TableWriter, with_columns
from drift.data.tables import Chunk, read_chunks, source_name
from drift.data.text_tables import label_of, text_of
from drift.errors import ConfigError, DataError, FileError, LabelError
from drift.runs.result import MODEL, Run
from drift.tasks.calibration import calibration_error
from drift.tasks.nodes.model import NodeModel
from drift.tasks.nodes.predict import predict_nodes
from drift.tasks.scoring import classification_scores
from drift.tasks.text.model import TextModel
from drift.tasks.tokens.model import TokenModel
from drift.tasks.tokens.predict import evaluate_tokens, predict_tokens
from drift.training.run_folder import METRICS, RunFolder

ROWS_PER_CHUNK = 512  # rows that are predicted at a time


def load(run: str | Path, *, model: str | None = None) -> Run:
    """Open the trained classifier in a run's folder.

    model: the function that makes it, named as for `fit`, if it is not one of ours: nobody's code is run unasked.
    """
    folder = RunFolder(run)
    metrics = folder.read_json(METRICS)
    if not isinstance(metrics, dict):
        raise FileError(f"{folder.path / METRICS} is not what a run writes; copy it again")
    kind: Any = {"tokens": TokenModel, "nodes": NodeModel}.get(str(metrics.get("task")), TextModel)
    opened = kind.load(folder.path / MODEL)
    if model is not None and not isinstance(opened, NodeModel):
        raise ConfigError(f"model={model}: only a model of nodes is made by a function; leave it out")
    opened = opened if model is None else opened.made_by(model)
    return Run(opened, metrics, folder.path, metrics.get("notes", []))


@dataclass(frozen=True)
class Predicted:
    """One piece of a table with its predictions. probabilities: `(n, C)`; codes: the most likely class of each row."""

    chunk: Chunk
    probabilities: np.ndarray

    @property
    def codes(self) -> np.ndarray:
        return np.asarray(self.probabilities.argmax(-1))

    @property
    def confidence(self) -> np.ndarray:
        return np.asarray(self.probabilities.max(-1))


def predict(
    run: Run | str | Path,
    source: Any,
    out: str | Path | None = None,
    *,
    text: str | None = None,
    edges: str | Path | None = None,
    abstain_below: float = 0.0,
    encoding: str = "utf-8",
    tick: Callable[[], None] = lambda: None,
) -> list[Any] | None:
    """Label every row of a table: a list of labels, or a new table `out` in the same row order.

    The new table has every column of the old one, and `predicted`, `confidence` and a `p_CLASS` for each class. Rows
    whose confidence is below `abstain_below` get no label. Sentences get tags and entities instead: see
    `predict_tokens`; nodes of a graph a table of their own: see `predict_nodes`, also for edges. text: the column with
    the texts, or words. tick: called after every piece.
    """
    opened = run if isinstance(run, Run) else load(run)
    if isinstance(opened.model, NodeModel):
        return predict_nodes(opened, source, out, edges=edges, abstain_below=abstain_below)
    if isinstance(opened.model, TokenModel):
        return predict_tokens(
            opened, source, out, column=text, abstain_below=abstain_below, encoding=encoding, tick=tick
        )
    pieces = predictions(opened, source, text, encoding)
    if out is None:
        found: list[str | None] = []
        for piece in pieces:
            found += _labels(opened, piece, abstain_below)
            tick()
        return found
    with TableWriter(out) as writer:
        for piece in pieces:
            added: dict[str, list[Any]] = {
                "predicted": _labels(opened, piece, abstain_below),
                "confidence": _rounded(piece.confidence),
            }
            added |= {f"p_{name}": _rounded(piece.probabilities[:, c]) for c, name in enumerate(opened.classes)}
            writer.write(with_columns(piece.chunk.columns, added))
            tick()
    return None


def evaluate(
    run: Run | str | Path,
    source: Any,
    *,
    text: str | None = None,
    label: str | None = None,
    abstain_below: float = 0.0,
    encoding: str = "utf-8",
    tick: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Scores on the labelled rows of a table: accuracy, macro-F1, calibration error, and the rows they are of.

    Of sentences: F1, precision and recall of entities, by type too, and accuracy of words.
    """
    opened = run if isinstance(run, Run) else load(run)
    if isinstance(opened.model, TokenModel):
        return evaluate_tokens(opened, source, column=text, label=label, encoding=encoding)
    if isinstance(opened.model, NodeModel):
        raise ConfigError("the run classifies nodes; its test nodes were scored when it ended: see its metrics.json")
    place = {name: code for code, name in enumerate(opened.classes)}
    name = source_name(source)
    truth: list[int] = []
    kept: list[np.ndarray] = []
    rows = 0
    for piece in predictions(opened, source, text, encoding):
        columns = piece.chunk.columns
        if label is None:
            label = stored(opened, "label") if stored(opened, "label") in columns else None
            label = label or guess_label_column(list(columns), piece.chunk, text or "")
            if label is None:
                raise DataError(f"{name} has no column that looks like labels; name it with --label COLUMN")
        for row, value in enumerate(columns[find_column(label, list(columns), name)]):
            wanted = label_of(value)
            if wanted is None:
                continue
            if wanted not in place:
                raise LabelError(
                    f"{name}, row {piece.chunk.first + row + 1}: label {wanted!r} is not one of the model's classes"
                    f" ({', '.join(opened.classes)}); fix the row or leave it blank"
                )
            truth.append(place[wanted])
            kept.append(piece.probabilities[row])
        rows += len(piece.chunk)
        tick()
    if not truth:
        raise LabelError(f"{name}: none of the {rows} rows has a label to score against")
    probabilities, labels = np.stack(kept), np.array(truth)
    sure = probabilities.max(-1) >= abstain_below
    scores: dict[str, Any] = {"rows": rows, "labeled_rows": len(labels), "label": label}
    scores |= classification_scores(probabilities, labels)
    scores["calibration_error"] = calibration_error(probabilities, labels)
    if abstain_below:
        right = probabilities.argmax(-1) == labels
        scores["covered"] = float(sure.mean())
        scores["accuracy_where_sure"] = float(right[sure].mean()) if sure.any() else None
    return scores


def predictions(run: Run, source: Any, text: str | None, encoding: str) -> Iterator[Predicted]:
    """A table piece by piece, with what the run says of each row."""
    name = source_name(source)
    column = text
    for chunk in read_chunks(source, size=ROWS_PER_CHUNK, encoding=encoding):
        names = list(chunk.columns)
        column = column or text_column(run, chunk, name)
        texts = chunk.columns[find_column(column, names, name)]
        found = run.predict_proba([text_of(value, name, chunk.first + row) for row, value in enumerate(texts)])
        yield Predicted(chunk, found)


def text_column(run: Run, sample: Chunk, name: str) -> str:
    """The column with the texts where none was named: the one trained on. name: of the table."""
    names = list(sample.columns)
    column = stored(run, "text") or guess_text_column(names, sample)
    if column in names:
        return column
    raise ConfigError(f"{name} has no column {column!r}, which the run was trained on; name another with --text COLUMN")


def stored(run: Run, name: str) -> str | None:
    """The column that was trained on, named or found: "text" or "label"; None if there was none."""
    found: str | None = run.metrics.get("columns", {}).get(name)
    return found


def _labels(run: Run, piece: Predicted, abstain_below: float) -> list[str | None]:
    sure = piece.confidence >= abstain_below
    return [run.classes[code] if kept else None for code, kept in zip(piece.codes, sure, strict=True)]


def _rounded(values: np.ndarray) -> list[float]:
    return [round(float(value), 6) for value in values]
