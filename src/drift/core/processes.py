"""One batch spread over processes: what is said of "the batch" is said of all of it, and gradients cross over.

Every process gathers the teacher's log-probabilities of the whole global batch, N x C numbers, answers them as one
process would, and keeps its own rows. So any strategy, a user's too, sees the global batch, class masses are sums over
it, and the gradient of a row's label reaches the rows of other processes. With sums over a process's
rows multiplied by R/N (R processes, N rows in all), the usual average of gradients over processes is the gradient of
the mean over the global batch; shards need not be equal.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor


def world_size() -> int:
    """How many processes share a batch; 1 where torch.distributed is not in use."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


@dataclass(frozen=True)
class Rows:
    """The global batch and where this process's rows are in it. log_p: `(..., N, C)`, N over all processes."""

    log_p: Tensor
    start: int
    stop: int

    @property
    def total(self) -> int:
        return self.log_p.shape[-2]


def gather_rows(log_p: Tensor) -> Rows:
    """Join the rows of all processes, in their order; differentiable in every process's part."""
    counts = _counts(log_p.shape[-2], log_p.device)
    start = sum(counts[: dist.get_rank()])
    rows: Tensor = _Gather.apply(log_p, counts)  # type: ignore[no-untyped-call]
    return Rows(rows, start, start + log_p.shape[-2])


def global_rows(rows: int, device: torch.device) -> int:
    """How many rows all processes have together."""
    return sum(_counts(rows, device))


def _counts(rows: int, device: torch.device) -> list[int]:
    found = [torch.empty(1, dtype=torch.int64, device=device) for _ in range(world_size())]
    dist.all_gather(found, torch.tensor([rows], device=device))
    return [int(count) for count in found]


class _Gather(torch.autograd.Function):
    """All processes' rows, padded to equal size on the way; backward sums what every process says about ours."""

    @staticmethod
    def forward(ctx, local: Tensor, counts: list[int]) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.counts = counts
        padded = local.new_zeros(*local.shape[:-2], max(counts), local.shape[-1])
        padded[..., : local.shape[-2], :] = local
        parts = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(parts, padded)
        return torch.cat([part[..., :count, :] for part, count in zip(parts, counts, strict=True)], dim=-2)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[no-untyped-def]
        total = gradient.contiguous()
        dist.all_reduce(total)
        start = sum(ctx.counts[: dist.get_rank()])
        return total[..., start : start + ctx.counts[dist.get_rank()], :], None
