"""Why a model predicts what it does: words that matter, and the nearest labelled rows."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from drift.data.files import atomic_file
from drift.errors import FileError
from drift.quality.neighbours import unit_rows

MOST_PIECES = 64  # of a text; of a longer one, neighbouring words are left out together
SMALLEST = 1e-6  # of a probability, so that its log-odds are finite


class Word(BaseModel):
    """Words that count for a prediction.

    text: the words. start, end: their characters in the text. effect: by how much the log-odds of the predicted class
    fall without them.
    """

    text: str
    start: int
    end: int
    effect: float


class Neighbor(BaseModel):
    """A labelled row. row: its number among the training rows, from 1. cosine: of its vector and that of the text."""

    row: int
    text: str
    label: str
    cosine: float


class Explanation(BaseModel):
    """Why a text gets its label. words, nearest: those that matter most come first."""

    text: str
    label: str
    confidence: float
    words: list[Word]
    nearest: list[Neighbor]

    def cells(self) -> tuple[str, str]:
        """The words, and the rows, each in one cell of a table."""
        words = "; ".join(f"{word.text} {word.effect:.2f}" for word in self.words)
        rows = "; ".join(f"{each.label} {each.cosine:.2f} (row {each.row}): {each.text}" for each in self.nearest)
        return words, rows


class _Rows(BaseModel):
    rows: list[int]
    texts: list[str]
    labels: list[str]


@dataclass(frozen=True)
class LabeledRows:
    """Rows that a model was trained on, with their vectors. vectors: `(n, D)`. rows: their numbers, from 1."""

    vectors: np.ndarray
    rows: Sequence[int]
    texts: Sequence[str]
    labels: Sequence[str]

    def save(self, file: Path) -> None:
        """Write them as safetensors, in half precision."""
        about = _Rows(rows=list(self.rows), texts=list(self.texts), labels=list(self.labels)).model_dump_json()
        with atomic_file(file) as aside:
            save_file({"vectors": np.ascontiguousarray(self.vectors, dtype=np.float16)}, aside, {"rows": about})

    @classmethod
    def load(cls, file: Path) -> "LabeledRows":
        try:
            with safe_open(file, "numpy") as opened:
                about = _Rows.model_validate(json.loads((opened.metadata() or {})["rows"]))
                vectors = np.asarray(opened.get_tensor("vectors"), dtype=np.float32)
        except (OSError, KeyError, ValueError, SafetensorError, ValidationError) as error:
            reason = " ".join(str(error).split())[:200]
            raise FileError(f"{file} cannot be read ({reason}); copy the run's folder again, or delete it") from None
        if vectors.ndim != 2 or not len(vectors) == len(about.rows) == len(about.texts) == len(about.labels):
            raise FileError(f"{file} has another number of vectors than of rows; copy the run's folder again")
        return cls(vectors, about.rows, about.texts, about.labels)

    def nearest(self, vectors: np.ndarray, count: int) -> list[list[Neighbor]]:
        """The labelled rows nearest to each vector `(m, D)`, by cosine."""
        if not count or not len(self.rows) or vectors.shape[1] != self.vectors.shape[1]:
            return [[] for _ in vectors]
        cosine = unit_rows(vectors) @ unit_rows(self.vectors).T
        order = np.argsort(-cosine, axis=1, kind="stable")[:, :count]
        return [
            [
                Neighbor(row=self.rows[c], text=self.texts[c], label=self.labels[c], cosine=round(float(own[c]), 4))
                for c in columns
            ]
            for own, columns in zip(cosine, order, strict=True)
        ]


def pieces(text: str, most: int = MOST_PIECES) -> list[tuple[int, int]]:
    """Characters of the words of a text, or of runs of neighbouring words, at most so many."""
    words = [match.span() for match in re.finditer(r"\w+(?:['’-]\w+)*", text)]
    size = -(-len(words) // most) if words else 1
    groups = [words[start : start + size] for start in range(0, len(words), size)]
    return [(group[0][0], group[-1][1]) for group in groups]


def occlusion(
    text: str, code: int, probability: float, predict_proba: Callable[[list[str]], Any], count: int
) -> list[Word]:
    """The words without which a text is less likely of its class, those that matter most first.

    code: of the class. probability: of this class for the whole text.
    """
    spans = pieces(text)
    if not count or not spans:
        return []
    without = predict_proba([text[:start] + text[end:] for start, end in spans])[:, code]
    effects = _log_odds(np.array(probability)) - _log_odds(without)
    order = [int(place) for place in np.argsort(-effects, kind="stable") if effects[place] > 0][:count]
    return [
        Word(text=text[slice(*spans[k])], start=spans[k][0], end=spans[k][1], effect=round(float(effects[k]), 4))
        for k in order
    ]


def _log_odds(p: np.ndarray) -> np.ndarray:
    p = np.clip(np.asarray(p, dtype=np.float64), SMALLEST, 1 - SMALLEST)
    return np.asarray(np.log(p) - np.log1p(-p))
