"""Student and teacher, and their forward passes."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from drift.core.accumulation import Forward
from drift.core.checks import check_labels, check_pair
from drift.core.forward import Inputs, joined, log_probabilities
from drift.core.teacher import Follower, in_evaluation, undisturbed_buffers
from drift.errors import ShapeError


class Players:
    """The two players of a game.

    follower: moves the teacher, and switches its gradients on and off.
    stacked, full_graph: see `Game`.
    last_inputs: what the teacher was last called with.
    """

    def __init__(self, student: nn.Module, teacher: nn.Module, *, stacked: bool, full_graph: bool) -> None:
        self.student, self.teacher = student, teacher
        self.follower = Follower(teacher, student)
        self.stacked, self.full_graph = stacked, full_graph
        self.last_inputs: tuple[Inputs, ...] = ()
        self._classes: int | None = None

    def log_f(self, module: nn.Module, inputs: Inputs) -> Tensor:
        """log f(x, θ) of one of the players, `(..., N, C)`. The number of classes must not change."""
        first = self._classes is None
        log_p = log_probabilities(module, inputs, stacked=self.stacked, warn_of_probabilities=first)
        classes = log_p.shape[-1]
        if self._classes not in (None, classes):
            raise ShapeError(
                f"logits have {classes} classes, earlier ones had {self._classes}; keep the class set fixed"
            )
        self._classes = classes
        return log_p

    def teach(self, *inputs: Inputs, differentiable: bool) -> Tensor:
        """log f(x, θT), `(..., N, C)`. differentiable: whether the interaction term needs its gradient."""
        self.follower.require_gradients(differentiable)
        with torch.set_grad_enabled(differentiable and torch.is_grad_enabled()), undisturbed_buffers(self.teacher):
            log_p = joined([self.log_f(self.teacher, x) for x in inputs])
        self.last_inputs = inputs
        return log_p

    def predictions(self, inputs: Sequence[Inputs]) -> Tensor:
        """log f(x, θS) on several inputs as one batch, `(..., N, C)`."""
        return joined([self.log_f(self.student, x) for x in inputs])

    def lead(
        self, unlabeled: Inputs, labeled: tuple[Inputs, Tensor] | None, *, label_all: bool
    ) -> tuple[Forward, list[Inputs]]:
        """The student's predictions on one batch, and the inputs of the rows that get a pseudo-label, in this order.

        label_all: labelled rows get pseudo-labels, too.
        """
        if unlabeled is None and labeled is None:
            raise ShapeError("loss() was given no data; pass unlabeled=, labeled=, or both")
        log_q_l = log_q_u = y = None
        inputs, log_q = [], []  # of the rows that get a pseudo-label: x, and log f(x, θS)
        if labeled is not None:
            x_l, y = check_pair(labeled)
            if self.full_graph and unlabeled is not None:
                log_q_all = self.log_f(self.student, torch.cat([x_l, unlabeled], dim=-1))
                log_q_l, log_q_u = torch.split(log_q_all, [x_l.shape[-1], unlabeled.shape[-1]], dim=-2)
            else:
                log_q_l = self.log_f(self.student, x_l)
            y = check_labels(y, log_q_l)
            if label_all:
                inputs.append(x_l)
                log_q.append(log_q_l)
        if unlabeled is not None:
            inputs.append(unlabeled)
            log_q.append(self.log_f(self.student, unlabeled) if log_q_u is None else log_q_u)
        return Forward(log_q_l, y, joined(log_q) if log_q else None), inputs

    @torch.no_grad()
    def predict(self, module: nn.Module, inputs: Inputs) -> Tensor:
        """log f(x, θ) in evaluation mode: without dropout, and without drawing random numbers."""
        with in_evaluation(module):
            return self.log_f(module, inputs)
