"""Pseudo-labels and sample weights: the two parts of the follower's strategy (Eqs. 5, 6 and 7).

Everything is computed from log-probabilities and stays there: probabilities of 1e-300 are ordinary numbers, and no
epsilon is needed. Shapes: `(..., N, C)` for N examples and C classes; leading dimensions are independent trials, and
sums over "the batch" run over N alone.
"""

import math

import torch
from torch import Tensor

from drift.core.softmax import log_softmax
from drift.errors import ShapeError


def log_class_mass(z: Tensor) -> Tensor:
    """How much of each class the batch holds: log f_j = log Σ_x p_j(x)^(1/τ).

    z: log p / τ, `(..., N, C)`. Returns `(..., 1, C)`. A class that no row can be (every z is -inf) gets the lowest
    finite number instead of -inf, so that 0/0 in Eq. 6 reads as a label of 0, with no NaN in the gradient.
    """
    return torch.logsumexp(_finite(z), dim=-2, keepdim=True)


def log_soft_labels(
    log_p: Tensor,
    tau: float,
    *,
    class_mass: bool = True,
    log_prior: Tensor | None = None,
    unbalanced_class: int | None = None,
) -> Tensor:
    """Sharpen the teacher's prediction and balance it by class mass (Eq. 6), in log space.

    ỹ_j ∝ p_j^(1/τ) π_j / f_j. The paper has π uniform, which drops out; without class mass f and π are left out.

    log_p: `(..., N, C)`, the teacher's log-probabilities. log_prior: `(C,)`, log π up to a constant. unbalanced_class: a class
    whose share is left as the batch has it, while the others are balanced among themselves.
    Returns log ỹ, `(..., N, C)`.
    """
    z = log_p / tau
    if class_mass:
        log_f = log_class_mass(z)
        z = z - (log_f if unbalanced_class is None else among_the_others(log_f, unbalanced_class))
        if log_prior is not None:
            z = z + log_prior
    return log_softmax(z)


def among_the_others(log_f: Tensor, unbalanced_class: int) -> Tensor:
    """Class masses in units of the mean of the others, and 1 for the class `unbalanced_class`, `(..., 1, C)`.

    Then π_s = f_s / Σ f and π_j = (1 - π_s) / (C - 1): the class `unbalanced_class` keeps its share of the batch.
    """
    C = log_f.shape[-1]
    if not 0 <= unbalanced_class < C:
        raise ShapeError(f"unbalanced_class={unbalanced_class} is not one of the {C} classes of the logits")
    others = torch.arange(C, device=log_f.device) != unbalanced_class
    log_mean = torch.logsumexp(log_f[..., others], dim=-1, keepdim=True) - math.log(C - 1)
    return torch.where(others, log_f - log_mean, 0.0)


def hard_labels(log_p: Tensor) -> Tensor:
    """The most likely class (Eq. 5): argmax_j p_j. `(..., N, C)` to `(..., N)`; ties go to the first class."""
    return log_p.argmax(dim=-1)


def sample_weight(log_y: Tensor) -> Tensor:
    """Trust a pseudo-label by how sure it is (Eq. 7): ω = 1 - H(ỹ) / log C, in [0, 1].

    log_y: `(..., N, C)`, normalised. Returns `(..., N)`.
    """
    C = log_y.shape[-1]
    minus_H = (log_y.exp() * _finite(log_y)).sum(dim=-1)
    # The clamp only removes rounding: H can exceed log C by an ulp at the uniform label, where its gradient is 0.
    return (1.0 + minus_H / math.log(C)).clamp(min=0.0)


def _finite(log_p: Tensor) -> Tensor:
    """log 0 as the lowest finite number: 0 log 0 is then 0, and so is its gradient."""
    return log_p.clamp(min=torch.finfo(log_p.dtype).min)
