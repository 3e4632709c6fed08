"""Sections of the page that runs with one class per row share."""

import numpy as np
from sklearn.metrics import precision_recall_fscore_support

from drift.report import figures
from drift.report.page import Section, Table
from drift.tasks.parts import Draw
from drift.tasks.record import ClassRecord
from drift.weak.diagnostics import Share

CONFUSIONS = 5  # pairs of classes that are listed
MOST_CLASSES_DRAWN = 25


def class_sections(record: ClassRecord, draw: Draw) -> list[Section]:
    """Precision, recall and F1 of each class, the most frequent confusions, and the confusion matrix."""
    if record.held_out is None or record.confusion is None:
        return []
    names, counts = record.classes, np.array(record.confusion)
    right, true, predicted = counts.diagonal(), counts.sum(1), counts.sum(0)
    classes = np.arange(len(names))
    truth, answer = np.repeat(classes, len(names)), np.tile(classes, len(names))
    f1 = precision_recall_fscore_support(
        truth, answer, labels=classes, sample_weight=counts.ravel(), zero_division=0.0
    )[2]
    rows = [
        [
            name,
            f"{true[c]:,}",
            str(Share(int(right[c]), int(predicted[c]))),
            str(Share(int(right[c]), int(true[c]))),
            f"{100 * f1[c]:.1f}",
        ]
        for c, name in enumerate(names)
    ]
    headings = ["class", "rows", "precision", "recall", "F1 (%)"]
    tables = [Table(headings, rows, f"On {record.held_out}, by true class")]
    wrong = counts - np.diag(right)
    pairs = [np.unravel_index(cell, wrong.shape) for cell in np.argsort(-wrong, axis=None)[:CONFUSIONS]]
    confused = [[names[t], names[p], f"{wrong[t, p]:,} of {true[t]:,}"] for t, p in pairs if wrong[t, p]]
    if confused:
        tables.append(Table(["true class", "predicted as", "rows"], confused, "Most frequent confusions"))
    pictures = []
    if len(names) <= MOST_CLASSES_DRAWN:
        caption = "Rows of each true class by predicted class, in the order of the table."
        pictures = [draw(figures.confusion(counts, names), "confusion", "Confusion matrix.", caption)]
    return [Section("Results per class", tables=tables, pictures=pictures)]
