"""Word vectors of a corpus: skip-gram with negative sampling (Mikolov et al., 2013), cached on disk by content.

    max Σ log σ(u_w · v_c) + K E_n log σ(-u_w · v_n)   over words w with neighbours c, n drawn by frequency^(3/4)

gensim, the usual library for this, has no release for Python 3.14 and later. Pairs are processed in batches that share
their negatives, each with a smaller weight: the objective is the same, and its gradient is three matrix products.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
import torch
from torch import Tensor

from drift.data.cache import cache_folder, content_key
from drift.data.tokenized import Progress, silent
from drift.data.vector_store import read_array, write_array
from drift.data.word_tokens import FIRST_WORD, WordTokenizer

FORMAT = "word2vec/1"  # increase it when the same texts give different vectors
CHUNK = 200_000  # words whose pairs are in memory, and shuffled, at once
NEGATIVES = 32  # per batch; weighted to equal `SkipGram.negatives` per pair
MIN_PAIRS, MAX_PAIRS, WORDS_PER_PAIR = 16, 1024, 8  # size of a batch, and the vocabulary size per pair


@dataclass(frozen=True)
class SkipGram:
    """Hyperparameters.

    width: length of a vector.
    window: maximum distance between a word and its neighbour.
    negatives: negative samples per pair.
    epochs: passes over the corpus.
    sample: words with a higher share of the corpus than this are subsampled.
    learning_rate: at the start; it falls linearly.
    """

    width: int = 100
    window: int = 5
    negatives: int = 5
    epochs: int = 5
    sample: float = 1e-3
    learning_rate: float = 0.025


def word_vectors(
    texts: Sequence[str],
    tokenizer: WordTokenizer,
    *,
    settings: SkipGram | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> np.ndarray:
    """Return a unit vector for each of `tokenizer.words`, `(V, width)`, trained on the texts or loaded from the cache.

    texts: the corpus. tokenizer: defines the words. settings: default: `SkipGram()`. seed: for initial vectors, pairs
    and negatives. progress: as for `drift.models.embedding.embed`.
    """
    settings = settings or SkipGram()
    key = content_key(texts, FORMAT, tokenizer.key, astuple(settings), seed)
    file = cache_folder() / "word-vectors" / f"{key}.npy"
    if (cached := read_array(file)) is not None:
        return cached
    rows = [np.array(row) - FIRST_WORD for row in tokenizer(texts)["input_ids"]]
    words = np.concatenate([row[row >= 0] for row in rows])
    texts_of = np.repeat(np.arange(len(rows)), [np.count_nonzero(row >= 0) for row in rows])
    vectors = _train(words, texts_of, len(tokenizer.words), settings, seed, progress or silent)
    write_array(file, [vectors], vectors.shape)
    return vectors


def _train(
    words: np.ndarray, texts: np.ndarray, vocabulary: int, settings: SkipGram, seed: int, progress: Progress
) -> np.ndarray:
    """Return the trained vectors. words, texts: word indices of the corpus, and for each the index of its text."""
    random = np.random.default_rng(seed)
    counts = np.bincount(words, minlength=vocabulary)
    drawn = np.cumsum(counts**0.75)
    thin = settings.sample * len(words) / np.maximum(counts, 1)
    kept = np.minimum(np.sqrt(thin) + thin, 1)
    start = (random.random((vocabulary, settings.width), dtype=np.float32) - 0.5) / settings.width
    inner, outer = torch.from_numpy(start), torch.zeros(vocabulary, settings.width)
    # Gradients are summed over a batch and diverge if a word is too frequent in it, as in a small vocabulary.
    size = min(max(vocabulary // WORDS_PER_PAIR, MIN_PAIRS), MAX_PAIRS)
    chunks = -(-len(words) // CHUNK)
    with progress("Word vectors", settings.epochs * chunks) as tick:
        for turn in range(settings.epochs * chunks):
            part = slice(turn % chunks * CHUNK, (turn % chunks + 1) * CHUNK)
            stays = random.random(len(words[part])) < kept[words[part]]
            pairs = _pairs(words[part][stays], texts[part][stays], settings.window, random)
            rate = settings.learning_rate * max(1 - turn / (settings.epochs * chunks), 1e-4)
            for batch in torch.split(torch.from_numpy(pairs), size, dim=1):
                negatives = np.searchsorted(drawn, random.random(NEGATIVES) * drawn[-1], side="right")
                _step(inner, outer, batch, torch.from_numpy(negatives), rate, settings.negatives / NEGATIVES)
            tick()
    vectors: np.ndarray = (inner / inner.norm(dim=1, keepdim=True)).numpy()
    return vectors


def _pairs(words: np.ndarray, texts: np.ndarray, window: int, random: np.random.Generator) -> np.ndarray:
    """Return words and their neighbours in the same text, `(2, pairs)`, in random order. The window size is random."""
    reach = random.integers(1, window + 1, len(words))
    parts = []
    for gap in range(1, window + 1):
        left, right, together = words[:-gap], words[gap:], texts[:-gap] == texts[gap:]
        ahead, behind = together & (reach[:-gap] >= gap), together & (reach[gap:] >= gap)
        parts += [np.stack([left[ahead], right[ahead]]), np.stack([right[behind], left[behind]])]
    pairs = np.concatenate(parts, 1)
    return pairs[:, random.permutation(pairs.shape[1])]


def _step(inner: Tensor, outer: Tensor, pairs: Tensor, negatives: Tensor, rate: float, weight: float) -> None:
    """Take one gradient ascent step, in place. weight: weight of each shared negative."""
    words, neighbours = pairs
    u, v, n = inner.index_select(0, words), outer.index_select(0, neighbours), outer.index_select(0, negatives)
    near = rate * (1 - torch.sigmoid((u * v).sum(1, keepdim=True)))  # (pairs, 1)
    far = (-rate * weight) * torch.sigmoid(u @ n.T)  # (pairs, negatives)
    inner.index_add_(0, words, near * v + far @ n)
    outer.index_add_(0, neighbours, near * u)
    outer.index_add_(0, negatives, far.T @ u)
