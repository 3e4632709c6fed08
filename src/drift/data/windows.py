"""Sentences of words as windows of sub-words, none of them cut: every word is answered for in exactly one window."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drift.data.batches import ranges
from drift.data.tokenized import Progress, silent
from drift.errors import ConfigError

CHUNK = 1000  # sentences tokenized at a time


class Windows:
    """Windows of sub-words, in the order of the sentences and of the words in them.

    A sentence that fits is one window. A longer one is cut into several, which overlap: each answers for the words in
    its middle, and reads a quarter of a window on either side of them. A row is a window.

    lengths: sub-words of each window. counts: words that each answers for, `(windows,)`; a word is answered for where
    its first sub-word is.
    """

    at_once = 128

    def __init__(self, ids: list[np.ndarray], places: list[np.ndarray], sentences: list[int], padding: int) -> None:
        """ids: of each window. places: of the words' first sub-words in it. sentences: which one it is of."""
        self.padding = padding
        self.lengths = np.array([len(row) for row in ids], dtype=np.int64)
        self.counts = np.array([len(row) for row in places], dtype=np.int64)
        self.sentences = np.array(sentences, dtype=np.int64)
        self.first_words = np.concatenate([[0], np.cumsum(self.counts)])  # of a window, among all words
        self._ids, self._places = ids, places

    def __len__(self) -> int:
        return len(self.lengths)

    def words(self, rows: Tensor | np.ndarray) -> np.ndarray:
        """Which words these windows answer for, counted through all sentences."""
        wanted = np.asarray(rows, dtype=np.int64)
        return ranges(self.first_words[wanted], self.counts[wanted])

    def inputs(self, rows: Tensor, *, known: np.ndarray | None = None) -> dict[str, Tensor]:
        """`input_ids` and `attention_mask` (N, L), and `words`: where in the N·L the words' first sub-words are.

        known: whether a word is wanted, of all words there are; all are if it is left out.
        """
        wanted = np.asarray(rows, dtype=np.int64)
        lengths = self.lengths[wanted]
        longest = int(lengths.max(initial=0))
        ids = np.full((len(wanted), longest), self.padding, dtype=np.int64)
        for line, row in zip(ids, wanted, strict=True):
            line[: self.lengths[row]] = self._ids[row]
        mask = (np.arange(longest) < lengths[:, None]).astype(np.int64)
        places = [self._places[row] + line * longest for line, row in enumerate(wanted)]
        words = np.concatenate(places) if places else np.empty(0, dtype=np.int64)
        if known is not None:
            words = words[known[self.words(wanted)]]
        return {
            "input_ids": torch.from_numpy(ids),
            "attention_mask": torch.from_numpy(mask),
            "words": torch.from_numpy(words),
        }


def make_windows(
    sentences: Sequence[Sequence[str]], tokenizer: Any, *, max_length: int, progress: Progress | None = None
) -> Windows:
    """Windows of at most `max_length` sub-words, special ones included. tokenizer: a fast one of transformers."""
    if not getattr(tokenizer, "is_fast", False):
        raise ConfigError(f"{type(tokenizer).__name__} cannot say which sub-words a word has; use a fast tokenizer")
    before, after = _special(tokenizer)
    room = max_length - len(before) - len(after)
    if room < 4:
        raise ConfigError(f"max_length={max_length} leaves room for {max(room, 0)} sub-words; give 4 or more")
    spaced = _wants_spaces(tokenizer)
    ids: list[np.ndarray] = []
    places: list[np.ndarray] = []
    of: list[int] = []
    with (progress or silent)("Tokenizing", -(-len(sentences) // CHUNK)) as tick:
        for first in range(0, len(sentences), CHUNK):
            chunk = sentences[first : first + CHUNK]
            for number, pieces in enumerate(_sub_words(chunk, tokenizer, room, spaced), first):
                for window, answered in _cut(pieces, room):
                    ids.append(np.concatenate([before, *(pieces[word] for word in window), after]))
                    starts = list(accumulate((len(pieces[word]) for word in window), initial=len(before)))
                    places.append(np.array([starts[word - window.start] for word in answered], dtype=np.int64))
                    of.append(number)
            tick()
    return Windows(ids, places, of, int(tokenizer.pad_token_id))


def _sub_words(
    sentences: Sequence[Sequence[str]], tokenizer: Any, room: int, spaced: bool
) -> Iterator[list[np.ndarray]]:
    """The sub-words of each word of each sentence; a word that has none is unknown, and a huge one ends early."""
    spelled = [[f" {word}" if spaced and place else word for place, word in enumerate(words)] for words in sentences]
    encoded = tokenizer(spelled, is_split_into_words=True, add_special_tokens=False)
    longest = max(1, room // 2)  # a window has to hold the word and what is around it
    for words, encoding in zip(sentences, encoded.encodings, strict=True):
        found, of = np.array(encoding.ids, dtype=np.int64), np.array(encoding.word_ids, dtype=np.int64)
        bounds = np.searchsorted(of, np.arange(len(words) + 1))
        pieces = [found[start : min(end, start + longest)] for start, end in pairwise(bounds)]
        unknown = np.array([tokenizer.unk_token_id], dtype=np.int64)
        yield [piece if len(piece) else unknown for piece in pieces]


def _cut(pieces: list[np.ndarray], room: int) -> Iterator[tuple[range, range]]:
    """The words in each window of a sentence, and those it answers for."""
    ends = [0, *accumulate(map(len, pieces))]
    words = len(pieces)
    if ends[-1] <= room:
        yield range(words), range(words)
        return
    margin, start = room // 4, 0
    while start < words:
        end = max(start + 1, bisect_right(ends, ends[start] + room - 2 * margin) - 1)
        left = bisect_left(ends, ends[start] - margin)
        yield range(left, bisect_right(ends, ends[left] + room) - 1), range(start, end)
        start = end


def _special(tokenizer: Any) -> tuple[np.ndarray, np.ndarray]:
    """What stands before and after the words of a window."""
    plain = tokenizer(["a"], is_split_into_words=True, add_special_tokens=False)["input_ids"]
    whole = tokenizer(["a"], is_split_into_words=True)["input_ids"]
    start = next(place for place in range(len(whole)) if whole[place : place + len(plain)] == plain)
    return np.array(whole[:start], dtype=np.int64), np.array(whole[start + len(plain) :], dtype=np.int64)


def _wants_spaces(tokenizer: Any) -> bool:
    """Whether words must carry the space before them to be read as in running text, as byte-level ones do."""

    def ids(words: list[str]) -> list[int]:
        return list(tokenizer(words, is_split_into_words=True, add_special_tokens=False)["input_ids"])

    running = tokenizer("it is", add_special_tokens=False)["input_ids"]
    return bool(ids(["it", "is"]) != running == ids(["it", " is"]))
