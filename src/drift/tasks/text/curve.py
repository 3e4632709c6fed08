"""Accuracy on a table of texts against the number of its labels."""

from typing import Any

import numpy as np

from drift.data.text_tables import choose_columns, read_texts
from drift.errors import LabelError
from drift.models.embedding import Embedder
from drift.quality.curves import FOLDS, REPEATS, Curve, learning_curve
from drift.tasks.parts import CheckOptions


def text_curve(source: Any, options: CheckOptions) -> Curve:
    """The curve of a logistic regression on the vectors of the labelled texts."""
    columns = choose_columns(source, text=options.column, label=options.label, encoding=options.encoding)
    table = read_texts(source, columns, encoding=options.encoding)
    rows = [row for row, label in enumerate(table.labels) if label is not None]
    if not rows:
        raise LabelError(f"{table.name}: none of the {len(table)} rows has a label; name their column with --label")
    classes = sorted({label for label in table.labels if label is not None})
    codes = np.array([classes.index(label) for row in rows if (label := table.labels[row]) is not None])
    texts = table.texts.select(rows)["text"]
    embedder = Embedder.of(options.encoder, max_length=options.max_length)
    vectors = np.asarray(embedder.embed(texts, progress=options.progress).vectors)
    with options.progress("Training on parts of the labels", FOLDS * REPEATS) as tick:
        return learning_curve(vectors, codes, len(classes), name=table.name, seed=options.seed, tick=tick)
