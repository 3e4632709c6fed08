"""Random rows: those that keep their label where few are simulated, and those that a run takes of a large table."""

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


def some_rows(rows: int, wanted: int | None, *, seed: int) -> np.ndarray | None:
    """So many random row numbers, in random order; None for all rows as they are."""
    return None if wanted is None or wanted >= rows else np.random.default_rng(seed).permutation(rows)[:wanted]
