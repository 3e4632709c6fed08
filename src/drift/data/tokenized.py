"""Token ids of texts, cached on disk and memory-mapped: padded batches of any rows in a fraction of a millisecond."""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from torch import Tensor

from drift.data.batches import pad_rows
from drift.data.cache import cache_file, cache_folder, content_key
from drift.data.sealed import is_sealed
from drift.data.texts import CHUNK, checked
from drift.errors import ConfigError, DataError

if TYPE_CHECKING:
    import datasets

Progress = Callable[[str, int], AbstractContextManager[Callable[[], None]]]
"""Called with a title and a number of ticks; returns a context manager that yields the function to call per tick."""


class Tokenizer(Protocol):
    """A fast tokenizer of transformers, or an object with a `key` that changes whenever its output would."""

    @property
    def pad_token_id(self) -> int | None: ...

    def __call__(self, texts: list[str], /, *, truncation: bool, max_length: int) -> Mapping[str, Any]:
        """The token ids of each text under "input_ids", at most `max_length` per text, including special tokens."""


class TokenizedTexts:
    """Token ids in a memory-mapped Arrow file, as examples.

    file: written by `tokenize`. pad_token_id: the id for padding.
    lengths: tokens per row, including special tokens. counts: None, as each text is one target. truncated: number of
    rows that were cut.
    """

    counts, at_once = None, 128

    def __init__(self, file: Path, *, pad_token_id: int) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        self.pad_token_id = pad_token_id
        table = pa.ipc.open_stream(pa.memory_map(str(file))).read_all()
        columns = table.column("input_ids").chunks
        # Views of the file, not copies: `inputs` takes less time than dataset[rows], which makes Python lists.
        self._chunks = [(column.offsets.to_numpy(), column.values.to_numpy()) for column in columns]
        self._first_rows = np.cumsum([0, *map(len, columns)])
        self.lengths = np.concatenate([np.empty(0, np.int32), *(np.diff(offsets) for offsets, _ in self._chunks)])
        self.truncated: int = pc.sum(table.column("truncated"), min_count=0).as_py()

    def __len__(self) -> int:
        return len(self.lengths)

    def inputs(self, rows: Sequence[int] | Tensor, *, pad_to: int | None = None) -> dict[str, Tensor]:
        """`input_ids` and `attention_mask` of these rows, `(N, L)`, padded on the right.

        rows: row numbers. pad_to: L; default: the longest of these rows. There are no `token_type_ids`: models that
        have them default to zeros.
        """
        wanted = np.asarray(rows, dtype=np.int64)
        if ((wanted < 0) | (wanted >= len(self))).any():
            raise IndexError(f"rows {wanted.min()} to {wanted.max()} of {len(self)}, which are counted from 0")
        longest = int(self.lengths[wanted].max(initial=0))
        if pad_to is not None and pad_to < longest:
            raise ConfigError(f"pad_to={pad_to} is less than the {longest} tokens of a row; give max_length")
        tokens = []
        chunks = np.searchsorted(self._first_rows, wanted, side="right") - 1
        for chunk, row in zip(chunks, wanted - self._first_rows[chunks], strict=True):
            offsets, values = self._chunks[chunk]
            tokens.append(values[offsets[row] : offsets[row + 1]])
        ids, mask = pad_rows(tokens, self.pad_token_id, length=pad_to or longest)
        return {"input_ids": ids, "attention_mask": mask}


def tokenize(
    texts: "datasets.Dataset | Sequence[str]",
    tokenizer: Tokenizer,
    *,
    max_length: int,
    progress: Progress | None = None,
) -> TokenizedTexts:
    """Tokenize texts, or read their token ids from the cache if they were tokenized before.

    texts: a sequence, or the column "text" of a dataset. tokenizer: see `Tokenizer`; a fast tokenizer uses all cores.
    max_length: maximum number of tokens per text, including special tokens. progress: see `Progress`.

    The cache is keyed by the texts, the tokenizer and `max_length`.
    """
    if (pad := tokenizer.pad_token_id) is None:
        raise ConfigError("the tokenizer has no padding token; set its pad_token")
    rows = checked(chain.from_iterable(_chunks(texts)))
    file = cache_folder() / "tokens" / f"{content_key(rows, _key(tokenizer), max_length)}.arrow"
    if not is_sealed(file):
        with cache_file(file) as aside, (progress or silent)("Tokenizing", math.ceil(len(texts) / CHUNK)) as tick:
            _write(aside, _chunks(texts), tokenizer, max_length, tick)
    return TokenizedTexts(file, pad_token_id=pad)


def silent(title: str, total: int) -> AbstractContextManager[Callable[[], None]]:
    """A `Progress` that shows nothing."""
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
    """A name that identifies what the tokenizer does."""
    if key := getattr(tokenizer, "key", None):
        return str(key)
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise ConfigError(f"{type(tokenizer).__name__} is no fast tokenizer and has no `key` to be known by; give one")
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    content |= {
        "truncation": tokenizer.truncation_side,
        "padding": None,
    }  # otherwise these two hold the options of the last call
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
            columns = {
                "input_ids": encoded["input_ids"],
                "truncated": lost_tokens(encoded, chunk, tokenizer, max_length),
            }
            writer.write_batch(pa.RecordBatch.from_pydict(columns, schema))
            tick()


def lost_tokens(encoded: Mapping[str, Any], texts: list[str], tokenizer: Tokenizer, max_length: int) -> list[bool]:
    """Which rows lost tokens. A fast tokenizer reports it; with others, full rows are tokenized with one more token."""
    if encodings := getattr(encoded, "encodings", None):
        return [bool(encoding.overflowing) for encoding in encodings]
    full = [len(ids) == max_length for ids in encoded["input_ids"]]
    longer = iter(tokenizer(list(compress(texts, full)), truncation=True, max_length=max_length + 1)["input_ids"])
    return [is_full and len(next(longer)) > max_length for is_full in full]
