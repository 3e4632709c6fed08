"""Simulate few labels: choose which rows keep theirs."""

import numpy as np

from drift.errors import LabelError


def sample_per_class(labels: np.ndarray, n: int, *, seed: int) -> np.ndarray:
    """Row numbers of `n` random rows of each class, sorted. labels: `(rows,)`, none of them missing."""
    generator = np.random.default_rng(seed)
    chosen = []
    for kind in np.unique(labels):
        rows = np.flatnonzero(labels == kind)
        if len(rows) < n:
            raise LabelError(f"class {kind!r} has {len(rows)} rows, {n} were asked for; ask for fewer labels a class")
        chosen.append(generator.permutation(rows)[:n])
    return np.sort(np.concatenate(chosen))
