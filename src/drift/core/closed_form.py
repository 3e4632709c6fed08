"""Gradients of pseudo-labels, weights and loss in closed form: a few products in place of a graph of forty small ones.

The values are those of `drift.core.labels` and `drift.core.losses`. With g = ∂L/∂log ỹ and v = ∂L/∂ω, and a = log ỹ up
to a constant per row, the gradient with respect to log p is

    ∂L/∂a_ij     = g_ij + ỹ_ij (v_i (1 - ω_i) - Σ_k g_ik) + ỹ_ij log ỹ_ij v_i / log C     log-softmax, and Eq. 7
    ∂L/∂log p_ij = (∂L/∂a_ij - s_ij Σ_i' ∂L/∂a_i'j) / τ,   s_ij = p_ij^(1/τ) / f_j    class mass of Eq. 6

On batches of a few hundred rows autograd's overhead is most of the cost of these terms; a backward through them takes
less than half the time this way.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from drift.core.labels import balanced, weight_terms
from drift.core.softmax import log_softmax


class SoftResponse(torch.autograd.Function):
    """log p to log ỹ and ω: Eqs. 6 and 7. Without `reweight`, ω is 1.

    log_p: `(..., N, C)`. log_prior, unbalanced_class: as for `log_soft_labels`. Returns `(..., N, C)` and `(..., N)`.
    """

    @staticmethod
    def forward(
        ctx: Any,
        log_p: Tensor,
        tau: float,
        class_mass: bool,
        log_prior: Tensor | None,
        unbalanced_class: int | None,
        reweight: bool,
    ) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        z = log_p / tau
        a, log_f = balanced(z, class_mass, log_prior, unbalanced_class)
        log_y = log_softmax(a)
        omega, y, y_log_y = weight_terms(log_y) if reweight else (torch.ones_like(log_y[..., 0]), log_y.exp(), None)
        ctx.tau, ctx.unbalanced_class = tau, unbalanced_class
        ctx.save_for_backward(y, y_log_y, omega, z, log_f)
        return log_y, omega

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor | None, v: Tensor | None) -> tuple[Tensor | None, None, None, None, None, None]:
        y, y_log_y, omega, z, log_f = ctx.saved_tensors
        v = None if y_log_y is None else v
        if g is None and v is None:
            return (None,) * 6
        g = torch.zeros_like(y) if g is None else g
        of_row = g.sum(-1).neg_()
        if v is not None:
            of_row.addcmul_(v, 1 - omega)
        da = torch.addcmul(g, y, of_row.unsqueeze(-1))
        if v is not None:
            da.addcmul_(y_log_y, v.unsqueeze(-1), value=1 / math.log(y.shape[-1]))
        if log_f is not None:
            dz = torch.addcmul(da, (z - log_f).exp_(), _through_masses(da, log_f, ctx.unbalanced_class), value=-1)
        else:
            dz = da
        return dz.div_(ctx.tau), None, None, None, None, None


def _through_masses(da: Tensor, log_f: Tensor, unbalanced_class: int | None) -> Tensor:
    """-∂L/∂log f, `(..., 1, C)`. With an unbalanced class, masses are relative to the mean of the others."""
    total = da.sum(-2, keepdim=True)
    if unbalanced_class is None:
        return total
    others = torch.arange(log_f.shape[-1], device=log_f.device) != unbalanced_class
    share = torch.softmax(torch.where(others, log_f, -math.inf), -1)
    total = torch.where(others, total, 0.0)
    return total - share * total.sum(-1, keepdim=True)


class StudentLoss(torch.autograd.Function):
    """ω KL(ỹ ‖ q) by row (Eq. 8). log_y, log_q: `(..., N, C)`, normalised; omega: `(..., N)`; returns `(..., N)`."""

    @staticmethod
    def forward(ctx: Any, log_y: Tensor, omega: Tensor, log_q: Tensor) -> Tensor:
        y, terms = divergence_terms(log_y, log_q)
        divergence = terms.sum(-1)
        ctx.save_for_backward(y, terms, divergence, omega)
        return omega * divergence

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        y, terms, divergence, omega = ctx.saved_tensors
        of_labels, of_weights, of_student = ctx.needs_input_grad
        weight = (gradient * omega).unsqueeze(-1)
        to_q = y * weight
        to_y = torch.addcmul(to_q, terms, weight) if of_labels else None  # ỹ + ỹ (log ỹ - log q)
        return to_y, gradient * divergence if of_weights else None, to_q.neg_() if of_student else None


def divergence_terms(log_y: Tensor, log_q: Tensor) -> tuple[Tensor, Tensor]:
    """ỹ and ỹ (log ỹ - log q), `(..., N, C)`. Where ỹ_j = 0 the term is 0, whatever the logarithms are."""
    y = log_y.exp()
    # `where` also keeps -inf - -inf out of the gradient.
    return y, y * torch.where(y > 0, log_y - log_q, 0.0)
