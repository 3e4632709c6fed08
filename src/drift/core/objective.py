"""The student's objective L, from both players' predictions on a batch (Eqs. 3 and 9)."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from drift.core.accumulation import Forward
from drift.core.losses import supervised_loss
from drift.core.processes import Rows, gather_rows, global_rows, world_size
from drift.core.strategy import Response, Strategy


@dataclass(frozen=True)
class Parts:
    """What the last loss was made of, in this process; detached. Stacked, a dimension of trials leads everywhere."""

    supervised: Tensor | None = None  # (), L_sup
    self_trained: Tensor | None = None  # (), mean ℓ_S, before `unlabeled_weight`
    log_p: Tensor | None = None  # (N, C), the teacher's log-probabilities
    log_y: Tensor | None = None  # (N, C), log ỹ
    omega: Tensor | None = None  # (N,), ω


class Totals(NamedTuple):
    """How many rows of either kind an optimiser step has, over all its micro-batches and processes."""

    labeled: int
    unlabeled: int


@dataclass(frozen=True)
class Objective:
    """L = L_sup + λ mean ℓ_S, over this process's batch or the one it shares with others; see `Game` for the fields."""

    strategy: Strategy
    unlabeled_weight: float
    stacked: bool
    single_process: bool

    @property
    def processes(self) -> int:
        """How many share a batch."""
        return 1 if self.single_process else world_size()

    @property
    def spread(self) -> bool:
        return self.processes > 1

    def answer(self, log_p: Tensor) -> tuple[Response, Rows, Tensor]:
        """The follower's response to this process's rows; the global batch it was made from, and ω on all of that."""
        with torch.set_grad_enabled(log_p.requires_grad and torch.is_grad_enabled()):
            rows = gather_rows(log_p) if self.spread else Rows(log_p, 0, log_p.shape[-2])
            response = self.strategy.respond(rows.log_p)
        omega = response.omega.detach()
        if self.spread:
            response = response.narrow(dim=1 if self.stacked else 0, start=rows.start, stop=rows.stop)
        return response, rows, omega

    def __call__(
        self, played: Forward, labeled: int | None = None, pseudo_labeled: int | None = None
    ) -> tuple[Tensor, Parts, Parts]:
        """L, a scalar; what it was made of; and the teacher's part of that over all processes' rows.

        labeled, pseudo_labeled: rows of the step that have either kind of label, see `mean`.
        """
        losses, parts, everywhere = [], Parts(), Parts()
        if played.log_q_l is not None and played.y is not None:
            supervised = supervised_loss(played.log_q_l, played.y)
            losses.append(self.mean(supervised, labeled))
            parts = replace(parts, supervised=supervised.detach().mean(-1))
        if played.log_q is not None and played.log_p is not None:
            response, rows, omega = self.answer(played.log_p)
            if pseudo_labeled is None and self.spread:
                pseudo_labeled = rows.total
            self_trained = self.strategy.loss(response, played.log_q)
            losses.append(self.unlabeled_weight * self.mean(self_trained, pseudo_labeled))
            parts = replace(
                parts,
                self_trained=self_trained.detach().mean(-1),
                log_p=played.log_p.detach(),
                log_y=response.log_y.detach(),
                omega=response.omega.detach(),
            )
            everywhere = Parts(log_p=rows.log_p.detach(), omega=omega)
        loss = losses[0] if len(losses) == 1 else losses[0] + losses[1]
        return loss.sum() if self.stacked else loss, parts, everywhere

    def mean(self, losses: Tensor, total: int | Tensor | None = None) -> Tensor:
        """The mean over a step, `(..., N)` to `(...)`, or this call's part of it.

        Parts are summed over micro-batches, and averaged over processes as their gradients are. total: rows of the
        step; if left out, it is this call alone, on all processes.
        """
        if total is None and not self.spread:
            return losses.mean(-1)
        if total is None:
            total = global_rows(losses.shape[-1], losses.device)
        return losses.sum(-1) * (self.processes / total)

    def everywhere(self, own: Tensor) -> Tensor:
        """All processes' rows `(..., N, C)`, in their order; differentiable."""
        return gather_rows(own).log_p if self.spread else own
