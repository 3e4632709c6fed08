"""Scores of predictions, between 0 and 1."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.metrics import f1_score

from drift.tasks.calibration import calibration_error

CLASS_MEASURES = {"accuracy": "accuracy", "macro_f1": "macro-F1"}


def classification_scores(probabilities: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Accuracy and macro-F1. probabilities: `(n, C)`; labels: `(n,)` class indices."""
    predicted = probabilities.argmax(-1)
    return {
        "accuracy": float((predicted == labels).mean()),
        "macro_f1": float(f1_score(labels, predicted, average="macro", zero_division=0)),
    }


def evaluation_scores(probabilities: np.ndarray, labels: np.ndarray, abstain_below: float = 0.0) -> dict[str, Any]:
    """Accuracy, macro-F1 and calibration error. probabilities: `(n, C)`; labels: `(n,)` class indices.

    With `abstain_below` also `covered`, the share of rows with at least this confidence, and their accuracy.
    """
    scores: dict[str, Any] = dict(classification_scores(probabilities, labels))
    scores["calibration_error"] = calibration_error(probabilities, labels)
    if abstain_below:
        sure, right = probabilities.max(-1) >= abstain_below, probabilities.argmax(-1) == labels
        scores["covered"] = float(sure.mean())
        scores["accuracy_where_sure"] = float(right[sure].mean()) if sure.any() else None
    return scores


def mean_and_spread(scores: Sequence[float] | np.ndarray) -> str:
    """Mean and standard deviation in percent: "93.53 ± 6.07"; a single score has no deviation."""
    deviation = f" ± {100 * np.std(scores, ddof=1):.2f}" if len(scores) > 1 else ""
    return f"{100 * np.mean(scores):.2f}{deviation}"
