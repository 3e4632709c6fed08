"""Text embeddings from a fixed encoder, computed once per text and cached on disk."""

import copy
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import nn

from drift.data.batches import batches_by_length, pad_rows
from drift.data.texts import checked
from drift.data.tokenized import Progress, lost_tokens, silent
from drift.data.vector_store import VectorStore, text_keys
from drift.errors import ConfigError, FileError
from drift.models.devices import best_device, device_of
from drift.models.encoders import POOLS, encoder_pool, load_encoder, text_vectors
from drift.models.late_encoder import late_encoder, read_encoder
from drift.models.locating import folder_fingerprint
from drift.models.precision import chosen_precision, in_precision

FORMAT = "embeddings/2"  # increase it when the same texts and encoder give different vectors
TEXTS_PER_FILE = 1024  # at most this many are lost in a crash; enough to batch texts of similar length
FILES_TO_MERGE = 16
ATTEMPTS = 5  # to assemble a file while other processes tidy the cache
BATCH_TOKENS = 1024  # tokens per forward pass, padding included
CHARACTERS_PER_TOKEN = 16  # far more than a token has on average: bounds how much of a long text is tokenised
UNLIMITED = 10**9  # tokens, of encoders without a limit


@dataclass(frozen=True)
class Embedded:
    """Vectors of texts, `(n, D)` in float32, how many of the texts were truncated, and which, `(n,)`."""

    vectors: np.ndarray
    truncated: int
    truncated_rows: np.ndarray | None = None


def embed(texts: Sequence[str], encoder: str, **settings: Any) -> np.ndarray:
    """Return one vector per text, `(n, D)` in float32, memory-mapped. texts, encoder, settings: see `Embedder`."""
    options = {name: settings.pop(name) for name in ("progress", "jobs") if name in settings}
    return Embedder(encoder, **settings).embed(texts, **options).vectors


