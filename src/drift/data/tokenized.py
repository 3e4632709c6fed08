"""Texts as token ids, made once and memory-mapped: any rows as a padded batch, in a fraction of a millisecond."""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor

from drift.data.cache import cache_file, cache_folder, content_key
from drift.data.texts import CHUNK, checked
from drift.errors import ConfigError, DataError

if TYPE_CHECKING:
    import datasets

Progress = Callable[[str, int], AbstractContextManager[Callable[[], None]]]


class Tokenizer(Protocol):
    """A fast tokenizer of transformers, or an object with a `key` that changes whenever its answers would."""

    @property
    def pad_token_id(self) -> int | None: ...

    def __call__(self, texts: list[str], /, *, truncation: bool, max_length: int) -> Mapping[str, Any]:
        """The token ids of each text under "input_ids", at most `max_length` with special tokens."""


class TokenizedTexts:
    """Token ids in a memory-mapped Arrow file.

    lengths: the tokens of each row, special ones included. counts: None, as a text has one class.
    truncated: how many rows were cut to fit.
    """

    counts, at_once = None, 128

    def __init__(self, file: Path, *, pad_token_id: int) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        self.pad_token_id = pad_token_id
        table = pa.ipc.open_stream(pa.memory_map(str(file))).read_all()
        columns = table.column("input_ids").chunks
        # Views of the file, not copies: all of `inputs` takes less time than dataset[rows], which makes Python lists.
        self._chunks = [(column.offsets.to_numpy(), column.values.to_numpy()) for column in columns]
        self._first_rows = np.cumsum([0, *map(len, columns)])
        self.lengths = np.concatenate([np.empty(0, np.int32), *(np.diff(offsets) for offsets, _ in self._chunks)])
        self.truncated: int = pc.sum(table.column("truncated"), min_count=0).as_py()

    def __len__(self) -> int:
        return len(self.lengths)

    def inputs(self, rows: Sequence[int] | Tensor, *, pad_to: int | None = None) -> dict[str, Tensor]:
        """`input_ids` and `attention_mask` of these rows (N, L), padded on the right to the longest or to `pad_to`.

        There are no `token_type_ids`: where a model has them, it takes them as zeros.
        """
        wanted = np.asarray(rows, dtype=np.int64)
        if ((wanted < 0) | (wanted >= len(self))).any():
            raise IndexError(f"rows {wanted.min()} to {wanted.max()} of {len(self)}, which are counted from 0")
        lengths = self.lengths[wanted]
        longest = int(lengths.max(initial=0))
        if pad_to is not None and pad_to < longest:
            raise ConfigError(f"pad_to={pad_to} is less than the {longest} tokens of a row; give max_length")
        ids = np.full((len(wanted), pad_to or longest), self.pad_token_id, dtype=np.int64)
        chunks = np.searchsorted(self._first_rows, wanted, side="right") - 1
        for line, chunk, row in zip(ids, chunks, wanted - self._first_rows[chunks], strict=True):
            offsets, values = self._chunks[chunk]
            tokens = values[offsets[row] : offsets[row + 1]]
            line[: len(tokens)] = tokens
        mask = np.arange(ids.shape[1]) < lengths[:, None]
        return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask.astype(np.int64))}


def tokenize(
    texts: "datasets.Dataset | Sequence[str]",
    tokenizer: Tokenizer,
    *,
    max_length: int,
    progress: Progress | None = None,
) -> TokenizedTexts:
    """Token ids of texts (a dataset's column "text"), cut at `max_length` with special tokens.

    They are kept in the cache, named by the texts, the tokenizer and `max_length`: a second call tokenizes nothing.
    A fast tokenizer computes on all cores by itself. progress: gets a title and a number of ticks, gives a block
    with the function that ticks.
    """
    if (pad := tokenizer.pad_token_id) is None:
        raise ConfigError("the tokenizer has no padding token; set its pad_token")
    rows = checked(chain.from_iterable(_chunks(texts)))
    file = cache_folder() / "tokens" / f"{content_key(rows, _key(tokenizer), max_length)}.arrow"
    if not file.exists():
        with cache_file(file) as aside, (progress or silent)("Tokenizing", math.ceil(len(texts) / CHUNK)) as tick:
            _write(aside, _chunks(texts), tokenizer, max_length, tick)
    return TokenizedTexts(file, pad_token_id=pad)


def silent(title: str, total: int) -> AbstractContextManager[Callable[[], None]]:
    """Progress that nobody sees."""
    return nullcontext(lambda: None)


def _chunks(texts: "datasets.Dataset | Sequence[str]") -> Iterator[list[str]]:
    import datasets

    if not isinstance(texts, datasets.Dataset):
        for start in range(0, len(texts), CHUNK):
            yield list(texts[start : start + CHUNK])
        return
    if "text" not in texts.column_names:
        raise DataError(f'the dataset has the columns {texts.column_names}; rename the one with texts to "text"')
    for table in texts.with_format("arrow", columns=["text"]).iter(CHUNK):
        yield table["text"].to_pylist()


def _key(tokenizer: Any) -> str:
    """A name for what the tokenizer does."""
    if key := getattr(tokenizer, "key", None):
        return str(key)
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise ConfigError(f"{type(tokenizer).__name__} is no fast tokenizer and has no `key` to be known by; give one")
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    content |= {"truncation": tokenizer.truncation_side, "padding": None}  # else these two say how it was called last
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _write(
    file: Path, chunks: Iterator[list[str]], tokenizer: Tokenizer, max_length: int, tick: Callable[[], None]
) -> None:
    import pyarrow as pa

    least = len(tokenizer([""], truncation=False, max_length=max_length)["input_ids"][0])
    if max_length < least:
        raise ConfigError(f"max_length={max_length} is less than the {least} tokens of an empty text; raise it")
    schema = pa.schema({"input_ids": pa.list_(pa.int32()), "truncated": pa.bool_()})
    with file.open("wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        for chunk in chunks:
            encoded = tokenizer(chunk, truncation=True, max_length=max_length)
            columns = {"input_ids": encoded["input_ids"], "truncated": _cut(encoded, chunk, tokenizer, max_length)}
            writer.write_batch(pa.RecordBatch.from_pydict(columns, schema))
            tick()


def _cut(encoded: Mapping[str, Any], texts: list[str], tokenizer: Tokenizer, max_length: int) -> list[bool]:
    """Which rows lost tokens: a fast tokenizer knows; from any other, full rows are asked for with one token more."""
    if encodings := getattr(encoded, "encodings", None):
        return [bool(encoding.overflowing) for encoding in encodings]
    full = [len(ids) == max_length for ids in encoded["input_ids"]]
    longer = iter(tokenizer(list(compress(texts, full)), truncation=True, max_length=max_length + 1)["input_ids"])
    return [is_full and len(next(longer)) > max_length for is_full in full]
