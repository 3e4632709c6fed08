"""Texts in other words: the ways there are, and the one that needs no model, replacement of words by TF-IDF."""

import re
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator

from drift.settings import Settings

WORD = re.compile(r"(\w+)")


class AugmentationSettings(Settings):
    """Where other forms of the texts come from; the settings of a method that learns from them begin with these."""

    augment: Literal["tfidf", "translate", "column"] = Field(
        "tfidf",
        description="Other forms of a text: unimportant words replaced (tfidf), a translation there and back"
        " (translate), or what a column of the table holds (column); if left out, by what is given below.",
    )
    views: int = Field(1, ge=1, description="How many forms tfidf or translate make of a text; a column is one.")
    replace: float = Field(0.3, gt=0, le=1, description="Of tfidf: the share of a text's words that is replaced.")
    translation: tuple[str, str] | None = Field(
        None, description="Of translate: two translation models, there and back, by name or folder."
    )
    temperature: float = Field(
        0.9, ge=0, description="Of translate: of the words that are drawn; 0 for the most likely ones."
    )
    column: tuple[str, ...] = Field((), description="Of column: one or several columns of the table.")

    @model_validator(mode="before")
    @classmethod
    def _by_what_is_given(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or values.get("augment") is not None:
            return values
        given = "column" if values.get("column") else "translate" if values.get("translation") else "tfidf"
        return {**values, "augment": given}

    @field_validator("column", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _complete(self) -> "AugmentationSettings":
        for way, name, given in (("column", "column", self.column), ("translate", "translation", self.translation)):
            if self.augment == way and not given:
                raise ValueError(f"augment is {way} and {name} is not given; give it, or set augment to tfidf")
            if self.augment != way and given:
                raise ValueError(f"{name} is given and augment is {self.augment}; set augment to {way}, or drop {name}")
        return self


def replaced_words(texts: Sequence[str], share: float, *, seed: int | Sequence[int]) -> list[str]:
    """The texts with unimportant words replaced by others that are unimportant too (Xie et al., 2020, appendix).

        s_i = tf-idf of word i in its text of n words;   P(i is replaced) = share n (max s - s_i) / Σ_k (max s - s_k)
        S(w) = Σ over texts of tf-idf;                   P(w takes its place) ∝ max S - S(w), over all words there are

    Words are runs of letters and digits, as they are written; what stands between them stays. The most important word
    of a text is never replaced, so a text of one word, or of none, stays as it is.
    """
    draw = np.random.default_rng(seed)
    number: dict[str, int] = {}
    found, lengths = array("q"), array("q")
    for text in texts:
        own = WORD.findall(text)
        lengths.append(len(own))
        found.extend(number.setdefault(word, len(number)) for word in own)
    if not found:
        return list(texts)
    words, sizes, vocabulary = np.frombuffer(found, np.int64), np.frombuffer(lengths, np.int64), list(number)
    chances, unimportance = _chances(words, sizes, len(vocabulary))
    places = np.flatnonzero(draw.random(len(words)) < share * chances)
    others = draw.choice(len(vocabulary), len(places), p=unimportance)
    ends = np.cumsum(sizes)
    bounds = np.searchsorted(places, np.concatenate([[0], ends]))
    views = []
    for text, first, start, stop in zip(texts, ends - sizes, bounds, bounds[1:], strict=False):
        pieces = WORD.split(text)  # words are at odd places, what is between them at even ones
        for place, other in zip(places[start:stop] - first, others[start:stop], strict=True):
            pieces[2 * place + 1] = vocabulary[other]
        views.append("".join(pieces))
    return views


def _chances(words: np.ndarray, sizes: np.ndarray, vocabulary: int) -> tuple[np.ndarray, np.ndarray]:
    """For each word in its text, how likely it is replaced where a share of 1 is; for each of the vocabulary, P above.

    words: of all texts, one after the other. sizes: how many each text has.
    """
    row = np.repeat(np.arange(len(sizes)), sizes)
    pairs, place, counts = np.unique(row * vocabulary + words, return_inverse=True, return_counts=True)
    idf = np.log(len(sizes) / np.bincount(pairs % vocabulary, minlength=vocabulary))
    once = idf[words] / sizes[row]
    own = sizes[sizes > 0]
    starts = np.cumsum(own) - own
    scores = counts[place] * once
    below = np.repeat(np.maximum.reduceat(scores, starts), own) - scores
    total = np.repeat(np.add.reduceat(below, starts), own)
    chances = np.divide(np.repeat(own, own) * below, total, out=np.zeros_like(below), where=total > 0)
    importance = np.bincount(words, once, minlength=vocabulary)
    low = importance.max() - importance
    return chances, low / low.sum() if low.any() else np.full(vocabulary, 1 / vocabulary)
