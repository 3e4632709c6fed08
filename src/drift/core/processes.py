"""One batch spread over processes: class masses are taken over the global batch, and gradients cross processes.

Every process gathers the teacher's log-probabilities of the global batch (N x C numbers), computes the response to all
of them, and keeps its own rows. So every strategy, including a user's own, sees the global batch; class masses are sums
over it; and the gradient of a row's label reaches the rows of other processes. Each process multiplies the sum over its
rows by R/N (R processes, N rows in total). The usual average of gradients over processes is then the gradient of the
mean over the global batch, also when processes have different numbers of rows.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor


def world_size() -> int:
    """Number of processes that share a batch; 1 if torch.distributed is not initialised."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


@dataclass(frozen=True)
class Rows:
    """The global batch, and the range of this process's rows in it.

    log_p: `(..., N, C)`, N over all processes. start, stop: this process has the rows [start, stop).
    """

    log_p: Tensor
    start: int
    stop: int

    @property
    def total(self) -> int:
        """N, the number of rows in the global batch."""
        return self.log_p.shape[-2]


def gather_rows(log_p: Tensor) -> Rows:
    """Concatenate the rows of all processes in rank order; differentiable in every process's rows.

    log_p: this process's rows, `(..., n, C)`.
    """
    counts = _counts(log_p.shape[-2], log_p.device)
    start = sum(counts[: dist.get_rank()])
    rows: Tensor = _Gather.apply(log_p, counts)  # type: ignore[no-untyped-call]
    return Rows(rows, start, start + log_p.shape[-2])


def global_rows(rows: int, device: torch.device) -> int:
    """Total number of rows over all processes. rows: those of this process; device: where to communicate."""
    return sum(_counts(rows, device))


def _counts(rows: int, device: torch.device) -> list[int]:
    counts = [torch.empty(1, dtype=torch.int64, device=device) for _ in range(world_size())]
    dist.all_gather(counts, torch.tensor([rows], device=device))
    return [int(count) for count in counts]


class _Gather(torch.autograd.Function):
    """Concatenates the rows of all processes. Backward sums every process's gradient with respect to our rows."""

    @staticmethod
    def forward(ctx, local: Tensor, counts: list[int]) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.counts = counts
        # all_gather needs equal sizes: rows are padded for the transfer.
        padded = local.new_zeros(*local.shape[:-2], max(counts), local.shape[-1])
        padded[..., : local.shape[-2], :] = local
        parts = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(parts, padded)
        return torch.cat([part[..., :count, :] for part, count in zip(parts, counts, strict=True)], dim=-2)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[no-untyped-def]
        # A copy: all_reduce works in place, and autograd or the caller may still hold the incoming gradient.
        total = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        start = sum(ctx.counts[: dist.get_rank()])
        return total[..., start : start + ctx.counts[dist.get_rank()], :], None
