"""Scores of predictions, between 0 and 1."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.metrics import f1_score, precision_recall_fscore_support

from drift.tasks.calibration import calibration_error

CONFIDENCE = 0.95
CLASS_MEASURES = {"accuracy": "accuracy", "macro_f1": "macro-F1"}


def classification_scores(probabilities: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Accuracy and macro-F1. probabilities: `(n, C)`; labels: `(n,)` class indices."""
    predicted = probabilities.argmax(-1)
    return {
        "accuracy": float((predicted == labels).mean()),
        "macro_f1": float(f1_score(labels, predicted, average="macro", zero_division=0)),
    }


def evaluation_scores(
    probabilities: np.ndarray, labels: np.ndarray, classes: Sequence[str], abstain_below: float = 0.0
) -> dict[str, Any]:
    """Accuracy with its interval, macro-F1, calibration error, and scores by class.

    probabilities: `(n, C)`. labels: `(n,)` class indices; C or more: a class that training lacked.

    With `abstain_below` also `covered`, the share of rows with at least this confidence, and their accuracy.
    """
    scores: dict[str, Any] = dict(classification_scores(probabilities, labels))
    scores["interval"] = wilson_interval(scores["accuracy"], len(labels))
    scores["by_class"] = scores_by_class(probabilities.argmax(-1), labels, classes)
    scores["calibration_error"] = calibration_error(probabilities, labels)
    if abstain_below:
        sure, right = probabilities.max(-1) >= abstain_below, probabilities.argmax(-1) == labels
        scores["covered"] = float(sure.mean())
        scores["accuracy_where_sure"] = float(right[sure].mean()) if sure.any() else None
    return scores


def scores_by_class(predicted: np.ndarray, labels: np.ndarray, classes: Sequence[str]) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of each class, and its number of rows as `true`. predicted, labels: `(n,)`."""
    codes = np.arange(len(classes))
    by_score = precision_recall_fscore_support(labels, predicted, labels=codes, zero_division=0.0)
    return {
        name: {"f1": float(f1), "precision": float(precision), "recall": float(recall), "true": int(true)}
        for name, precision, recall, f1, true in zip(classes, *by_score, strict=True)
    }


def wilson_interval(right: float, rows: float) -> tuple[float, float]:
    """The 95 % interval of a share, after Wilson (1927). right: the share that was observed. rows: of how many."""
    z = float(norm.ppf(0.5 + CONFIDENCE / 2))
    center = (right + z * z / (2 * rows)) / (1 + z * z / rows)
    half = z / (1 + z * z / rows) * np.sqrt(right * (1 - right) / rows + z * z / (4 * rows * rows))
    return max(0.0, float(center - half)), min(1.0, float(center + half))


def mean_and_spread(scores: Sequence[float] | np.ndarray) -> str:
    """Mean and standard deviation in percent: "93.53 ± 6.07"; a single score has no deviation."""
    deviation = f" ± {100 * np.std(scores, ddof=1):.2f}" if len(scores) > 1 else ""
    return f"{100 * np.mean(scores):.2f}{deviation}"
