"""Texts to vectors with a fixed encoder: computed once, piece by piece, and kept on disk by content."""

import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from drift.data.cache import cache_file, cache_folder, content_key
from drift.data.texts import checked
from drift.data.tokenized import Progress, silent
from drift.errors import ConfigError
from drift.models.encoders import POOLS, encoder_path, load_encoder, text_vectors

FORMAT = "embeddings/1"  # to be raised when the same texts and encoder give other vectors
TEXTS_PER_FILE = 1024  # texts in one file: all that a crash can lose, and enough to find some of like length
CHARACTERS_A_TOKEN = 16  # far more than words have; a longer text is not read to its end
MODEL_FILES = {".json", ".safetensors", ".bin", ".txt", ".model"}


def embed(
    texts: Sequence[str],
    encoder: str,
    *,
    max_length: int = 128,
    batch_tokens: int = 1024,
    pool: str = "mean",
    jobs: int | None = None,
    progress: Progress | None = None,
) -> np.ndarray:
    """One vector a text, `(N, D)` in float32, mapped from a file in the cache, which is made first if need be.

    encoder: as for `load_encoder`. max_length: a text's further tokens are left out. batch_tokens: tokens in a forward,
    padding included. pool: as for `text_vectors`. jobs: forwards at once, None for as many as torch has threads; the
    vectors do not depend on it. progress: `progress(title, total)` gives, for a block, what is called once a text.
    """
    if pool not in POOLS:
        raise ConfigError(f"pool is {pool!r}; it is one of {', '.join(POOLS)}")
    settings = (FORMAT, fingerprint(encoder), max_length, pool)
    starts = range(0, max(len(texts), 1), TEXTS_PER_FILE)
    rows_in_order = checked(texts)
    keys = [content_key(islice(rows_in_order, TEXTS_PER_FILE), *settings) for _ in starts]
    files = [cache_folder() / "embeddings" / f"{key}.npy" for key in keys]
    whole = files[0] if len(files) == 1 else files[0].with_name(f"{content_key(keys, FORMAT)}.npy")
    if (cached := read_array(whole)) is not None:
        return cached
    model, tokenizer = load_encoder(encoder)
    check_length(max_length, encoder, model, tokenizer)
    width = model.config.hidden_size * (2 if pool == "layers" else 1)
    threads = torch.get_num_threads()
    # Threads of ours with one of torch's each: handing over whole forwards costs less than sharing every operation.
    workers = ThreadPoolExecutor(jobs or threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        with workers, (progress or silent)("Embedding texts", len(texts)) as tick:
            for start, file in zip(starts, files, strict=True):
                piece = list(texts[start : start + TEXTS_PER_FILE])
                if read_array(file) is not None:
                    for _ in piece:
                        tick()
                    continue
                tokens = _tokenized(tokenizer, piece, max_length)
                forward = partial(_vectors, model, tokens, pool=pool, padding=tokenizer.pad_token_id)
                vectors = np.empty((len(piece), width), dtype=np.float32)
                batches = like_batches([len(row) for row in tokens], batch_tokens)
                for rows, found in zip(batches, workers.map(forward, batches), strict=True):
                    vectors[rows] = found
                    for _ in rows:
                        tick()
                write_array(file, [vectors], vectors.shape)
    finally:
        torch.set_num_threads(threads)
    if len(files) > 1:
        write_array(whole, map(np.load, files), (len(texts), width))
    mapped: np.ndarray = np.load(whole, mmap_mode="r")
    return mapped


def _vectors(model: nn.Module, tokens: list[list[int]], rows: list[int], *, pool: str, padding: int) -> np.ndarray:
    ids = pad_sequence([torch.tensor(tokens[row]) for row in rows], batch_first=True, padding_value=padding)
    real = torch.arange(ids.shape[1]) < torch.tensor([[len(tokens[row])] for row in rows])
    with torch.inference_mode():
        return text_vectors(model, ids, real.long(), pool).numpy()


def _tokenized(tokenizer: Any, texts: list[str], max_length: int) -> list[list[int]]:
    """Token ids, at most `max_length` a text.

    Tokenizers read a text to its end before they cut it. A long one is cut first, between words, which changes nothing
    if tokens enough are left; else it is read as a whole.
    """

    def token_ids(texts: list[str]) -> list[list[int]]:
        return tokenizer(texts, truncation=True, max_length=max_length)["input_ids"] if texts else []

    enough = max_length * CHARACTERS_A_TOKEN
    heads = [text if len(text) <= enough else text[:enough].rpartition(" ")[0] for text in texts]
    tokens = token_ids(heads)
    short = [row for row, text in enumerate(texts) if len(heads[row]) < len(text) and len(tokens[row]) < max_length]
    for row, found in zip(short, token_ids([texts[row] for row in short]), strict=True):
        tokens[row] = found
    return [row or [tokenizer.pad_token_id] for row in tokens]  # an empty text has no token where none are added


def like_batches(lengths: list[int], batch_tokens: int) -> list[list[int]]:
    """Rows of like length together, so that hardly anything is padding; the longest first."""
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    batches = []
    while order:
        size = max(1, batch_tokens // lengths[order[0]])
        batches.append(order[:size])
        order = order[size:]
    return batches


def fingerprint(encoder: str) -> str:
    """What the encoder is: the content of its folder, or the revision that the hub gave."""
    folder = Path(encoder_path(encoder))
    if not folder.is_dir():
        model, _ = load_encoder(encoder)
        return f"{encoder}@{model.config._commit_hash}"
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in MODEL_FILES:
            with path.open("rb") as file:
                digest.update(f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def check_length(max_length: int, encoder: str, model: Any, tokenizer: Any) -> None:
    limit = min(getattr(model.config, "max_position_embeddings", max_length), tokenizer.model_max_length)
    least = tokenizer.num_special_tokens_to_add() + 1
    if not least <= max_length <= limit:
        raise ConfigError(f"max_length is {max_length}; {encoder} takes {least} to {limit} tokens")


def read_array(file: Path) -> np.ndarray | None:
    """The array in a file; None where there is none, or one cut short."""
    try:
        array: np.ndarray = np.load(file, mmap_mode="r")
    except (OSError, ValueError):
        return None
    return array


def write_array(path: Path, arrays: Iterable[np.ndarray], shape: tuple[int, ...]) -> None:
    """Arrays, one below the other, as one of this shape in the cache; they are never held all at once."""
    with cache_file(path) as aside, aside.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for array in arrays:
            file.write(array.tobytes())
