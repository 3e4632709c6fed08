"""`drift.curve`: would more labels help?"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.tables import source_name
from drift.errors import FileError
from drift.quality.curves import FOLDS, REPEATS, Curve, learning_curve
from drift.runs.feature_vectors import labeled_vectors
from drift.tasks import Task, find_task
from drift.tasks.parts import CheckOptions
from drift.training.progress import progress

FORMATS = (".png", ".svg", ".pdf")
STEPS = 50  # of the drawn line


def curve(
    table: Any,
    labels: Any = None,
    *,
    out: str | Path | None = None,
    task: str | type[Task] = "text",
    text: str | None = None,
    label: str | None = None,
    encoder: str = "default",
    max_length: int = 256,
    encoding: str = "utf-8",
    seed: int = 0,
    quiet: bool = False,
) -> Curve:
    """Accuracy against the number of labels, extrapolated: would more labels help?

    Logistic regressions are trained on parts of the table's own labels and scored on others; no test set is needed.
    Unlabelled rows are not used, from which `drift.fit` gains most where labels are few: at the left of the curve.

    Parameters
    ----------
    table : path, DataFrame, Dataset or array
        Labelled texts, in the forms that `fit` takes; or feature vectors of shape (n, D), with `labels`.
    labels : array-like, default=None
        Labels of feature vectors; -1, None and NaN are unlabelled.
    out : path, default=None
        Also draw the curve: .png, .svg or .pdf.
    task : {"text"} or class, default="text"
        One label per text.
    text, label : str, default=None
        Columns; obvious ones are recognised.
    encoder : str, default="default"
        Encoder of texts, by name or folder; the vectors are cached.
    max_length : int, default=256
        Tokens of a text that the encoder reads.
    encoding : str, default="utf-8"
        Encoding of text files.
    seed : int, default=0
        Seed of folds and orders.
    quiet : bool, default=False
        Show no progress bars.

    Returns
    -------
    Curve
        With `points` (labels, accuracy, low and high), `gain` of twice as many labels, and `verdict`.
    """
    if out is not None and Path(out).suffix.lower() not in FORMATS:
        raise FileError(f"{out} is not a picture; give a name that ends in {', '.join(FORMATS)}")
    options = CheckOptions(text, label, None, encoder, max_length, encoding, seed, partial(progress, shown=not quiet))
    if isinstance(table, np.ndarray) or labels is not None:
        drawn = _of_vectors(table, labels, options)
    else:
        drawn = find_task(task).curve(table, options)
    if out is not None:
        _draw(Path(out), drawn)
    return drawn


def _of_vectors(vectors: Any, labels: Any, options: CheckOptions) -> Curve:
    rows, encoded = labeled_vectors(vectors, labels, "curve")
    known, name = encoded.labeled, source_name(vectors)
    with options.progress("Training on parts of the labels", FOLDS * REPEATS) as tick:
        return learning_curve(
            rows[known], encoded.codes[known], len(encoded.classes), name=name, seed=options.seed, tick=tick
        )


def _draw(path: Path, drawn: Curve) -> None:
    from drift.report.curve_figure import write_curve

    points = [(each.labels, each.accuracy, each.low, each.high, each.measured) for each in drawn.points]
    labels = np.geomspace(points[0][0], points[-1][0], STEPS)
    write_curve(path, points, [(m, float(1 - drawn.law.error(m))) for m in labels], drawn.name)
