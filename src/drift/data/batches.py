"""Which rows a step sees: index batches from a seeded stream that can be left and taken up again."""

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

POOL = 64  # batches: rows of like length are looked for among as many as these hold


class EndlessBatches(Iterator[Tensor]):
    """Batches of exactly min(size, rows) for ever; no row comes a second time before every row has come once.

    All batches have one size because class masses are sums over the batch: a small rest would have noisy ones.
    lengths: `(rows,)`; if given, a batch is made of rows of like length, so that little of it is padding: the order
    stays random beyond pools of 64 batches, rows of a pool are sorted by length, and its batches come in random order.
    """

    def __init__(self, rows: int, size: int, generator: torch.Generator, *, lengths: np.ndarray | None = None) -> None:
        self.rows, self.size, self.generator = rows, min(size, rows), generator
        self.lengths = None if lengths is None else torch.from_numpy(np.asarray(lengths))
        self._epoch = torch.empty(0, dtype=torch.long)  # rows of this epoch still to be put in batches
        self._ready = torch.empty(0, dtype=torch.long)  # batches of this epoch, end to end

    def __next__(self) -> Tensor:
        if not len(self._ready):
            self._prepare()
        batch, self._ready = self._ready[: self.size], self._ready[self.size :]
        return batch

    def _prepare(self) -> None:
        left = len(self._epoch)
        if left < self.size:
            self._epoch = torch.cat([self._epoch, torch.randperm(self.rows, generator=self.generator)])
        if 0 < left < self.size:  # this one batch straddles two epochs
            pool = self.size
        else:
            whole = len(self._epoch) // self.size
            pool = self.size * (whole if self.lengths is None else min(whole, POOL))
        self._ready, self._epoch = self._epoch[:pool], self._epoch[pool:]
        if self.lengths is not None and pool > self.size:
            by_length = self._ready[torch.argsort(self.lengths[self._ready], stable=True)].view(-1, self.size)
            self._ready = by_length[torch.randperm(len(by_length), generator=self.generator)].flatten()

    def state_dict(self) -> dict[str, Tensor]:
        """Where the stream stands: the rows still due, and the generator (which other streams may share)."""
        return {
            "epoch": self._epoch.clone(),
            "ready": self._ready.clone(),
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self._epoch, self._ready = state["epoch"].clone(), state["ready"].clone()
        self.generator.set_state(state["generator"])


def ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The numbers start, start + 1, ... of every start, `count` of them, one after another."""
    ends = np.cumsum(counts)
    numbers: np.ndarray = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - counts), counts)
    return numbers
