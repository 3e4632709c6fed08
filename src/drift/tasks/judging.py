"""Judge the kept model on known labels: confusion matrix, calibration, mistakes and changes; and weak labels."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from drift.data.labels import UNLABELED
from drift.tasks.calibration import calibration_error, reliability, rescaled
from drift.training.flips import Flips
from drift.weak.diagnostics import Share

EXAMPLES = 10  # rows that are kept to show
EXCERPT = 300  # characters of each


def judge_classes(
    probabilities: np.ndarray, labels: np.ndarray, temperature: float, classes: Sequence[str]
) -> dict[str, Any]:
    """Confusion matrix, and calibration before and after the temperature. probabilities: `(n, C)`; labels: `(n,)`."""
    confusion = confusion_matrix(labels, probabilities.argmax(-1), labels=np.arange(len(classes)))
    return {
        "confusion": confusion.tolist(),  # true class, predicted class
        "calibration": judge_confidence(probabilities, labels, temperature),
    }


def judge_confidence(probabilities: np.ndarray, labels: np.ndarray, temperature: float) -> dict[str, Any]:
    """Calibration before and after the temperature."""
    after = np.exp(rescaled(probabilities, temperature))
    return {
        "temperature": temperature,
        "error_before": calibration_error(probabilities, labels),
        "error_after": calibration_error(after, labels),
        "bins_before": reliability(probabilities, labels),
        "bins_after": reliability(after, labels),
    }


def confident_mistakes(
    probabilities: np.ndarray,
    labels: np.ndarray,
    temperature: float,
    classes: Sequence[str],
    describe: Callable[[int], str],
) -> list[dict[str, Any]]:
    """The misclassified rows with the highest confidence. describe: returns a row as text for a reader."""
    after = np.exp(rescaled(probabilities, temperature))
    predicted = probabilities.argmax(-1)
    wrong = np.flatnonzero(predicted != labels)
    most_confident = wrong[np.argsort(-after[wrong].max(-1), kind="stable")][:EXAMPLES]
    return [
        {
            "text": describe(int(row)),
            "label": classes[labels[row]],
            "predicted": classes[predicted[row]],
            "confidence": float(after[row].max()),
        }
        for row in most_confident
    ]


def weak_label_shares(weak: np.ndarray, gold: np.ndarray) -> dict[str, Any]:
    """The share of rows with a weak label, and the share of right ones among those that also have a gold label."""
    labeled, judged = weak != UNLABELED, (weak != UNLABELED) & (gold != UNLABELED)
    return {
        "labeled": asdict(Share(int(labeled.sum()), len(weak))),
        "accuracy": asdict(Share(int((weak == gold)[judged].sum()), int(judged.sum()))),
    }


def judge_changes(flips: Flips, classes: Sequence[str], describe: Callable[[int], str]) -> dict[str, Any]:
    """How many watched rows changed class between θinit and the end, how many of them were right, and examples.

    flips: of one trial. describe: returns a row, word or node as text for a reader.
    """
    changed = np.flatnonzero(flips.before != flips.after)
    gold = np.full(len(flips.targets), UNLABELED) if flips.gold is None else flips.gold
    known = changed[gold[changed] != UNLABELED]
    return {
        "watched": len(flips.targets),
        "changed": len(changed),
        "known": len(known),
        "right_before": int((flips.before == gold)[known].sum()),
        "right_after": int((flips.after == gold)[known].sum()),
        "examples": [
            {
                "text": describe(int(flips.targets[row])),
                "before": classes[flips.before[row]],
                "after": classes[flips.after[row]],
                "label": None if gold[row] == UNLABELED else classes[gold[row]],
            }
            for row in changed[:EXAMPLES]
        ],
    }


def excerpt(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT else f"{line[:EXCERPT]}…"
