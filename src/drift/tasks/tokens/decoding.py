"""The most likely tags of sentences that are valid IOB2: no I-X without a B-X or I-X before it (Viterbi decoding)."""

from collections.abc import Sequence

import numpy as np

from drift.data.tags import OUTSIDE, split_tag

BLANK = -1  # where a sentence is shorter than the longest


def may_follow(tags: Sequence[str]) -> np.ndarray:
    """Which tag may follow which, `(C, C)`: row before column. At the start of a sentence, O has gone before."""
    parts = [split_tag(tag, "IOB2") for tag in tags]
    return np.array([[after[0] != "I" or after[1] == before[1] for after in parts] for before in parts])


def decoded(probabilities: np.ndarray, sizes: np.ndarray, tags: Sequence[str]) -> np.ndarray:
    """The codes of the valid tags with the highest product of probabilities, `(words,)`.

    probabilities: of all words, sentence after sentence, `(words, C)`. sizes: number of words of each sentence.
    tags: the names of the C tags, in IOB2, with O.
    """
    codes: np.ndarray = probabilities.argmax(-1)
    if not len(codes):
        return codes
    allowed, outside = may_follow(tags), list(tags).index(OUTSIDE)
    starts = np.cumsum(sizes) - sizes
    before = np.concatenate([[outside], codes[:-1]])
    before[starts[sizes > 0]] = outside
    # Where the most likely tags are valid, nothing is more likely: few sentences are left.
    broken = np.unique(np.repeat(np.arange(len(sizes)), sizes)[~allowed[before, codes]])
    if not len(broken):
        return codes
    within = np.arange(sizes[broken].max())
    words = np.where(within < sizes[broken, None], starts[broken, None] + within, BLANK)
    log_p = np.log(np.maximum(probabilities, np.finfo(np.float32).tiny))[words]  # (sentences, longest, C)
    path = _best_paths(log_p, words != BLANK, np.where(allowed, 0.0, -np.inf), outside)
    codes[words[words != BLANK]] = path[words != BLANK]
    return codes


def _best_paths(log_p: np.ndarray, real: np.ndarray, transition: np.ndarray, outside: int) -> np.ndarray:
    """Viterbi's algorithm for all sentences at once, `(n, L)`. real: which positions are words, the first ones."""
    rows, length, count = log_p.shape
    score = log_p[:, 0] + transition[outside]
    came_from = np.tile(np.arange(count), (rows, length, 1))  # behind the last word, the path stays where it is
    for position in range(1, length):
        reached = score[:, :, None] + transition  # (n, before, after)
        is_word = real[:, position, None]
        came_from[:, position] = np.where(is_word, reached.argmax(1), came_from[:, position])
        score = np.where(is_word, reached.max(1) + log_p[:, position], score)
    path = np.empty((rows, length), dtype=np.int64)
    path[:, -1] = score.argmax(-1)
    for position in range(length - 1, 0, -1):
        path[:, position - 1] = came_from[np.arange(rows), position, path[:, position]]
    return path
