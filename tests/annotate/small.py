"""Texts of two or three groups whose vectors are clusters: sessions that need no encoder and take a moment."""

from typing import Any

import numpy as np

import drift

CLASSES = ["bug", "praise", "question"]


def clusters(
    rows: int = 90, *, seed: int = 0, groups: int = 3, width: int = 8
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Texts, vectors and class indices."""
    generator = np.random.default_rng(seed)
    codes = generator.integers(groups, size=rows)
    vectors = 3 * np.eye(width)[codes] + generator.normal(size=(rows, width))
    return [f"{CLASSES[code]} number {row}" for row, code in enumerate(codes)], vectors.astype(np.float32), codes


def session(rows: int = 90, **options: Any) -> tuple[drift.Annotation, np.ndarray]:
    """A session, and the class index of every text."""
    texts, vectors, codes = clusters(rows)
    return drift.Annotation(texts, CLASSES, vectors=vectors, heads=5, **options), codes


def answer(opened: drift.Annotation, codes: np.ndarray, count: int, client: str = "") -> list[int]:
    """Label so many texts as a person who is never wrong; returns their rows."""
    rows = []
    for _ in range(count):
        question = opened.next(client)
        assert question is not None
        opened.label(question.row, CLASSES[codes[question.row]])
        rows.append(question.row)
    return rows
