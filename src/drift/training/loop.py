"""The loop of Algorithm 1: batches in, a trained student out. The project has no other training loop."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler

from drift.data.examples import Batch
from drift.methods.method import Method
from drift.training.callbacks import Callback, TrainingState
from drift.training.devices import SingleProcess


class OptimizerLike(Protocol):
    """The part of an optimizer that the loop calls: accelerate's wrapper or torch's own."""

    def step(self) -> Any: ...
    def zero_grad(self) -> Any: ...


@dataclass
class Phase:
    """One phase of training.

    method: provides the loss.
    batches: the micro-batches of every step. Their losses are summed: where a step has several, each batch knows the
        step's `totals`.
    initial: use the loss that finds θinit; no teacher follows.
    clip: maximum gradient norm (leader + interaction).
    exact: micro-batches use the class masses of the whole batch.
    """

    method: Method
    batches: Iterator[list[Batch]]
    optimizer: OptimizerLike
    initial: bool = False
    schedule: LRScheduler | None = None
    clip: float | None = None
    exact: bool = False
    machine: SingleProcess = field(default_factory=SingleProcess)

    def run(
        self, steps: Iterable[int], callbacks: Sequence[Callback] = (), state: TrainingState | None = None
    ) -> TrainingState:
        """Take these steps, or fewer if a callback sets `state.stop`; returns the state after the last step."""
        state = TrainingState(self.method) if state is None else state
        self.method.student.train()
        for step in steps:
            state.batches = next(self.batches)
            loss = self._gradients(list(state.batches))
            state.step = step
            if callbacks:  # reading the loss waits for the device; without callbacks nobody looks at it
                state.loss = self.machine.mean(loss.item())
            for callback in callbacks:
                callback.on_backward_end(state)
            if self.clip is not None:
                self.machine.clip(self.method.student, self.clip)
            self.optimizer.step()
            if self.schedule is not None:
                self.schedule.step()
            self.optimizer.zero_grad()  # after the step: no gradient of this batch is kept through the next forward
            if not self.initial:
                self.method.follow()
            state.total_steps += 1
            for callback in callbacks:
                callback.on_step_end(state)
            if state.stop:
                break
        return state

    def _gradients(self, batches: list[Batch]) -> Tensor:
        """Fill the student's gradients from all micro-batches; returns the loss, detached."""
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
