"""What `drift suggest` gives for every task: rows to label, and the table that a person fills in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drift.data.table_writer import with_columns
from drift.quality.duplicates import char_grams, plain
from drift.quality.selection import PER_ROW, POOL, Pool, spread_rows

ALIKE = 0.6  # cosine of character 4-grams: two papers on the same news item have about this, other pairs 0.03


@dataclass(frozen=True)
class Suggestion:
    """A row to label.

    row: counted from 1, as in messages. text: its content, for a reader. columns: the row as it is in the table.
    predicted: the most likely label, or the tags of a sentence. margin: how far it is ahead of the second. why: both
    with their probabilities. disagreement: the share of heads that predict another class, if heads are kept.
    """

    row: int
    text: str
    columns: dict[str, Any]
    predicted: Any
    confidence: float
    margin: float
    why: str
    disagreement: float | None = None


@dataclass(frozen=True)
class Candidate:
    """A row that may be suggested. doubt: in [0, 1]. vector: of the row; None if rows are compared by their letters."""

    suggestion: Suggestion
    doubt: float
    vector: np.ndarray | None = None


def new_pool(n: int, seed: int) -> Pool:
    """The pool for a choice of `n` rows; its memory does not depend on the length of the table."""
    return Pool(max(POOL, PER_ROW * n), seed)


def offer(pool: Pool, candidate: Candidate) -> None:
    """Offer a row; doubtful rows are more likely to be kept. Exact copies are kept once."""
    pool.add(candidate, candidate.doubt**2, plain(candidate.suggestion.text) or candidate.suggestion.row)


def choose(pool: Pool, n: int, seed: int, *, by_letters: bool = True) -> list[Suggestion]:
    """At most `n` rows of the pool. by_letters: leave out near-copies of chosen texts."""
    candidates: Sequence[Candidate] = pool.candidates()
    if not candidates:
        return []
    grams = char_grams([plain(each.suggestion.text) for each in candidates]) if by_letters else None

    def alike(row: int, chosen: list[int]) -> bool:
        return grams is not None and bool(chosen) and (grams[chosen] @ grams[row].T).max() >= ALIKE

    if any(each.vector is None for each in candidates):
        vectors: Any = _folded(
            grams if grams is not None else char_grams([each.suggestion.text for each in candidates])
        )
    else:
        vectors = np.stack([each.vector for each in candidates if each.vector is not None])
    doubts = np.array([each.doubt for each in candidates])
    return [candidates[row].suggestion for row in spread_rows(vectors, doubts, n, alike=alike, seed=seed)]


def _folded(grams: Any, width: int = 256) -> np.ndarray:
    """Sparse counts of letters as short dense vectors, by a random projection: k-means would be slow on the former."""
    from sklearn.random_projection import SparseRandomProjection

    return np.asarray(SparseRandomProjection(width, random_state=0, dense_output=True).fit_transform(grams))


def filled_in_table(chosen: Sequence[Suggestion], label: str) -> dict[str, list[Any]]:
    """The columns of the table to fill in: those of the old one, an empty column `label`, and predictions.

    `row` is the number of a row in the old table; `drift fit --labels` finds the row by it.
    """
    columns = {name: [each.columns[name] for each in chosen] for name in chosen[0].columns}
    if label not in columns:
        columns[label] = [None] * len(chosen)
    added: dict[str, list[Any]] = {
        "row": [each.row for each in chosen],
        "predicted": [each.predicted for each in chosen],
        "confidence": [round(each.confidence, 6) for each in chosen],
        "why": [each.why for each in chosen],
    }
    return with_columns(columns, added)
