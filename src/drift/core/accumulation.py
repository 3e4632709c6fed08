"""Gradient accumulation that equals the whole batch: class masses and means run over all micro-batches together.

Plain accumulation, a `loss` and `backward` a micro-batch, has the class masses of each micro-batch. The exact form
takes two passes: first the predictions of all micro-batches without gradients, N x C numbers, from which the loss and
its gradient with respect to every prediction follow; then each micro-batch forward again, with the random state it had,
and that gradient backward through it. It costs one more forward of each player.

BatchNorm in the student still normalises by micro-batch: no form of accumulation can change that.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from drift.core.forward import joined


@dataclass(frozen=True)
class Forward:
    """Both players' predictions on one batch, before anything is made of them."""

    log_q_l: Tensor | None = None  # (N_l, C), the student's on labelled rows
    y: Tensor | None = None  # (N_l,)
    log_q: Tensor | None = None  # (N, C), the student's on the rows that get a pseudo-label
    log_p: Tensor | None = None  # (N, C), the teacher's on those

    def predictions(self) -> dict[str, Tensor]:
        """What gradients go through, by name."""
        named = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "y"}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    def leaves(self, differentiable_teacher: bool) -> "Forward":
        """The same numbers, cut off from how they were made, ready to collect a gradient."""
        cut = {name: tensor.detach() for name, tensor in self.predictions().items()}
        for name, tensor in cut.items():
            tensor.requires_grad_(name != "log_p" or differentiable_teacher)
        return replace(self, **cut)


def whole(parts: list[Forward]) -> Forward:
    """Micro-batches as one batch; all of them have the same kinds of rows."""
    names = parts[0].predictions()
    together = {name: joined([part.predictions()[name] for part in parts]) for name in names}
    y = None if parts[0].y is None else torch.cat([part.y for part in parts if part.y is not None], dim=-1)
    return Forward(y=y, **together)


def send_back(played: Forward, leaves: Forward, backward: Callable[[Tensor], None]) -> None:
    """Backward through the predictions with the gradients their leaves collected."""
    terms = [
        (prediction * leaf.grad).sum()
        for prediction, leaf in zip(played.predictions().values(), leaves.predictions().values(), strict=True)
        if leaf.grad is not None and prediction.requires_grad
    ]
    backward(torch.stack(terms).sum())
