"""The student's objective L, from both players' predictions on a batch (Eqs. 3 and 9)."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from drift.core.accumulation import Forward
from drift.core.losses import supervised_loss
from drift.core.processes import Rows, gather_rows, global_rows, world_size
from drift.core.strategy import Response, Strategy


@dataclass(frozen=True)
class Parts:
    """What the last loss was made of; detached. A stacked game has a leading dimension of trials everywhere."""

    supervised: Tensor | None = None  # (), L_sup
    self_trained: Tensor | None = None  # (), mean ℓ_S, before `unlabeled_weight`
    log_p: Tensor | None = None  # (N, C), the teacher's log-probabilities
    log_y: Tensor | None = None  # (N, C), log ỹ
    omega: Tensor | None = None  # (N,), ω


@dataclass(frozen=True)
class Objective:
    """L = L_sup + λ mean ℓ_S, over this process's batch or the one it shares with others; see `Game` for the fields."""

    strategy: Strategy
    unlabeled_weight: float
    stacked: bool
    alone: bool

    @property
    def spread(self) -> bool:
        """Whether a batch is shared with other processes."""
        return not self.alone and world_size() > 1

    def answer(self, log_p: Tensor) -> tuple[Response, Rows, Tensor]:
        """The follower's response to this process's rows; the global batch it was made from, and ω on all of that."""
        with torch.set_grad_enabled(log_p.requires_grad and torch.is_grad_enabled()):
            rows = gather_rows(log_p) if self.spread else Rows(log_p, 0, log_p.shape[-2])
            response = self.strategy.respond(rows.log_p)
        omega = response.omega.detach()
        if self.spread:
            response = response.narrow(dim=1 if self.stacked else 0, start=rows.start, stop=rows.stop)
        return response, rows, omega

    def supervised(self, log_q: Tensor, y: Tensor) -> Tensor:
        """L_sup (Eq. 1), one value a trial."""
        losses = supervised_loss(log_q, y)
        rows = losses.shape[-1]
        return self._mean(losses, global_rows(rows, losses.device) if self.spread else rows)

    def __call__(self, played: Forward) -> tuple[Tensor, Parts, Parts]:
        """L, a scalar; what it was made of; and the teacher's part of that over all processes' rows."""
        losses, parts, everywhere = [], Parts(), Parts()
        if played.log_q_l is not None and played.y is not None:
            supervised = self.supervised(played.log_q_l, played.y)
            losses.append(supervised)
            parts = replace(parts, supervised=supervised.detach())
        if played.log_q is not None and played.log_p is not None:
            response, rows, omega = self.answer(played.log_p)
            self_trained = self._mean(self.strategy.loss(response, played.log_q), rows.total)
            losses.append(self.unlabeled_weight * self_trained)
            parts = replace(
                parts,
                self_trained=self_trained.detach(),
                log_p=played.log_p.detach(),
                log_y=response.log_y.detach(),
                omega=response.omega.detach(),
            )
            everywhere = Parts(log_p=rows.log_p.detach(), omega=omega)
        loss = losses[0] if len(losses) == 1 else losses[0] + losses[1]
        return loss.sum() if self.stacked else loss, parts, everywhere

    def _mean(self, losses: Tensor, total: int) -> Tensor:
        """The mean over the batch, `(..., N)` to `(...)`; over processes, this one's part of an average that is it."""
        return losses.sum(-1) * (world_size() / total) if self.spread else losses.mean(-1)
