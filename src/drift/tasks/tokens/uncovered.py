"""Words that no rule covers: the ways to treat them, and a choice among these without gold tags."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from drift.data.labels import UNLABELED

LEAST_COMMON, COMMON = 20, 1000  # a common word has at least so many mentions, and one in so many words
MOST_TAGGED = 0.02  # of the mentions of a common word
HELD_OUT = 0.2  # of the distinct tagged words
MOST_WINDOWS, WINDOWS_AT_ONCE = 1000, 64  # that are predicted for a score


def fillings(sentences: Sequence[Sequence[str]], weak: np.ndarray, *, outside: int, covered: int) -> dict[str, Any]:
    """The weak tags by how words without one are treated: "ignore", "O" or "common".

    sentences: their words. weak: tags of all words, -1 for none. outside: the code of O. covered: number of words that
    the rules were applied to, from the first; others need not be O.
    """
    blank = weak == UNLABELED
    blank[covered:] = False
    tagged = (weak != UNLABELED) & (weak != outside)
    common = blank & common_words(sentences, tagged=tagged)
    return {
        "ignore": weak,
        "O": np.where(blank, outside, weak),
        "common": np.where(common, outside, weak),
    }


def common_words(sentences: Sequence[Sequence[str]], *, tagged: np.ndarray) -> np.ndarray:
    """Which words are probably in no entity, `(words,)`: frequent ones that are almost never tagged.

    A dictionary may lack a rare name, but not one that is mentioned every other sentence. tagged: whether each word has
    a tag other than O.
    """
    kinds = _kinds(sentences)
    counts, tagged_counts = np.bincount(kinds), np.bincount(kinds, weights=tagged)
    often = max(LEAST_COMMON, len(kinds) / COMMON)
    common = (counts >= often) & (tagged_counts < MOST_TAGGED * counts)
    return np.asarray(common[kinds])


def held_out_words(sentences: Sequence[Sequence[str]], *, tagged: np.ndarray, seed: int) -> np.ndarray:
    """The tagged mentions of some words, `(words,)`: a fifth of the distinct tagged words, drawn by seed."""
    kinds = _kinds(sentences)
    of_tags = np.unique(kinds[tagged])
    drawn = np.random.default_rng(seed).permutation(of_tags)[: max(1, round(HELD_OUT * len(of_tags)))]
    return np.asarray(tagged & np.isin(kinds, drawn))


def positive_score(found: np.ndarray, held_out: np.ndarray) -> float:
    """r² / P(found), a score for positive and unlabelled examples (Lee and Liu 2003), which grows as F1 does.

    found: whether each word was taken for an entity, `(n,)`. held_out: tagged words that training did not know as such,
    `(n,)`; r is the share of them that was found.
    """
    if not held_out.any() or not found.any():
        return 0.0
    return float(found[held_out].mean() ** 2 / found.mean())


def found_by(student: nn.Module, windows: Any, *, outside: int) -> tuple[np.ndarray, np.ndarray]:
    """Which words a tagger takes for an entity, and their numbers, in the first windows."""
    found, words = [], []
    student.eval()
    with torch.inference_mode():
        for rows in torch.split(torch.arange(min(len(windows), MOST_WINDOWS)), WINDOWS_AT_ONCE):
            found.append((student(**windows.inputs(rows)).argmax(-1) != outside).numpy())
            words.append(windows.words(rows))
    student.train()
    return np.concatenate(found), np.concatenate(words)


def _kinds(sentences: Sequence[Sequence[str]]) -> np.ndarray:
    """One number per distinct word, ignoring case, for every mention."""
    return np.unique([word.lower() for words in sentences for word in words], return_inverse=True)[1]
