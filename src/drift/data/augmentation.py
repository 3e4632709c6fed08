"""Text augmentation: its settings, and word replacement by TF-IDF, which needs no model."""

import re
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator

from drift.settings import Settings

WORD = re.compile(r"(\w+)")


class AugmentationSettings(Settings):
    """How augmented texts are made. Base class of the settings of methods that use them."""

    augment: Literal["tfidf", "translate", "column"] = Field(
        "tfidf",
        description="How to augment texts: replace unimportant words (tfidf), translate them to another language and"
        " back (translate), or read them from a column of the table (column). Default: by which of the settings below"
        " are given.",
    )
    views: int = Field(
        1, ge=1, description="Augmented versions per text with tfidf or translate; a column is one version."
    )
    replace: float = Field(0.3, gt=0, le=1, description="tfidf: share of the words of a text to replace.")
    translation: tuple[str, str] | None = Field(
        None, description="translate: two translation models, forth and back, by name or folder."
    )
    temperature: float = Field(0.9, ge=0, description="translate: sampling temperature; 0 takes the most likely words.")
    column: tuple[str, ...] = Field((), description="column: one or several columns of the table.")

    @model_validator(mode="before")
    @classmethod
    def _choose_augment(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or values.get("augment") is not None:
            return values
        augment = "column" if values.get("column") else "translate" if values.get("translation") else "tfidf"
        return {**values, "augment": augment}

    @field_validator("column", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _complete(self) -> "AugmentationSettings":
        for mode, name, value in (("column", "column", self.column), ("translate", "translation", self.translation)):
            if self.augment == mode and not value:
                raise ValueError(f"augment is {mode} and {name} is not given; give it, or set augment to tfidf")
            if self.augment != mode and value:
                raise ValueError(
                    f"{name} is given and augment is {self.augment}; set augment to {mode}, or drop {name}"
                )
        return self


def replaced_words(texts: Sequence[str], share: float, *, seed: int | Sequence[int]) -> list[str]:
    """Replace unimportant words of the texts by other unimportant words (Xie et al., 2020, appendix).

        s_i = tf-idf of word i in its text of n words;   P(i is replaced) = share n (max s - s_i) / Σ_k (max s - s_k)
        S(w) = Σ over texts of tf-idf;                   P(w is the replacement) ∝ max S - S(w), over the vocabulary

    Words are runs of letters and digits, case-sensitive; the characters between them stay. The most important word of a
    text is never replaced, so a text of at most one word stays unchanged.

    share: share of the words to replace. seed: of the random choices.
    """
    draw = np.random.default_rng(seed)
    numbers: dict[str, int] = {}  # of each word in the vocabulary
    ids, lengths = array("q"), array("q")
    for text in texts:
        text_words = WORD.findall(text)
        lengths.append(len(text_words))
        ids.extend(numbers.setdefault(word, len(numbers)) for word in text_words)
    if not ids:
        return list(texts)
    words, sizes, vocabulary = np.frombuffer(ids, np.int64), np.frombuffer(lengths, np.int64), list(numbers)
    chances, unimportance = _chances(words, sizes, len(vocabulary))
    positions = np.flatnonzero(draw.random(len(words)) < share * chances)
    replacements = draw.choice(len(vocabulary), len(positions), p=unimportance)
    ends = np.cumsum(sizes)
    bounds = np.searchsorted(positions, np.concatenate([[0], ends]))
    views = []
    for text, first, start, stop in zip(texts, ends - sizes, bounds, bounds[1:], strict=False):
        pieces = WORD.split(text)  # words are at odd indices, the characters between them at even ones
        for position, replacement in zip(positions[start:stop] - first, replacements[start:stop], strict=True):
            pieces[2 * position + 1] = vocabulary[replacement]
        views.append("".join(pieces))
    return views


def _chances(words: np.ndarray, sizes: np.ndarray, vocabulary: int) -> tuple[np.ndarray, np.ndarray]:
    """P(i is replaced) at a share of 1 for each word of each text, and P(w is the replacement) for the vocabulary.

    words: vocabulary numbers of the words of all texts, concatenated. sizes: words per text. vocabulary: its size.
    """
    row = np.repeat(np.arange(len(sizes)), sizes)
    pairs, pair, counts = np.unique(row * vocabulary + words, return_inverse=True, return_counts=True)
    idf = np.log(len(sizes) / np.bincount(pairs % vocabulary, minlength=vocabulary))
    once = idf[words] / sizes[row]
    filled = sizes[sizes > 0]
    starts = np.cumsum(filled) - filled
    scores = counts[pair] * once
    below = np.repeat(np.maximum.reduceat(scores, starts), filled) - scores
    total = np.repeat(np.add.reduceat(below, starts), filled)
    chances = np.divide(np.repeat(filled, filled) * below, total, out=np.zeros_like(below), where=total > 0)
    importance = np.bincount(words, once, minlength=vocabulary)
    low = importance.max() - importance
    return chances, low / low.sum() if low.any() else np.full(vocabulary, 1 / vocabulary)
