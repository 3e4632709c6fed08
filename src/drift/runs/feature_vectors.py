"""Feature vectors with labels, in place of a table, for `drift.check` and `drift.curve`."""

from typing import Any

import numpy as np

from drift.data.labels import Encoded, encode_labels
from drift.errors import ConfigError, DataError


def labeled_vectors(vectors: Any, labels: Any, function: str) -> tuple[np.ndarray, Encoded]:
    """Feature vectors `(n, D)` in float64, and their labels. function: that the user called, for messages."""
    if labels is None:
        raise ConfigError(f"feature vectors were given without labels; give {function}(X, y)")
    rows: np.ndarray = np.asarray(vectors, dtype=np.float64)
    encoded = encode_labels(labels)
    if rows.ndim != 2 or len(rows) != len(encoded.codes):
        raise DataError(f"vectors are {rows.shape}, there are {len(encoded.codes)} labels; give (n, D) and n labels")
    if not np.isfinite(rows).all():
        raise DataError("a feature is missing or not finite; fill it in")
    return rows, encoded
