"""Words of sentences to vectors with a fixed encoder: computed once and kept on disk by content."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from drift.data.cache import cache_folder, content_key
from drift.data.tokenized import Progress, silent
from drift.data.windows import make_windows
from drift.models.embedding import fingerprint, like_batches, read_array, write_array

FORMAT = "words/1"  # to be raised when the same sentences and encoder give other vectors
BATCH_TOKENS = 2048


def embed_words(
    sentences: Sequence[Sequence[str]],
    tagger: Any,
    tokenizer: Any,
    encoder: str,
    *,
    max_length: int,
    layers: int | None = None,
    progress: Progress | None = None,
) -> np.ndarray:
    """One vector a word, `(words, D)` in float32, mapped from a file in the cache, which is made first if need be.

    It is the last hidden state at a word's first sub-word. tagger: whose encoder computes it, a token classifier of
    transformers; encoder, layers: what it was made of.
    """
    lines = ("\0".join(words) for words in sentences)
    key = content_key(lines, FORMAT, fingerprint(encoder), max_length, layers or 0)
    file = cache_folder() / "embeddings" / f"{key}.npy"
    if (cached := read_array(file)) is not None:
        return cached
    windows = make_windows(sentences, tokenizer, max_length=max_length, progress=progress)
    body = tagger.base_model.eval()
    vectors = np.empty((int(windows.counts.sum()), body.config.hidden_size), dtype=np.float32)
    with (progress or silent)("Embedding sentences", len(windows)) as tick, torch.inference_mode():
        for batch in like_batches(windows.lengths.tolist(), BATCH_TOKENS):
            rows = torch.tensor(batch)
            inputs = windows.inputs(rows)
            words = inputs.pop("words")
            hidden = body(**inputs).last_hidden_state.flatten(0, 1)
            vectors[windows.words(rows)] = hidden[words].numpy()
            for _ in batch:
                tick()
    write_array(file, [vectors], vectors.shape)
    mapped: np.ndarray = np.load(file, mmap_mode="r")
    return mapped