class Embedder:
    """A fixed encoder with a store of the vectors that it has computed; the encoder is loaded when it is needed.

    encoder: name or folder, as for `load_encoder`.
    max_length: maximum number of tokens per text; further tokens are ignored.
    pool: how token vectors are combined, as for `text_vectors`; "auto": see `encoder_pool`.
    precision: as for `chosen_precision`.
    batch_tokens: maximum number of tokens per forward pass, padding included.
    loaded: the encoder in float32, or a late one, and its tokenizer, if they are in memory already.
    identity: of the encoder's content; default: `fingerprint`.

    A `max_length` that the encoder cannot read is refused; `Embedder.of` lowers it.
    """

    def __init__(
        self,
        encoder: str,
        *,
        max_length: int = 128,
        pool: str = "mean",
        precision: str = "float32",
        batch_tokens: int = BATCH_TOKENS,
        loaded: tuple[Any, Any] | None = None,
        identity: str | None = None,
    ) -> None:
        pool = encoder_pool(encoder) if pool == "auto" else pool
        if pool not in POOLS:
            raise ConfigError(f"pool is {pool!r}; give one of {', '.join(POOLS)}")
        self.encoder, self.max_length, self.pool, self.batch_tokens = encoder, max_length, pool, batch_tokens
        self.precision = chosen_precision(precision)
        self.identity = identity or fingerprint(encoder)
        self._loaded = loaded
        self._model: nn.Module | None = None
        self._stored = True
        self._store: VectorStore | None = None
        self._parts: list[Path] = []  # files of few texts, which are merged when there are many

    @classmethod
    def of(cls, encoder: str, *, max_length: int, pool: str = "auto", precision: str = "auto") -> Self:
        """An embedder that reads as many tokens as the encoder can, at most `max_length`.

        The weights of an encoder in a folder are read when they are first needed.
        """
        model, tokenizer = late_encoder(encoder)
        length = min(max_length, longest(model, tokenizer))
        return cls(encoder, max_length=length, pool=pool, precision=precision, loaded=(model, tokenizer))

    @property
    def settings(self) -> tuple[object, ...]:
        """What the vectors depend on besides the text."""
        return FORMAT, self.identity, self.max_length, self.pool, self.precision

    def embed(self, texts: Sequence[str], *, jobs: int | None = None, progress: Progress | None = None) -> Embedded:
        """Vectors of many texts, memory-mapped from one file, which is written first if it does not exist.

        texts: any sequence.
        jobs: number of concurrent forward passes; None: torch's threads. The vectors do not depend on it.
        progress: `progress(title, total)` returns a context manager that yields a function to call once per text.
        """
        keys = text_keys(checked(texts))
        store = self._vectors_store()
        if (ready := store.whole(keys)) is None:
            self._compute(texts, keys, store, jobs, progress or silent)
            ready = store.whole(keys)
            assert ready is not None
        vectors, truncated = ready
        return Embedded(vectors, int(truncated.sum()), np.asarray(truncated, dtype=bool))

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of a few texts, `(n, D)`, in memory. Those that are not stored yet are computed and stored."""
        if not self._stored:
            return self._forward(list(checked(texts)))[0]
        keys, first, inverse = np.unique(text_keys(checked(texts)), axis=0, return_index=True, return_inverse=True)
        store = self._vectors_store()
        vectors = np.empty((len(keys), store.width), dtype=np.float32)
        try:
            positions = store.find(keys)
            vectors[positions >= 0] = store.read(positions[positions >= 0])
        except FileNotFoundError:  # another process has removed a file in between
            store.refresh()
            positions = np.full(len(keys), -1)
        if len(missing := np.flatnonzero(positions < 0)):
            vectors[missing], truncated = self._forward([texts[int(row)] for row in first[missing]])
            self._keep(store, keys[missing], truncated, vectors[missing])
        return np.asarray(vectors[inverse.reshape(-1)])

    def without_store(self) -> "Embedder":
        """The same encoder, whose `rows` neither reads nor writes the cache: for a service, whose texts are new."""
        model, tokenizer = self.load()
        check_length(self.max_length, self.encoder, model, tokenizer)
        other = copy.copy(self)
        other._stored = False
        return other

    def _keep(self, store: VectorStore, keys: np.ndarray, truncated: np.ndarray, vectors: np.ndarray) -> None:
        """Store vectors if the cache can be written to: a prediction does not need it."""
        try:
            self._parts.append(store.write(keys, truncated, [vectors]))
            if len(self._parts) >= FILES_TO_MERGE:
                store.merge(self._parts)
                self._parts.clear()
        except FileError:
            self._parts.clear()

    def _compute(
        self, texts: Sequence[str], keys: np.ndarray, store: VectorStore, jobs: int | None, progress: Progress
    ) -> None:
        """Write the file of all these texts; vectors that are stored already are copied."""
        parts: list[Path] = []
        with _one_thread_each(jobs) as workers, progress("Embedding texts", len(texts)) as tick:
            for _ in range(ATTEMPTS):
                parts += self._fill(texts, keys, store, workers, tick)
                positions = store.find(keys)
                if (positions >= 0).all() and store.whole(keys) is None:
                    pieces = np.array_split(positions, max(1, len(positions) // TEXTS_PER_FILE))
                    try:
                        whole = store.write(keys, store.truncated(positions), map(store.read, pieces))
                        break
                    except FileNotFoundError:  # another process has removed a file that is in its own one now
                        pass
                store.refresh()
                tick = _no_tick  # all texts were counted
                if store.whole(keys) is not None:
                    whole = store.file_of(keys)
                    break
            else:
                raise FileError("the cache loses files while they are in use; set a larger DRIFT_CACHE_SIZE")
        store.remove(part for part in parts if part != whole)

    def _fill(
        self,
        texts: Sequence[str],
        keys: np.ndarray,
        store: VectorStore,
        workers: ThreadPoolExecutor,
        tick: Callable[[], None],
    ) -> list[Path]:
        """Compute and store all vectors that are missing; return the files."""
        parts = []
        for start in range(0, len(texts), TEXTS_PER_FILE):
            here = keys[start : start + TEXTS_PER_FILE]
            missing = _distinct(np.flatnonzero(store.find(here) < 0), here)
            for _ in range(len(here) - len(missing)):
                tick()
            if len(missing):
                vectors, truncated = self._forward([texts[start + int(row)] for row in missing], workers, tick)
                parts.append(store.write(here[missing], truncated, [vectors]))
        return parts

    def _forward(
        self, texts: list[str], workers: ThreadPoolExecutor | None = None, tick: Callable[[], None] = lambda: None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Vectors, and which texts were truncated. workers: None uses torch's threads in every forward pass."""
        model, tokenizer = self._ready()
        tokens, truncated = _tokenized(tokenizer, texts, self.max_length)
        forward = partial(_vectors, model, tokens, pool=self.pool, padding=tokenizer.pad_token_id)
        vectors = np.empty((len(texts), self._width()), dtype=np.float32)
        batches = batches_by_length([len(row) for row in tokens], self.batch_tokens)
        results = map(forward, batches) if workers is None else workers.map(forward, batches)
        for rows, embedded in zip(batches, results, strict=True):
            vectors[rows] = embedded
            for _ in rows:
                tick()
        return vectors, np.array(truncated, dtype=bool)

    def _width(self) -> int:
        return int(self.load()[0].config.hidden_size) * (2 if self.pool == "layers" else 1)

    def _vectors_store(self) -> VectorStore:
        if self._store is None:
            model, tokenizer = self.load()
            check_length(self.max_length, self.encoder, model, tokenizer)
            self._store = VectorStore(self.settings, self._width())
        return self._store

    def __getstate__(self) -> dict[str, Any]:
        """Without open files, and without a second copy of the encoder."""
        return {**self.__dict__, "_store": None, "_model": None}

    def load(self) -> tuple[Any, Any]:
        """The encoder, which may be a late one, and its tokenizer."""
        if self._loaded is None:
            self._loaded = load_encoder(self.encoder)
        return self._loaded

    def _ready(self) -> tuple[nn.Module, Any]:
        """The encoder in the chosen precision on the accelerator, if there is one, and its tokenizer."""
        model, tokenizer = self.load()
        if self._model is None:
            self._model = in_precision(read_encoder(model), self.precision).to(best_device())
        return self._model, tokenizer


