"""Copies and near-copies among texts: by a hash of their letters, then among nearest neighbours."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drift.quality.neighbours import Nearest

COSINE = 0.9  # of the encoder's vectors: pairs below it are not compared
ALIKE = 0.8  # cosine of character 4-grams, from which two texts count as near-copies
PAIRS_AT_ONCE = 4096
SPACE = re.compile(r"\W+")


@dataclass(frozen=True)
class Duplicates:
    """Groups of copies. group: a number per row, `(n,)`, -1 without copies; exact: whether a row has an exact copy."""

    group: np.ndarray
    exact: np.ndarray

    def groups(self) -> list[np.ndarray]:
        """The rows of each group, in order of their first rows."""
        members = np.flatnonzero(self.group >= 0)
        order = members[np.argsort(self.group[members], kind="stable")]
        return np.split(order, np.flatnonzero(np.diff(self.group[order])) + 1) if len(order) else []


def plain(text: str) -> str:
    """A text without case, punctuation and runs of spaces: copies that differ only in these are exact copies."""
    return SPACE.sub(" ", text.casefold()).strip()


def find_duplicates(texts: Sequence[str], near: Nearest | None = None) -> Duplicates:
    """Groups of rows whose texts are copies or near-copies. Empty texts are no copies of each other.

    near: nearest neighbours of the texts' vectors; without them only exact copies are found. Exact copies take linear
    time; near-copies are looked for only among neighbours with a cosine of at least `COSINE`.
    """
    parent = np.arange(len(texts))
    exact = np.zeros(len(texts), dtype=bool)
    first_with: dict[str, int] = {}
    for row, text in enumerate(texts):
        if key := plain(text):
            first = first_with.setdefault(key, row)
            if first != row:
                exact[[first, row]] = True
                parent[row] = first
    if near is not None and near.rows.size:
        for one, other in near_copies(texts, near):
            joined(parent, one, other)
    roots = np.array([_root(parent, row) for row in range(len(texts))], dtype=np.int64)
    sizes = np.bincount(roots, minlength=len(texts))
    group = np.full(len(texts), -1, dtype=np.int64)
    members = sizes[roots] > 1
    group[members] = np.unique(roots[members], return_inverse=True)[1]
    return Duplicates(group, exact)


def near_copies(texts: Sequence[str], near: Nearest) -> list[tuple[int, int]]:
    """Pairs of neighbours that share most of their character 4-grams."""
    rows, places = np.nonzero(near.cosine >= COSINE)
    others = near.rows[rows, places]
    pairs = np.unique(np.stack([np.minimum(rows, others), np.maximum(rows, others)], 1), axis=0)
    kept: list[tuple[int, int]] = []
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        part = pairs[start : start + PAIRS_AT_ONCE]
        alike = similarity(texts, part) >= ALIKE
        kept += [(int(one), int(other)) for one, other in part[alike]]
    return kept


def similarity(texts: Sequence[str], pairs: np.ndarray) -> np.ndarray:
    """The cosine of the character 4-grams of pairs of texts. pairs: row numbers `(m, 2)`."""
    rows, places = np.unique(pairs, return_inverse=True)
    grams = char_grams([plain(texts[int(row)]) for row in rows])
    places = places.reshape(-1, 2)
    product = grams[places[:, 0]].multiply(grams[places[:, 1]])
    return np.asarray(product.sum(1)).reshape(-1)


def char_grams(texts: Sequence[str]) -> Any:
    """Character 4-grams of texts as sparse vectors of length 1. Not every script puts spaces between words."""
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(analyzer="char", ngram_range=(4, 4), n_features=2**18, alternate_sign=False)
    return hashing.transform(texts)


def joined(parent: np.ndarray, one: int, other: int) -> None:
    """Union of two groups: the smaller row number is the root."""
    one, other = _root(parent, one), _root(parent, other)
    parent[max(one, other)] = min(one, other)


def _root(parent: np.ndarray, row: int) -> int:
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = int(parent[row])
    return row
