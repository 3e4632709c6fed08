"""Gradient accumulation that equals the whole batch: class masses and means are taken over all micro-batches.

Plain accumulation, one `loss` and one `backward` per micro-batch, uses the class masses of each micro-batch. The exact
form takes two passes. The first computes the predictions of all micro-batches without gradients (N x C numbers), then
the loss and its gradient with respect to every prediction. The second runs each micro-batch forward again, with the
same random state, and sends that gradient backward through it. It costs one more forward of each player.

BatchNorm in the student still normalises per micro-batch: no form of accumulation can change that.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from drift.core.forward import joined
from drift.core.randomness import random_state, set_random_state
from drift.core.teacher import undisturbed_buffers


@dataclass(frozen=True)
class Forward:
    """Both players' log-probabilities on one batch, before any loss is computed."""

    log_q_l: Tensor | None = None  # (N_l, C), the student on labelled rows
    y: Tensor | None = None  # (N_l,), class indices
    log_q: Tensor | None = None  # (N, C), the student on the rows that get a pseudo-label
    log_p: Tensor | None = None  # (N, C), the teacher on the same rows

    def predictions(self) -> dict[str, Tensor]:
        """The tensors that gradients flow through, by field name."""
        named = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "y"}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    def leaves(self, differentiable_teacher: bool) -> "Forward":
        """The same values as leaf tensors that collect a gradient.

        differentiable_teacher: whether `log_p` collects one too.
        """
        detached = {name: tensor.detach() for name, tensor in self.predictions().items()}
        for name, tensor in detached.items():
            tensor.requires_grad_(name != "log_p" or differentiable_teacher)
        return replace(self, **detached)


def accumulate(
    batches: Sequence[Mapping[str, Any]],
    forward: Callable[..., Forward],
    score: Callable[[Forward], Tensor],
    *,
    student: nn.Module,
    differentiable_teacher: bool,
    backward: Callable[[Tensor], None],
) -> Tensor:
    """Fill gradients from micro-batches as if they were one batch; returns the loss, detached.

    batches: the keyword arguments of `forward` for each. forward: predictions of both players on a micro-batch.
    score: the loss of a batch. student: its buffers are left as they are by the first pass.
    """
    states, leaves = [], []
    with torch.no_grad(), undisturbed_buffers(student):
        for batch in batches:
            states.append(random_state())
            leaves.append(forward(**batch).leaves(differentiable_teacher))
    loss = score(whole(leaves))
    torch.autograd.backward(loss)
    for batch, state, leaf in zip(batches, states, leaves, strict=True):
        set_random_state(state)
        send_back(forward(**batch), leaf, backward)
    return loss.detach()


def whole(parts: list[Forward]) -> Forward:
    """Concatenate micro-batches into one batch. All of them have the same fields set."""
    names = parts[0].predictions()
    concatenated = {name: joined([part.predictions()[name] for part in parts]) for name in names}
    labels = [part.y for part in parts if part.y is not None]
    y = torch.cat(labels, dim=-2 if labels[0].is_floating_point() else -1) if labels else None
    return Forward(y=y, **concatenated)


def send_back(forward: Forward, leaves: Forward, backward: Callable[[Tensor], None]) -> None:
    """Run backward through the predictions, with the gradients that their leaves collected.

    forward: predictions with a graph. leaves: the leaf tensors of the first pass. backward: called on the scalar
    Σ prediction · gradient.
    """
    terms = [
        (prediction * leaf.grad).sum()
        for prediction, leaf in zip(forward.predictions().values(), leaves.predictions().values(), strict=True)
        if leaf.grad is not None and prediction.requires_grad
    ]
    backward(torch.stack(terms).sum())
