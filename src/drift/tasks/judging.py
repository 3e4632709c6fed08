"""How the kept classifier does where labels are known: confusions, calibration, mistakes; and how weak labels do."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from drift.data.labels import UNLABELED
from drift.tasks.calibration import calibration_error, reliability, rescaled
from drift.tasks.text.data import LabeledTexts
from drift.training.flips import Flips
from drift.weak.diagnostics import Share

MISTAKES, EXCERPT = 10, 300  # wrong rows that are kept to show, and characters of each


def judge(part: LabeledTexts, probabilities: np.ndarray, temperature: float, classes: list[str]) -> dict[str, Any]:
    """Confusions, calibration before and after the temperature, and the rows it is surest of and wrong on.

    probabilities: `(n, C)`, before the temperature.
    """
    after, labels = np.exp(rescaled(probabilities, temperature)), part.codes
    predicted = probabilities.argmax(-1)
    wrong = np.flatnonzero(predicted != labels)
    surest = wrong[np.argsort(-after[wrong].max(-1), kind="stable")][:MISTAKES]
    mistakes = [
        {
            "text": excerpt(part.texts[int(row)]["text"]),
            "label": classes[labels[row]],
            "predicted": classes[predicted[row]],
            "confidence": float(after[row].max()),
        }
        for row in surest
    ]
    return {**judged_classes(probabilities, labels, temperature, classes), "mistakes": mistakes}


def judged_classes(
    probabilities: np.ndarray, labels: np.ndarray, temperature: float, classes: list[str]
) -> dict[str, Any]:
    """Confusions, and calibration before and after the temperature."""
    confusion = np.zeros((len(classes), len(classes)), dtype=int)  # true class, predicted class
    np.add.at(confusion, (labels, probabilities.argmax(-1)), 1)
    return {"confusion": confusion.tolist(), "calibration": judged_confidence(probabilities, labels, temperature)}


def judged_confidence(probabilities: np.ndarray, labels: np.ndarray, temperature: float) -> dict[str, Any]:
    """Calibration before and after the temperature."""
    after = np.exp(rescaled(probabilities, temperature))
    return {
        "temperature": temperature,
        "error_before": calibration_error(probabilities, labels),
        "error_after": calibration_error(after, labels),
        "bins_before": reliability(probabilities, labels),
        "bins_after": reliability(after, labels),
    }


def weak_label_shares(weak: np.ndarray, gold: np.ndarray) -> dict[str, Any]:
    """How many texts have a weak label, and how many of those with a gold one too are right."""
    labeled, judged = weak != UNLABELED, (weak != UNLABELED) & (gold != UNLABELED)
    return {
        "labeled": asdict(Share(int(labeled.sum()), len(weak))),
        "accuracy": asdict(Share(int((weak == gold)[judged].sum()), int(judged.sum()))),
    }


def changes(flips: Flips, classes: list[str], shown: Callable[[int], str]) -> dict[str, Any]:
    """How many unlabelled targets changed their class between θinit and the end, how many were right, and a few of them.

    flips: of one trial. shown: what a reader sees of a thing.
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
                "text": shown(int(flips.targets[place])),
                "before": classes[flips.before[place]],
                "after": classes[flips.after[place]],
                "label": None if gold[place] == UNLABELED else classes[gold[place]],
            }
            for place in changed[:MISTAKES]
        ],
    }


def excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT else f"{line[:EXCERPT]}…"
