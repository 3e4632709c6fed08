"""What `drift.check` and `drift.curve` share: options, and tables that are feature vectors with labels."""

from functools import partial
from typing import Any

import numpy as np

from drift.data.labels import Encoded, encode_labels
from drift.errors import ConfigError, DataError
from drift.tasks.parts import CheckOptions
from drift.training.progress import progress

FEWEST_TOKENS = 3


def table_options(
    *,
    text: str | None,
    label: str | None,
    encoder: str,
    max_length: int,
    encoding: str,
    seed: int,
    quiet: bool,
    test: Any = None,
) -> CheckOptions:
    """The options as tasks take them; ConfigError if one is wrong."""
    if max_length < FEWEST_TOKENS:
        raise ConfigError(f"max_length is {max_length}; give at least {FEWEST_TOKENS} tokens")
    return CheckOptions(text, label, test, encoder, max_length, encoding, seed, partial(progress, shown=not quiet))


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
