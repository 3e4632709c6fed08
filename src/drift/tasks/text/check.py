"""Check a table of texts: labels that are probably wrong, copies, outliers, and texts that a model cannot use."""

from contextlib import suppress
from typing import Any

import numpy as np

from drift.data.labels import UNLABELED
from drift.data.text_tables import TextColumns, TextTable, choose_columns, choose_held_out, read_texts
from drift.errors import ConfigError, DataError
from drift.models.embedding import Embedded, Embedder
from drift.quality.crossfit import VOTERS, judged
from drift.quality.findings import TableCheck, by_issue
from drift.quality.label_errors import LabelErrors, find_label_errors
from drift.quality.neighbours import ROWS, Nearest, nearest
from drift.quality.text_findings import (
    CheckedTexts,
    copy_findings,
    label_findings,
    outlier_findings,
    plain_findings,
)
from drift.tasks.parts import CheckOptions

NEIGHBOURS = 10  # among which copies are looked for, and whose similarity tells outliers
FEW = 3  # labels of a class, from which its labels can be judged: each fold must leave some to train on
FOLDS = 5


def check_texts(source: Any, options: CheckOptions) -> TableCheck:
    """Everything that is suspicious in a table of texts."""
    columns = choose_columns(source, text=options.column, label=options.label, encoding=options.encoding)
    table = read_texts(source, columns, encoding=options.encoding)
    if table.empty == len(table):
        raise DataError(
            f"{table.name}: column {columns.text!r} has no text in any row; name another with --text COLUMN"
        )
    notes = [f"columns taken: {', '.join(columns.guessed)}"] if columns.guessed else []
    test = None
    if options.test is not None:
        others = _test_columns(columns, options)
        test = read_texts(options.test, others, encoding=options.encoding)
        notes += others.notes
    texts = [*table.texts["text"], *(test.texts["text"] if test is not None else ())]
    labels = [*table.labels, *(test.labels if test is not None else ())]
    embedder = Embedder.of(options.encoder, max_length=options.max_length)
    embedded = embedder.embed(texts, progress=options.progress)
    data = CheckedTexts(texts, labels, len(table), _too_long(embedded), embedder.max_length)
    findings, usual = plain_findings(data)
    if usual is not None and usual != "English" and options.encoder == "default":
        notes.append(f"most texts are {usual}, and the default encoder is for English; name another with --encoder")
    with options.progress("Comparing texts", -(-len(texts) // ROWS)) as tick:
        near = nearest(embedded.vectors, k=VOTERS, tick=tick)
    findings += copy_findings(data, near.first(NEIGHBOURS)) + outlier_findings(data, near.first(NEIGHBOURS))
    classes = sorted({label for label in table.labels if label is not None})
    rows, errors, label_notes = _judged(table, embedded.vectors, near, classes, options)
    if errors is not None:
        findings = label_findings(data, rows, errors, classes) + findings
    counts = [table.labels.count(name) for name in classes]
    return TableCheck(
        table.name,
        "texts",
        len(table),
        sum(counts),
        classes,
        counts,
        by_issue(findings),
        None if errors is None else errors.joint,
        [*notes, *columns.notes, *label_notes, *_class_notes(classes, counts)],
    )


def _test_columns(columns: TextColumns, options: CheckOptions) -> TextColumns:
    """The columns of the test table, which may have no labels."""
    settings: dict[str, Any] = {"text": options.column, "encoding": options.encoding}
    if columns.label is not None:
        with suppress(ConfigError):
            return choose_held_out(options.test, columns, label=options.label, **settings)
    return choose_held_out(options.test, columns, need_labels=False, **settings)


def _too_long(embedded: Embedded) -> np.ndarray:
    if embedded.truncated_rows is None:
        return np.zeros(len(embedded.vectors), dtype=bool)
    return np.asarray(embedded.truncated_rows)


def _judged(
    table: TextTable, vectors: np.ndarray, near: Nearest, classes: list[str], options: CheckOptions
) -> tuple[np.ndarray, LabelErrors | None, list[str]]:
    """The rows whose labels can be judged, and which of these labels are suspected."""
    code_of = {name: code for code, name in enumerate(classes)}
    codes = np.array([UNLABELED if label is None else code_of[label] for label in table.labels], dtype=np.int64)
    counts = np.bincount(codes[codes != UNLABELED], minlength=len(classes))
    enough = {code for code, count in enumerate(counts) if count >= FEW}
    rows = np.flatnonzero([code in enough for code in codes])
    if len(enough) < 2:
        return rows, None, ["labels are not judged: that takes two classes with at least 3 labels each"]
    notes = [
        f"labels of {name!r} are not judged: there are {count}, and at least {FEW} are needed"
        for name, count in zip(classes, counts, strict=True)
        if 0 < count < FEW
    ]
    with options.progress("Judging labels", FOLDS) as tick:
        known = near if len(rows) == len(vectors) else None  # otherwise some neighbours have no label
        probabilities = judged(vectors[rows], codes[rows], len(classes), seed=options.seed, near=known, tick=tick)
    return rows, find_label_errors(codes[rows], probabilities), notes


def _class_notes(classes: list[str], counts: list[int]) -> list[str]:
    if not counts or min(counts) * 10 >= max(counts):
        return []
    rare, common = classes[int(np.argmin(counts))], classes[int(np.argmax(counts))]
    return [f"classes are skewed: {common!r} has {max(counts):,} labels, {rare!r} has {min(counts):,}"]
