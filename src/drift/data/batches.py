"""Which rows a step sees: index batches from a seeded stream that can be left and taken up again."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor


class EndlessBatches(Iterator[Tensor]):
    """Batches of exactly min(size, rows) for ever; no row comes a second time before every row has come once.

    All batches have one size because class masses are sums over the batch: a small rest would have noisy ones.
    """

    def __init__(self, rows: int, size: int, generator: torch.Generator) -> None:
        self.rows, self.size, self.generator = rows, min(size, rows), generator
        self._queue = torch.empty(0, dtype=torch.long)

    def __next__(self) -> Tensor:
        while len(self._queue) < self.size:
            self._queue = torch.cat([self._queue, torch.randperm(self.rows, generator=self.generator)])
        batch, self._queue = self._queue[: self.size], self._queue[self.size :]
        return batch

    def state_dict(self) -> dict[str, Tensor]:
        """Where the stream stands: the rows still due, and the generator (which other streams may share)."""
        return {"queue": self._queue.clone(), "generator": self.generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self._queue = state["queue"].clone()
        self.generator.set_state(state["generator"])
