"""Text embeddings from a fixed encoder, computed once and cached on disk by content."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from drift.data.batches import batches_by_length, pad_rows
from drift.data.cache import cache_file, cache_folder, content_key
from drift.data.texts import checked
from drift.data.tokenized import Progress, silent
from drift.errors import ConfigError
from drift.models.devices import best_device, device_of
from drift.models.encoders import POOLS, encoder_path, load_encoder, text_vectors

FORMAT = "embeddings/1"  # increase it when the same texts and encoder give different vectors
TEXTS_PER_FILE = 1024  # at most this many are lost in a crash; enough to batch texts of similar length
CHARACTERS_PER_TOKEN = 16  # far more than a token has on average: bounds how much of a long text is tokenised
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
    """Return one vector per text, `(N, D)` in float32, memory-mapped from the cache, which is filled first if needed.

    The encoder runs on the accelerator if there is one.

    texts: the texts to embed.
    encoder: name or folder, as for `load_encoder`.
    max_length: maximum number of tokens per text; further tokens are ignored.
    batch_tokens: maximum number of tokens per forward pass, padding included.
    pool: how token vectors are combined, as for `text_vectors`.
    jobs: number of concurrent forward passes; None uses the number of torch's threads. The vectors do not depend on it.
    progress: `progress(title, total)` returns a context manager that yields a function to call once per text.
    """
    if pool not in POOLS:
        raise ConfigError(f"pool is {pool!r}; give one of {', '.join(POOLS)}")
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
    model = model.to(best_device())
    width = model.config.hidden_size * (2 if pool == "layers" else 1)
    embed_piece = partial(_embed_piece, model, tokenizer, width, max_length, batch_tokens, pool)
    with _one_thread_each(jobs) as workers, (progress or silent)("Embedding texts", len(texts)) as tick:
        for start, file in zip(starts, files, strict=True):
            piece = list(texts[start : start + TEXTS_PER_FILE])
            if read_array(file) is None:
                write_array(file, [embed_piece(piece, workers, tick)], (len(piece), width))
            else:
                for _ in piece:
                    tick()
    if len(files) > 1:
        write_array(whole, map(np.load, files), (len(texts), width))
    mapped: np.ndarray = np.load(whole, mmap_mode="r")
    return mapped


@contextmanager
def _one_thread_each(jobs: int | None) -> Iterator[ThreadPoolExecutor]:
    """Workers that use one torch thread each: whole forward passes in parallel cost less than splitting each one."""
    threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(jobs or threads, initializer=torch.set_num_threads, initargs=(1,)) as workers:
            yield workers
    finally:
        torch.set_num_threads(threads)


def _embed_piece(
    model: nn.Module,
    tokenizer: Any,
    width: int,
    max_length: int,
    batch_tokens: int,
    pool: str,
    texts: list[str],
    workers: ThreadPoolExecutor,
    tick: Callable[[], None],
) -> np.ndarray:
    """Return the vectors of some texts, `(n, width)`."""
    tokens = _tokenized(tokenizer, texts, max_length)
    forward = partial(_vectors, model, tokens, pool=pool, padding=tokenizer.pad_token_id)
    vectors = np.empty((len(texts), width), dtype=np.float32)
    batches = batches_by_length([len(row) for row in tokens], batch_tokens)
    for rows, embedded in zip(batches, workers.map(forward, batches), strict=True):
        vectors[rows] = embedded
        for _ in rows:
            tick()
    return vectors


def _vectors(model: nn.Module, tokens: list[list[int]], rows: list[int], *, pool: str, padding: int) -> np.ndarray:
    ids, mask = pad_rows([tokens[row] for row in rows], padding)
    device = device_of(model)
    with torch.inference_mode():
        return text_vectors(model, ids.to(device), mask.to(device), pool).cpu().numpy()


def _tokenized(tokenizer: Any, texts: list[str], max_length: int) -> list[list[int]]:
    """Return token ids, at most `max_length` per text.

    A tokenizer reads a whole text before it truncates. So a long text is first cut between words. If too few tokens
    are left, the whole text is tokenised instead; the result is the same either way.
    """

    def token_ids(texts: list[str]) -> list[list[int]]:
        return tokenizer(texts, truncation=True, max_length=max_length)["input_ids"] if texts else []

    enough = max_length * CHARACTERS_PER_TOKEN
    heads = [text if len(text) <= enough else text[:enough].rpartition(" ")[0] for text in texts]
    tokens = token_ids(heads)
    short = [row for row, text in enumerate(texts) if len(heads[row]) < len(text) and len(tokens[row]) < max_length]
    for row, ids in zip(short, token_ids([texts[row] for row in short]), strict=True):
        tokens[row] = ids
    return [row or [tokenizer.pad_token_id] for row in tokens]  # an empty text has no tokens if the tokenizer adds none


def fingerprint(encoder: str) -> str:
    """Return an identifier of the encoder's content: a hash of its folder, or its revision on the hub."""
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
    """Refuse, with a ConfigError, a `max_length` that the encoder cannot process. encoder: its name, for messages."""
    limit = min(getattr(model.config, "max_position_embeddings", max_length), tokenizer.model_max_length)
    least = tokenizer.num_special_tokens_to_add() + 1
    if not least <= max_length <= limit:
        raise ConfigError(f"max_length is {max_length}; {encoder} takes {least} to {limit} tokens")


def read_array(file: Path) -> np.ndarray | None:
    """Return the array in a file, memory-mapped; None if the file is missing or truncated."""
    try:
        array: np.ndarray = np.load(file, mmap_mode="r")
    except (OSError, ValueError):
        return None
    return array


def write_array(path: Path, arrays: Iterable[np.ndarray], shape: tuple[int, ...]) -> None:
    """Write arrays, concatenated along the first axis, as one array of this shape to the cache.

    arrays: consumed one at a time, so that they are never all in memory.
    """
    with cache_file(path) as aside, aside.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for array in arrays:
            file.write(array.tobytes())
