"""The most likely tags of sentences (Viterbi decoding); in IOB2, of those with no I-X without a B-X or I-X before it.

A word of type X after another one of type X either continues the entity or begins another. Taggers decide that word by
word, and those that learn from a dictionary often begin another, because it has parts of names as names. How often that
happens is counted in the tags that a tagger learns from, and weighed in as the log-odds of a beginning. Tags without B-
and I- (plain names of slots) have no such beginnings; there, what is weighed is a slot of another type right after one.
"""

from collections.abc import Sequence

import numpy as np

from drift.data.tags import OUTSIDE, split_tag

BLANK = -1  # where a sentence is shorter than the longest


def may_follow(tags: Sequence[str], *, entities: bool = True) -> np.ndarray:
    """Which tag may follow which, `(C, C)`: row before column. At the start of a sentence, O has gone before."""
    if not entities:
        return np.ones((len(tags), len(tags)), dtype=bool)
    parts = [split_tag(tag, "IOB2") for tag in tags]
    return np.array([[after[0] != "I" or after[1] == before[1] for after in parts] for before in parts])


def restarts(tags: Sequence[str], *, entities: bool = True) -> np.ndarray:
    """Which pairs of tags are an entity and another one right after it, `(C, C)`: row before column.

    In IOB2 the other one has the same type, in plain names another one.
    """
    if not entities:
        return _both_named(tags) & ~np.eye(len(tags), dtype=bool)
    parts = [split_tag(tag, "IOB2") for tag in tags]
    return np.array([[after[0] == "B" and after[1] == before[1] for after in parts] for before in parts])


def continues(tags: Sequence[str], *, entities: bool = True) -> np.ndarray:
    """Which pairs of tags are within one entity, `(C, C)`: row before column."""
    if not entities:
        return _both_named(tags) & np.eye(len(tags), dtype=bool)
    return np.tile([tag.startswith("I-") for tag in tags], (len(tags), 1))


def restart_odds(codes: np.ndarray, sizes: np.ndarray, tags: Sequence[str], *, entities: bool = True) -> float:
    """log q/(1-q), with q the share of entities that begin, of words that follow one as in `restarts`; at most 0.

    codes: tags of all words, -1 for none, sentence after sentence, `(words,)`. sizes: words of each sentence. q is
    (k + 1) / (n + 2) for k of n words, so that few words say little.
    """
    first = np.zeros(len(codes), dtype=bool)
    first[(np.cumsum(sizes) - sizes)[sizes > 0]] = True
    known = (codes[1:] >= 0) & (codes[:-1] >= 0) & ~first[1:]
    before, after = codes[:-1][known], codes[1:][known]
    again, continued = (int(pairs(tags, entities=entities)[before, after].sum()) for pairs in (restarts, continues))
    return min(0.0, float(np.log((again + 1) / (continued + 1))))


def decoded(
    probabilities: np.ndarray, sizes: np.ndarray, tags: Sequence[str], restart: float = 0.0, *, entities: bool = True
) -> np.ndarray:
    """The codes of the valid tags with the highest product of probabilities, `(words,)`.

    probabilities: of all words, sentence after sentence, `(words, C)`. sizes: number of words of each sentence.
    tags: the names of the C tags, with O. entities: they are in IOB2, not plain names. restart: see `restart_odds`.
    """
    codes: np.ndarray = probabilities.argmax(-1)
    if not len(codes):
        return codes
    outside = list(tags).index(OUTSIDE)
    transition = np.where(may_follow(tags, entities=entities), 0.0, -np.inf)
    transition += np.where(restarts(tags, entities=entities), restart, 0.0)
    starts = np.cumsum(sizes) - sizes
    before = np.concatenate([[outside], codes[:-1]])
    before[starts[sizes > 0]] = outside
    # Where no transition lowers the most likely tags, nothing is more likely: few sentences are left.
    broken = np.unique(np.repeat(np.arange(len(sizes)), sizes)[transition[before, codes] < 0])
    if not len(broken):
        return codes
    within = np.arange(sizes[broken].max())
    words = np.where(within < sizes[broken, None], starts[broken, None] + within, BLANK)
    log_p = np.log(np.maximum(probabilities, np.finfo(np.float32).tiny))[words]  # (sentences, longest, C)
    path = _best_paths(log_p, words != BLANK, transition, outside)
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


def _both_named(tags: Sequence[str]) -> np.ndarray:
    """Which pairs of tags have no O, `(C, C)`."""
    named = np.array([tag != OUTSIDE for tag in tags])
    return np.asarray(np.logical_and.outer(named, named))
