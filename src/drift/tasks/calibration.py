"""Probabilities that mean what they say: one temperature for all logits, and how far off they were before and after."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

BINS = 15
LIMITS = (0.05, 20.0)


def fit_temperature(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """The T for which softmax(log p / T) makes these labels likeliest. probabilities: `(n, C)`; labels: `(n,)`.

    One more row of no class in particular is counted, as in Platt's scaling: else a few rows that are all right would
    make every probability 0 or 1.
    """
    rows = np.arange(len(labels))

    def surprise(log_temperature: float) -> float:
        log_q = rescaled(probabilities, float(np.exp(log_temperature)))
        return -float(log_q[rows, labels].sum() + log_q.mean())

    found = minimize_scalar(surprise, bounds=(np.log(LIMITS[0]), np.log(LIMITS[1])), method="bounded")
    return float(np.exp(found.x))


def rescaled(probabilities: np.ndarray, temperature: float) -> np.ndarray:
    """log softmax(log p / T), row by row."""
    smallest = np.finfo(np.float32).tiny  # a float32 that rounded to 0 was no larger
    log_p = np.log(np.maximum(probabilities.astype(np.float64), smallest))
    return np.asarray(log_softmax(log_p / temperature, axis=-1))


def reliability(probabilities: np.ndarray, labels: np.ndarray) -> list[dict[str, float]]:
    """`rows`, mean `confidence` and `accuracy` of each of 15 bins of equal confidence that has rows."""
    confidence, right = probabilities.max(-1), probabilities.argmax(-1) == labels
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    return [
        {
            "rows": int((bins == place).sum()),
            "confidence": float(confidence[bins == place].mean()),
            "accuracy": float(right[bins == place].mean()),
        }
        for place in np.unique(bins)
    ]


def calibration_error(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Expected calibration error: Σ_bins share of rows · |accuracy - mean confidence|."""
    bins = reliability(probabilities, labels)
    return sum(each["rows"] * abs(each["accuracy"] - each["confidence"]) for each in bins) / len(labels)
