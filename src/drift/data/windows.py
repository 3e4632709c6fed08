"""Sentences as windows of sub-words, without truncation: every word is predicted in exactly one window."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drift.data.batches import pad_rows, ranges
from drift.data.tokenized import Progress, silent
from drift.errors import ConfigError

CHUNK = 1000  # sentences per call of the tokenizer


class Windows:
    """Windows of sub-words as examples, in the order of the sentences and of their words. Each window is a row.

    A sentence that fits is one window. A longer one is cut into overlapping windows: each predicts the words in its
    middle, and has a quarter of a window as context on either side. A word is predicted at its first sub-word.

    lengths: sub-words per window. counts: predicted words per window. Both are `(windows,)`.
    """

    at_once = 128

    def __init__(
        self, ids: list[np.ndarray], first_sub_words: list[np.ndarray], sentences: list[int], padding: int
    ) -> None:
        """Per window, ids: of its sub-words; first_sub_words: positions of those that predict a word; sentences: its
        sentence. padding: the id for padding.
        """
        self.padding = padding
        self.lengths = np.array([len(row) for row in ids], dtype=np.int64)
        self.counts = np.array([len(row) for row in first_sub_words], dtype=np.int64)
        self.sentences = np.array(sentences, dtype=np.int64)
        self.first_words = np.concatenate([[0], np.cumsum(self.counts)])  # of each window, counted over all sentences
        self._ids, self._first_sub_words = ids, first_sub_words

    def __len__(self) -> int:
        return len(self.lengths)

    def words(self, rows: Tensor | np.ndarray) -> np.ndarray:
        """Numbers of the words that these windows predict, counted over all sentences."""
        wanted = np.asarray(rows, dtype=np.int64)
        return ranges(self.first_words[wanted], self.counts[wanted])

    def inputs(self, rows: Tensor, *, known: np.ndarray | None = None) -> dict[str, Tensor]:
        """`input_ids` and `attention_mask`, `(N, L)`, and `words`: positions of the first sub-words in the N·L tokens.

        rows: window numbers. known: which of all words to include in `words`; default: all.
        """
        wanted = np.asarray(rows, dtype=np.int64)
        ids, mask = pad_rows([self._ids[row] for row in wanted], self.padding)
        positions = [self._first_sub_words[row] + line * ids.shape[1] for line, row in enumerate(wanted)]
        words = np.concatenate(positions) if positions else np.empty(0, dtype=np.int64)
        if known is not None:
            words = words[known[self.words(wanted)]]
        return {"input_ids": ids, "attention_mask": mask, "words": torch.from_numpy(words)}


def make_windows(
    sentences: Sequence[Sequence[str]], tokenizer: Any, *, max_length: int, progress: Progress | None = None
) -> Windows:
    """Tokenize sentences into windows.

    sentences: the words of each. tokenizer: a fast tokenizer of transformers. max_length: maximum number of sub-words
    per window, including special tokens. progress: see `drift.data.tokenized.Progress`.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise ConfigError(f"{type(tokenizer).__name__} cannot say which sub-words a word has; use a fast tokenizer")
    before, after = _special(tokenizer)
    room = max_length - len(before) - len(after)
    if room < 4:
        raise ConfigError(f"max_length={max_length} leaves room for {max(room, 0)} sub-words; give 4 or more")
    spaced = _wants_spaces(tokenizer)
    ids: list[np.ndarray] = []
    first_sub_words: list[np.ndarray] = []
    window_sentences: list[int] = []
    with (progress or silent)("Tokenizing", -(-len(sentences) // CHUNK)) as tick:
        for first in range(0, len(sentences), CHUNK):
            chunk = sentences[first : first + CHUNK]
            for number, pieces in enumerate(_sub_words(chunk, tokenizer, room, spaced), first):
                for window, predicted in _cut(pieces, room):
                    ids.append(np.concatenate([before, *(pieces[word] for word in window), after]))
                    starts = list(accumulate((len(pieces[word]) for word in window), initial=len(before)))
                    positions = [starts[word - window.start] for word in predicted]
                    first_sub_words.append(np.array(positions, dtype=np.int64))
                    window_sentences.append(number)
            tick()
    return Windows(ids, first_sub_words, window_sentences, int(tokenizer.pad_token_id))


def _sub_words(
    sentences: Sequence[Sequence[str]], tokenizer: Any, room: int, spaced: bool
) -> Iterator[list[np.ndarray]]:
    """The sub-words of each word of each sentence. A word without any becomes the unknown token; a huge one is cut."""
    spelled = [[f" {word}" if spaced and index else word for index, word in enumerate(words)] for words in sentences]
    encoded = tokenizer(spelled, is_split_into_words=True, add_special_tokens=False)
    longest = max(1, room // 2)  # a window has to hold the word and its context
    for words, encoding in zip(sentences, encoded.encodings, strict=True):
        ids, word_of_id = np.array(encoding.ids, dtype=np.int64), np.array(encoding.word_ids, dtype=np.int64)
        bounds = np.searchsorted(word_of_id, np.arange(len(words) + 1))
        pieces = [ids[start : min(end, start + longest)] for start, end in pairwise(bounds)]
        unknown = np.array([tokenizer.unk_token_id], dtype=np.int64)
        yield [piece if len(piece) else unknown for piece in pieces]


def _cut(pieces: list[np.ndarray], room: int) -> Iterator[tuple[range, range]]:
    """The words in each window of a sentence, and the words that the window predicts."""
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
    """The special tokens before and after the words of a window."""
    plain = tokenizer(["a"], is_split_into_words=True, add_special_tokens=False)["input_ids"]
    whole = tokenizer(["a"], is_split_into_words=True)["input_ids"]
    start = next(index for index in range(len(whole)) if whole[index : index + len(plain)] == plain)
    return np.array(whole[:start], dtype=np.int64), np.array(whole[start + len(plain) :], dtype=np.int64)


def _wants_spaces(tokenizer: Any) -> bool:
    """Whether words need the preceding space to be tokenized as in running text, as byte-level tokenizers do."""

    def ids(words: list[str]) -> list[int]:
        return list(tokenizer(words, is_split_into_words=True, add_special_tokens=False)["input_ids"])

    running = tokenizer("it is", add_special_tokens=False)["input_ids"]
    return bool(ids(["it", "is"]) != running == ids(["it", " is"]))
