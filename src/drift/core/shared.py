"""The interaction term without a backward through the teacher: the student's Jacobian in place of the teacher's.

    dL/dθS = J_S(θS)ᵀ g_S + (1 - α) J_T(θT)ᵀ g_T  ≈  J_S(θS)ᵀ (g_S + (1 - α) g_T)

J = ∂z/∂θ is the Jacobian of the logits on the rows with pseudo-labels; g_S and g_T are the gradients of L with respect
to the student's and the teacher's logits. The right-hand side is one backward through the student: the cost of
conventional self-training. It is exact if logits are linear in the parameters and both players see the same features.
Otherwise the teacher's Jacobian is evaluated at the student: at other weights, with the student's dropout.

Differs from paper: Eq. 4 has the teacher's own Jacobian. `docs/results/jacobian.md` compares the two.

g_T sums to 0 over the classes, because a constant added to all logits changes no probability. The backward of the
student's log-softmax, h -> h - q Σ h, therefore leaves g_T as it is, and g_T may be added to the gradient of log q as
well as to that of the logits. So the term needs only what a game has: log p and log q.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from drift.core.repeating import Repeatable, Repeater, undisturbed
from drift.core.teacher import Gradients
from drift.errors import ShapeError, StateError


class SharedJacobian:
    """Ties the teacher's predictions to the student's, and recomputes the interaction term for diagnostics.

    sent: for each backward since the student's gradients were cleared, the forward of the student that it went through
    and (1 - α) g_T, `(..., N, C)`.
    """

    def __init__(self, student: nn.Module) -> None:
        self.student = student
        self.before = Repeater(student).before  # notes the state before a forward of the student
        self.forget()

    def forget(self) -> None:
        """Discard the terms of earlier backwards."""
        self.sent: list[tuple[Repeatable, Tensor]] = []

    def tie(self, log_p: Tensor, log_q: Tensor, scale: float, forward: Repeatable) -> Tensor:
        """Return log p with a gradient that reaches the student: `scale` times g_T is added to that of log q.

        log_p, log_q: the teacher and the student on the same rows, `(..., N, C)`. scale: 1 - α. forward: gave log_q.
        """
        if log_p.shape != log_q.shape:
            raise ShapeError(
                f"the teacher's predictions are {tuple(log_p.shape)}, the student's {tuple(log_q.shape)};"
                " coupling='shared' needs both on the same rows"
            )

        def send(gradient: Tensor) -> None:
            self.sent.append((forward, gradient))

        tied: Tensor = _ThroughStudent.apply(log_p, log_q, scale, send)  # type: ignore[no-untyped-call]
        return tied

    def interaction(self) -> Gradients:
        """(1 - α) J_Sᵀ g_T by parameter: repeats each forward of the student, and sends g_T alone backward."""
        if not all(forward.unchanged for forward, _ in self.sent):
            raise StateError("diagnostics() after the student's weights were changed; call it before optimizer.step()")
        with undisturbed(self.student), torch.enable_grad():
            for forward, gradient in self.sent:
                torch.autograd.backward(forward(), gradient)
            return {p: p.grad for p in self.student.parameters() if p.grad is not None}


class _ThroughStudent(torch.autograd.Function):
    """Returns log p. Backward turns its gradient into g_T, that of the teacher's logits; log q gets (1 - α) g_T."""

    @staticmethod
    def forward(ctx: Any, log_p: Tensor, log_q: Tensor, scale: float, send: Callable[[Tensor], None]) -> Tensor:
        ctx.save_for_backward(log_p)
        ctx.scale, ctx.send = scale, send
        return log_p.view_as(log_p)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, None, None]:
        (log_p,) = ctx.saved_tensors
        total = gradient.sum(-1, keepdim=True)
        scaled = torch.addcmul(gradient, log_p.exp(), total, value=-1).mul_(ctx.scale)  # softmax at the teacher
        ctx.send(scaled.detach())
        return None, scaled, None, None