def _no_tick() -> None:
    """Nothing to show."""


def _distinct(rows: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """The first of the rows with each key, in order."""
    if not len(rows):
        return rows
    _, first = np.unique(keys[rows], axis=0, return_index=True)
    return rows[np.sort(first)]


@contextmanager
def _one_thread_each(jobs: int | None) -> Iterator[ThreadPoolExecutor]:
    """Workers that use one torch thread each: whole forward passes in parallel cost less than splitting each one."""
    threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(jobs or threads, initializer=torch.set_num_threads, initargs=(1,)) as workers:
            yield workers
    finally:
        torch.set_num_threads(threads)


def _vectors(model: nn.Module, tokens: list[list[int]], rows: list[int], *, pool: str, padding: int) -> np.ndarray:
    ids, mask = pad_rows([tokens[row] for row in rows], padding)
    device = device_of(model)
    with torch.inference_mode():
        return text_vectors(model, ids.to(device), mask.to(device), pool).float().cpu().numpy()


def _tokenized(tokenizer: Any, texts: list[str], max_length: int) -> tuple[list[list[int]], list[bool]]:
    """Return token ids, at most `max_length` per text, and which texts were truncated.

    A tokenizer reads a whole text before it truncates. So a long text is first cut between words. If too few tokens
    are left, the whole text is tokenised instead; the result is the same either way.
    """

    def token_ids(texts: list[str]) -> tuple[list[list[int]], list[bool]]:
        if not texts:
            return [], []
        encoded = tokenizer(texts, truncation=True, max_length=max_length)
        return encoded["input_ids"], lost_tokens(encoded, texts, tokenizer, max_length)

    enough = max_length * CHARACTERS_PER_TOKEN
    heads = [text if len(text) <= enough else text[:enough].rpartition(" ")[0] for text in texts]
    tokens, truncated = token_ids(heads)
    long = [row for row, text in enumerate(texts) if len(heads[row]) < len(text)]
    short = [row for row in long if len(tokens[row]) < max_length]
    for row in long:
        truncated[row] = truncated[row] or bool(texts[row][len(heads[row]) :].strip())
    for row, ids, lost in zip(short, *token_ids([texts[row] for row in short]), strict=True):
        tokens[row], truncated[row] = ids, lost
    # An empty text has no tokens if the tokenizer adds none.
    return [row or [tokenizer.pad_token_id] for row in tokens], truncated


def fingerprint(encoder: str) -> str:
    """Return an identifier of the encoder's content: a hash of its folder, or its revision on the hub."""
    if (found := folder_fingerprint(encoder)) is not None:
        return found
    model, _ = load_encoder(encoder)
    return f"{encoder}@{model.config._commit_hash}"


def longest(model: Any, tokenizer: Any) -> int:
    """The number of tokens that an encoder can read at most."""
    return int(min(getattr(model.config, "max_position_embeddings", UNLIMITED), tokenizer.model_max_length, UNLIMITED))


def check_length(max_length: int, encoder: str, model: Any, tokenizer: Any) -> None:
    """Refuse, with a ConfigError, a `max_length` that the encoder cannot process. encoder: its name, for messages."""
    limit = longest(model, tokenizer)
    least = tokenizer.num_special_tokens_to_add() + 1
    if not least <= max_length <= limit:
        raise ConfigError(f"max_length is {max_length}; {encoder} takes {least} to {limit} tokens")
