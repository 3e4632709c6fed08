"""How good predictions are, as shares: what a dev set chooses by, and what is reported."""

import numpy as np
from sklearn.metrics import f1_score


def classification_scores(probabilities: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Accuracy and macro-F1. probabilities: `(n, C)`; labels: `(n,)` class indices."""
    predicted = probabilities.argmax(-1)
    return {
        "accuracy": float((predicted == labels).mean()),
        "macro_f1": float(f1_score(labels, predicted, average="macro", zero_division=0)),
    }
