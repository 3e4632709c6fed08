"""`drift.check`: what is suspicious in a table, before anything is trained on it."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.table_writer import TableWriter
from drift.data.tables import source_name
from drift.errors import ConfigError
from drift.quality.crossfit import judged
from drift.quality.findings import Finding, TableCheck, by_issue
from drift.quality.label_errors import find_label_errors
from drift.quality.neighbours import nearest, outliers
from drift.runs.feature_vectors import labeled_vectors
from drift.tasks import Task, find_task
from drift.tasks.parts import CheckOptions
from drift.training.progress import progress

COLUMNS = ("issue", "row", "label", "suggested", "score", "others", "detail", "text")  # of the table that is written
FOLDS = 5


def check(
    table: Any,
    labels: Any = None,
    *,
    test: Any = None,
    out: str | Path | None = None,
    page: str | Path | None = None,
    task: str | type[Task] = "text",
    text: str | None = None,
    label: str | None = None,
    encoder: str = "default",
    max_length: int = 256,
    encoding: str = "utf-8",
    spreadsheet: bool = False,
    seed: int = 0,
    quiet: bool = False,
) -> TableCheck:
    """Find what is suspicious in a table: wrong labels, copies, outliers, empty and truncated texts, other languages.

    Parameters
    ----------
    table : path, DataFrame, Dataset or array
        Texts or tagged sentences, in the forms that `fit` takes; or feature vectors of shape (n, D), with `labels`.
    labels : array-like, default=None
        Labels of feature vectors; -1, None and NaN are unlabelled. Labels of tables are in a column.
    test : as table, default=None
        Another table: rows of `table` that are copies of its rows are reported.
    out : path, default=None
        Also write the findings to this table, one row per finding.
    page : path, default=None
        Also write them as an HTML page.
    task : {"text", "tokens"} or class, default="text"
        One label per text, or tagged sentences.
    text, label : str, default=None
        Columns with texts (or words) and labels; obvious ones are recognised.
    encoder : str, default="default"
        Encoder of texts, by name or folder; the vectors are cached.
    max_length : int, default=256
        Tokens of a text that the encoder reads.
    encoding : str, default="utf-8"
        Encoding of text files.
    spreadsheet : bool, default=False
        Write CSV in which no text can become a formula in a spreadsheet program; it is read back unchanged.
    seed : int, default=0
        Seed of the folds.
    quiet : bool, default=False
        Show no progress bars.

    Returns
    -------
    TableCheck
        With `findings`, a list with row, issue, label, suggested label and more; `found`, their numbers; `joint`, the
        estimated number of labels by label and true class.
    """
    options = CheckOptions(text, label, test, encoder, max_length, encoding, seed, partial(progress, shown=not quiet))
    # First, so that a wrong name fails before the work.
    writer = None if out is None else TableWriter(out, spreadsheet=spreadsheet)
    if isinstance(table, np.ndarray) or labels is not None:
        checked = _check_vectors(table, labels, options)
    else:
        checked = find_task(task).check(table, options)
    if writer is not None:
        with writer:
            writer.write({name: [getattr(finding, name) for finding in checked.findings] for name in COLUMNS})
    if page is not None:
        from drift.runs.check_page import write_check_page

        write_check_page(Path(page), checked)
    return checked


def _check_vectors(vectors: Any, labels: Any, options: CheckOptions) -> TableCheck:
    """Feature vectors: suspected wrong labels, equal rows and outliers."""
    if options.test is not None:
        raise ConfigError("test is for tables of texts and sentences; leave it out with feature vectors")
    rows, encoded = labeled_vectors(vectors, labels, "check")
    names = [str(name) for name in encoded.classes.tolist()]
    given = [None if code < 0 else names[code] for code in encoded.codes]
    known = np.flatnonzero(encoded.labeled)
    with options.progress("Judging labels", FOLDS) as tick:
        probabilities = judged(
            rows[known] / np.where(rows.std(0) > 0, rows.std(0), 1),
            encoded.codes[known],
            len(names),
            seed=options.seed,
            tick=tick,
        )
    errors = find_label_errors(encoded.codes[known], probabilities)
    findings = [
        Finding(int(known[place]) + 1, "label", "", given[known[place]], names[better], round(float(margin), 4))
        for place, better, margin in zip(errors.rows, errors.suggested, errors.margin, strict=True)
    ]
    scale = rows.std(0)
    near = nearest((rows - rows.mean(0)) / np.where(scale > 0, scale, 1))
    findings += _equal_rows(rows, given)
    far, cosine = outliers(near)
    findings += [
        Finding(int(row) + 1, "outlier", "", given[row], score=round(1 - float(mean), 4))
        for row, mean in zip(far, cosine, strict=True)
    ]
    counts = np.bincount(encoded.codes[known], minlength=len(names)).tolist()
    return TableCheck(
        source_name(vectors), "rows", len(rows), len(known), names, counts, by_issue(findings), errors.joint
    )


def _equal_rows(rows: np.ndarray, labels: list[str | None]) -> list[Finding]:
    """Rows that are equal to an earlier one, or to any with another label."""
    groups: dict[bytes, list[int]] = {}
    for row, values in enumerate(rows):
        groups.setdefault(values.tobytes(), []).append(row)
    found = []
    for group in groups.values():
        different = len({labels[row] for row in group} - {None}) > 1
        for row in group if different else group[1:]:
            others = ", ".join(str(other + 1) for other in group if other != row)
            found.append(Finding(row + 1, "conflict" if different else "duplicate", "", labels[row], others=others))
    return found
