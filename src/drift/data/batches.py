"""Row numbers in batches: an endless seeded stream that can be saved and resumed, and batches of similar length."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

POOL = 64  # batches: rows are sorted by length within a pool of this many


class EndlessBatches(Iterator[Tensor]):
    """An endless stream of batches of exactly min(size, rows) row numbers. Every row comes once per epoch.

    All batches have the same size because class masses are sums over the batch: in a small last batch they would be
    noisy.

    rows: number of rows. size: rows per batch. generator: source of the random order. lengths: length of each row,
    `(rows,)`; if given, a batch holds rows of similar length, so that little of it is padding. Rows are then shuffled,
    cut into pools of 64 batches and sorted by length within a pool; the batches of a pool come in random order.
    """

    def __init__(self, rows: int, size: int, generator: torch.Generator, *, lengths: np.ndarray | None = None) -> None:
        self.rows, self.size, self.generator = rows, min(size, rows), generator
        self.lengths = None if lengths is None else torch.from_numpy(np.asarray(lengths))
        self._epoch = torch.empty(0, dtype=torch.long)  # rows of this epoch that are not in batches yet
        self._ready = torch.empty(0, dtype=torch.long)  # prepared batches, concatenated

    def __next__(self) -> Tensor:
        if not len(self._ready):
            self._prepare()
        batch, self._ready = self._ready[: self.size], self._ready[self.size :]
        return batch

    def _prepare(self) -> None:
        remaining = len(self._epoch)
        if remaining < self.size:
            self._epoch = torch.cat([self._epoch, torch.randperm(self.rows, generator=self.generator)])
        if 0 < remaining < self.size:  # this batch spans two epochs
            pool = self.size
        else:
            whole = len(self._epoch) // self.size
            pool = self.size * (whole if self.lengths is None else min(whole, POOL))
        self._ready, self._epoch = self._epoch[:pool], self._epoch[pool:]
        if self.lengths is not None and pool > self.size:
            by_length = self._ready[torch.argsort(self.lengths[self._ready], stable=True)].view(-1, self.size)
            self._ready = by_length[torch.randperm(len(by_length), generator=self.generator)].flatten()

    def state_dict(self) -> dict[str, Tensor]:
        """The state of the stream: the remaining rows, and the generator (which other streams may share)."""
        return {
            "epoch": self._epoch.clone(),
            "ready": self._ready.clone(),
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Resume from a state returned by `state_dict`."""
        self._epoch, self._ready = state["epoch"].clone(), state["ready"].clone()
        self.generator.set_state(state["generator"])


def ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The numbers start, ..., start + count - 1 of every (start, count), concatenated."""
    ends = np.cumsum(counts)
    numbers: np.ndarray = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - counts), counts)
    return numbers


def pad_rows(
    rows: Sequence[Sequence[int] | np.ndarray], padding: int, *, length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Token ids and attention mask of rows of different length, both `(N, L)` in int64, padded on the right.

    rows: the token ids of each row. padding: the id that fills the rest of a row. length: L, which must be at least
    the longest row's length (default: the longest row's length). The mask is 1 on tokens and 0 on padding.
    """
    # Arrays rather than `tokenizer.pad`: this runs in every training step, and `pad` makes Python lists first.
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    ids = np.full((len(rows), int(lengths.max(initial=0)) if length is None else length), padding, dtype=np.int64)
    for line, row in zip(ids, rows, strict=True):
        line[: len(row)] = row
    mask = (np.arange(ids.shape[1]) < lengths[:, None]).astype(np.int64)
    return torch.from_numpy(ids), torch.from_numpy(mask)


def batches_by_length(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Row numbers in batches of similar length, so that little of a batch is padding; the longest rows come first.

    lengths: tokens of each row, at least 1. batch_tokens: maximum number of tokens in a batch, padding included; a
    longer row is a batch of its own.
    """
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    batches = []
    while order:
        size = max(1, batch_tokens // lengths[order[0]])
        batches.append(order[:size])
        order = order[size:]
    return batches


def some_rows(rows: int, wanted: int | None, *, seed: int) -> np.ndarray | None:
    """`wanted` random row numbers below `rows`, in random order; None, meaning all rows in order, if that is all."""
    return None if wanted is None or wanted >= rows else np.random.default_rng(seed).permutation(rows)[:wanted]
