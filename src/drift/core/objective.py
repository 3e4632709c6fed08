"""The student's objective L, computed from both players' predictions on a batch (Eqs. 3 and 9)."""

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
    """The parts of the last loss in this process, detached. If stacked, every shape has a leading trial dimension."""

    supervised: Tensor | None = None  # (), L_sup
    self_trained: Tensor | None = None  # (), mean ℓ_S, before `unlabeled_weight`
    log_p: Tensor | None = None  # (N, C), the teacher's log-probabilities
    log_y: Tensor | None = None  # (N, C), log ỹ
    omega: Tensor | None = None  # (N,), ω


class Totals(NamedTuple):
    """Number of labelled and unlabelled rows in one optimiser step, over all its micro-batches and processes."""

    labeled: int
    unlabeled: int


@dataclass(frozen=True)
class Objective:
    """L = L_sup + λ mean ℓ_S, over this process's batch or the batch of all processes. For the fields, see `Game`."""

    strategy: Strategy
    unlabeled_weight: float
    stacked: bool
    single_process: bool

    @property
    def processes(self) -> int:
        """Number of processes that share a batch."""
        return 1 if self.single_process else world_size()

    @property
    def spread(self) -> bool:
        """Whether a batch is spread over several processes."""
        return self.processes > 1

    def answer(self, log_p: Tensor) -> tuple[Response, Rows, Tensor]:
        """The follower's response to the teacher's log-probabilities, computed over the rows of all processes.

        log_p: `(..., N, C)`, this process's rows. Returns the response for those rows, the global batch, and ω on the
        global batch.
        """
        with torch.set_grad_enabled(log_p.requires_grad and torch.is_grad_enabled()):
            rows = gather_rows(log_p) if self.spread else Rows(log_p, 0, log_p.shape[-2])
            response = self.strategy.respond(rows.log_p)
        omega = response.omega.detach()
        if self.spread:
            response = response.narrow(dim=1 if self.stacked else 0, start=rows.start, stop=rows.stop)
        return response, rows, omega

    def __call__(
        self, forward: Forward, labeled: int | None = None, pseudo_labeled: int | None = None
    ) -> tuple[Tensor, Parts, Parts]:
        """The loss and its parts.

        forward: both players' predictions. labeled, pseudo_labeled: number of rows in the step with a label and with a
        pseudo-label; see `mean`. Returns L (a scalar), its parts in this process, and the teacher's part over the rows
        of all processes.
        """
        losses, parts, global_parts = [], Parts(), Parts()
        if forward.log_q_l is not None and forward.y is not None:
            supervised = supervised_loss(forward.log_q_l, forward.y)
            losses.append(self.mean(supervised, labeled))
            parts = replace(parts, supervised=supervised.detach().mean(-1))
        if forward.log_q is not None and forward.log_p is not None:
            response, rows, omega = self.answer(forward.log_p)
            if pseudo_labeled is None and self.spread:
                pseudo_labeled = rows.total
            self_trained = self.strategy.loss(response, forward.log_q)
            losses.append(self.unlabeled_weight * self.mean(self_trained, pseudo_labeled))
            parts = replace(
                parts,
                self_trained=self_trained.detach().mean(-1),
                log_p=forward.log_p.detach(),
                log_y=response.log_y.detach(),
                omega=response.omega.detach(),
            )
            global_parts = Parts(log_p=rows.log_p.detach(), omega=omega)
        loss = losses[0] if len(losses) == 1 else losses[0] + losses[1]
        return loss.sum() if self.stacked else loss, parts, global_parts

    def mean(self, losses: Tensor, total: int | Tensor | None = None) -> Tensor:
        """The mean over a step, `(..., N)` to `(...)`, or the contribution of this call to it.

        losses: one value per row. total: number of rows in the step; default: the rows of this call, on all processes.

        Contributions are summed over micro-batches, and averaged over processes, as their gradients are.
        """
        if total is None and not self.spread:
            return losses.mean(-1)
        if total is None:
            total = global_rows(losses.shape[-1], losses.device)
        return losses.sum(-1) * (self.processes / total)

    def everywhere(self, local: Tensor) -> Tensor:
        """The rows of all processes `(..., N, C)`, in rank order; differentiable. local: this process's rows."""
        return gather_rows(local).log_p if self.spread else local
