"""The loop of Algorithm 1: batches in, a moved student out. There is no other loop in the project."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler

from drift.data.examples import Batch
from drift.methods.method import Method
from drift.training.devices import SingleProcess


class Callback:
    """What looks on while a phase runs; by default it sees nothing."""

    def before_move(self, step: int, loss: Tensor, batches: list[Batch]) -> None:
        """Gradients are complete, nothing has moved. The step is counted from 1; the loss is detached."""

    def after_move(self, step: int) -> bool:
        """Student and teacher have moved. True ends the phase here."""
        return False


class OptimizerLike(Protocol):
    """What the loop asks of an optimiser, accelerate's or torch's."""

    def step(self) -> Any: ...
    def zero_grad(self) -> Any: ...


@dataclass
class Phase:
    """One stretch of training: whose loss, on which batches, moved by which optimiser.

    initial: the loss is the one that finds θinit; no teacher follows. batches: the micro-batches of every step, whose
    losses are summed: where there are several, each has the step's `totals`.
    exact: micro-batches have the class masses of the whole batch. clip: the longest gradient, both terms together.
    """

    method: Method
    batches: Iterator[list[Batch]]
    optimizer: OptimizerLike
    initial: bool = False
    schedule: LRScheduler | None = None
    clip: float | None = None
    exact: bool = False
    machine: SingleProcess = field(default_factory=SingleProcess)

    def run(self, steps: Iterable[int], watch: Callback | None = None) -> int:
        """Take these steps, or fewer if the watch says so; gives back the last one taken, 0 if none."""
        watch = watch or Callback()
        step = 0
        self.method.student.train()
        for step in steps:
            batches = next(self.batches)
            loss = self._gradients(batches)
            watch.before_move(step, loss, batches)
            if self.clip is not None:
                self.machine.clip(self.method.student, self.clip)
            self.optimizer.step()
            if self.schedule is not None:
                self.schedule.step()
            self.optimizer.zero_grad()  # after the step: nothing of this batch is kept through the next forward
            if not self.initial:
                self.method.follow()
            if watch.after_move(step):
                break
        return step

    def _gradients(self, batches: list[Batch]) -> Tensor:
        """Fill the student's gradients from all micro-batches; gives back the loss, detached."""
        if self.exact and not self.initial:
            return self.method.accumulate(batches, backward=self.machine.backward)
        losses = []
        *earlier, last = batches
        for batch in earlier:
            with self.machine.not_yet_reduced(self._players()):
                losses.append(self._backward(batch, merge=False))
        losses.append(self._backward(last, merge=True))
        return torch.stack(losses).sum() if earlier else losses[0]

    def _backward(self, batch: Batch, *, merge: bool) -> Tensor:
        loss = self.method.initial_loss(batch) if self.initial else self.method.loss(batch)
        if self.initial:
            self.machine.backward(loss)
        else:
            self.method.backward(loss, backward=self.machine.backward, merge=merge)
        return loss.detach()

    def _players(self) -> list[torch.nn.Module]:
        teacher = self.method.teacher
        return [self.method.student] if teacher is None else [self.method.student, teacher]
