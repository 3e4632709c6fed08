"""Which rows a step sees: index batches from a seeded stream."""

from collections.abc import Iterator

import torch
from torch import Tensor


def endless_batches(rows: int, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Batches of exactly min(size, rows) for ever; no row comes a second time before every row has come once.

    All batches have one size because class masses are sums over the batch: a small rest would have noisy ones.
    """
    size = min(size, rows)
    queue = torch.empty(0, dtype=torch.long)
    while True:
        while len(queue) < size:
            queue = torch.cat([queue, torch.randperm(rows, generator=generator)])
        yield queue[:size]
        queue = queue[size:]
