"""Word embeddings from a fixed encoder, computed once and cached on disk by content."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from drift.data.batches import batches_by_length
from drift.data.cache import cache_folder, content_key
from drift.data.examples import moved
from drift.data.tokenized import Progress, silent
from drift.data.vector_store import read_array, write_array
from drift.data.windows import make_windows
from drift.models.devices import best_device, device_of
from drift.models.embedding import fingerprint

FORMAT = "words/1"  # increase it when the same sentences and encoder give different vectors
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
    """Return one vector per word, `(words, D)` in float32, memory-mapped from the cache, filled first if needed.

    The vector is the last hidden state at the word's first sub-word. The encoder runs on the accelerator if there is
    one.

    sentences: the words of each sentence.
    tagger: a token classifier of transformers, whose encoder computes the vectors.
    tokenizer: its tokenizer.
    encoder, layers: the name of the encoder and the number of layers that the tagger was loaded with.
    max_length: maximum number of tokens per window of a sentence.
    progress: as for `drift.models.embedding.embed`.
    """
    lines = ("\0".join(words) for words in sentences)
    key = content_key(lines, FORMAT, fingerprint(encoder), max_length, layers or 0)
    file = cache_folder() / "embeddings" / f"{key}.npy"
    if (cached := read_array(file)) is not None:
        return cached
    windows = make_windows(sentences, tokenizer, max_length=max_length, progress=progress)
    body = tagger.base_model.eval()
    home, device = device_of(body), best_device()
    body.to(device)
    vectors = np.empty((int(windows.counts.sum()), body.config.hidden_size), dtype=np.float32)
    with (progress or silent)("Embedding sentences", len(windows)) as tick, torch.inference_mode():
        for batch in batches_by_length(windows.lengths.tolist(), BATCH_TOKENS):
            rows = torch.tensor(batch)
            inputs = windows.inputs(rows)
            words = inputs.pop("words")
            hidden = body(**moved(inputs, device)).last_hidden_state.flatten(0, 1)
            vectors[windows.words(rows)] = hidden[words.to(hidden.device)].cpu().numpy()
            for _ in batch:
                tick()
    body.to(home)  # the tagger is the caller's
    write_array(file, [vectors], vectors.shape)
    mapped: np.ndarray = np.load(file, mmap_mode="r")
    return mapped
