"""Calibration of probabilities: one temperature for all logits, and the calibration error."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

BINS = 15
LIMITS = (0.05, 20.0)  # of the temperature


def fit_temperature(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """The T that maximises the likelihood of labels under softmax(log p / T). probabilities: `(n, C)`; labels: `(n,)`.

    One row with equal shares of all classes is added, as in Platt scaling: without it, a few rows that are all right
    would push every probability to 0 or 1.
    """
    rows = np.arange(len(labels))

    def negative_log_likelihood(log_temperature: float) -> float:
        log_q = rescaled(probabilities, float(np.exp(log_temperature)))
        return -float(log_q[rows, labels].sum() + log_q.mean())

    bounds = np.log(LIMITS[0]), np.log(LIMITS[1])
    return float(np.exp(minimize_scalar(negative_log_likelihood, bounds=bounds, method="bounded").x))


def rescaled(probabilities: np.ndarray, temperature: float) -> np.ndarray:
    """log softmax(log p / T), row by row."""
    smallest = np.finfo(np.float32).tiny  # a float32 that rounded to 0 was no larger
    log_p = np.log(np.maximum(probabilities.astype(np.float64), smallest))
    return np.asarray(log_softmax(log_p / temperature, axis=-1))


def reliability(probabilities: np.ndarray, labels: np.ndarray) -> list[dict[str, float]]:
    """`rows`, mean `confidence` and `accuracy` of each bin of confidence: 15 of equal width, without empty ones."""
    confidence, right = probabilities.max(-1), probabilities.argmax(-1) == labels
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    return [
        {
            "rows": int((bins == bin_number).sum()),
            "confidence": float(confidence[bins == bin_number].mean()),
            "accuracy": float(right[bins == bin_number].mean()),
        }
        for bin_number in np.unique(bins)
    ]


def calibration_error(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Expected calibration error: Σ_bins share of rows · |accuracy - mean confidence|."""
    bins = reliability(probabilities, labels)
    return sum(each["rows"] * abs(each["accuracy"] - each["confidence"]) for each in bins) / len(labels)
