"""How good predictions are, as shares: what a dev set chooses by, and what is reported."""

from collections.abc import Sequence

import numpy as np
from sklearn.metrics import f1_score


def classification_scores(probabilities: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Accuracy and macro-F1. probabilities: `(n, C)`; labels: `(n,)` class indices."""
    predicted = probabilities.argmax(-1)
    return {
        "accuracy": float((predicted == labels).mean()),
        "macro_f1": float(f1_score(labels, predicted, average="macro", zero_division=0)),
    }


def mean_and_spread(scores: Sequence[float] | np.ndarray) -> str:
    """Mean and standard deviation of shares, in percent: "93.53 ± 6.07"; of a single one, itself."""
    deviation = f" ± {100 * np.std(scores, ddof=1):.2f}" if len(scores) > 1 else ""
    return f"{100 * np.mean(scores):.2f}{deviation}"
