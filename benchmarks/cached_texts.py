"""Texts of real datasets with the vectors of the default encoder, which are computed once and cached."""

import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drift.models.embedding import Embedder

MAX_LENGTH = 256  # as in `drift fit` with a fixed encoder


@dataclass(frozen=True)
class Part:
    """Labelled texts. vectors: `(n, D)`. codes: class indices `(n,)`."""

    texts: list[str]
    vectors: np.ndarray
    codes: np.ndarray
    classes: list[str]


def rows_of(dataset: str, part: str, rows: int) -> list[dict[str, Any]]:
    """Random rows of a part of a dataset that have a gold label, always the same ones."""
    with gzip.open(Path(os.environ["DRIFT_DATA"], dataset, f"{part}.jsonl.gz"), "rt", encoding="utf-8") as file:
        labelled = [row for row in map(json.loads, file) if row["label"]]
    chosen = np.random.default_rng(0).permutation(len(labelled))[:rows]
    return [labelled[row] for row in chosen]


def texts_of(dataset: str, part: str, rows: int) -> tuple[list[str], list[str]]:
    """The texts of these rows, with their labels."""
    chosen = rows_of(dataset, part, rows)
    return [row["text"] for row in chosen], [row["label"] for row in chosen]


def embedded(dataset: str, part: str, rows: int) -> Part:
    """The same texts with their vectors."""
    texts, labels = texts_of(dataset, part, rows)
    classes = sorted(set(labels))
    codes = np.array([classes.index(label) for label in labels])
    return Part(texts, vectors_of(texts), codes, classes)


def vectors_of(texts: list[str]) -> np.ndarray:
    """The vectors of the default encoder, `(n, D)`; those that are not in the cache are computed and added to it."""
    embedder = Embedder("default", max_length=MAX_LENGTH, pool="auto", precision="auto")
    return np.array(embedder.embed(texts).vectors)
