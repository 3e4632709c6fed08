"""Pseudo-labels and sample weights: the two parts of the follower's strategy (Eqs. 5, 6 and 7).

Everything is computed in log space, where a probability of 1e-300 is an ordinary number and no epsilon is needed.
Shapes: `(..., N, C)` for N examples and C classes. Leading dimensions are independent trials; sums over the batch run
over N only.
"""

import math

import torch
from torch import Tensor

from drift.core.renaming import renamed_arguments
from drift.core.softmax import log_softmax
from drift.errors import ShapeError


def log_class_mass(z: Tensor) -> Tensor:
    """The mass of each class in the batch: log f_j = log Σ_x p_j(x)^(1/τ).

    z: log p / τ, `(..., N, C)`. Returns `(..., 1, C)`. A class with probability 0 in every row (every z is -inf)
    gets the lowest finite number instead of -inf, so that 0/0 in Eq. 6 gives a label of 0 and no NaN in the gradient.
    """
    return torch.logsumexp(_finite(z), dim=-2, keepdim=True)


@renamed_arguments(spared="unbalanced_class")
def log_soft_labels(
    log_p: Tensor,
    tau: float,
    *,
    class_mass: bool = True,
    log_prior: Tensor | None = None,
    unbalanced_class: int | None = None,
) -> Tensor:
    """Sharpen the teacher's prediction and balance it by class mass (Eq. 6), in log space.

    ỹ_j ∝ p_j^(1/τ) π_j / f_j. In the paper π is uniform and cancels. Without class mass, f and π are omitted.

    log_p: the teacher's log-probabilities, `(..., N, C)`. tau: the temperature τ. class_mass: whether to divide by f_j.
    log_prior: log π up to a constant, `(C,)`; None is uniform. unbalanced_class: index of a class that keeps its share
    of the batch, while the others are balanced among themselves. Returns log ỹ, `(..., N, C)`.
    """
    return log_softmax(balanced(log_p / tau, class_mass, log_prior, unbalanced_class)[0])


def balanced(
    z: Tensor, class_mass: bool, log_prior: Tensor | None, unbalanced_class: int | None
) -> tuple[Tensor, Tensor | None]:
    """log ỹ up to a constant per row, `(..., N, C)`, and log f, `(..., 1, C)`; None without class mass.

    z: log p / τ. The others: see `log_soft_labels`.
    """
    if not class_mass:
        return z, None
    log_f = log_class_mass(z)
    a = z - (log_f if unbalanced_class is None else among_the_others(log_f, unbalanced_class))
    return a if log_prior is None else a + log_prior, log_f


def among_the_others(log_f: Tensor, unbalanced_class: int) -> Tensor:
    """Class masses relative to the mean mass of the balanced classes, in log space, `(..., 1, C)`.

    The mass of `unbalanced_class` (s below) becomes 1. Then π_s = f_s / Σ f and π_j = (1 - π_s) / (C - 1): that class
    keeps its share of the batch. log_f: log class masses, `(..., 1, C)`.
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
    """Weight a pseudo-label by its certainty (Eq. 7): ω = 1 - H(ỹ) / log C, in [0, 1].

    log_y: `(..., N, C)`, normalised. Returns `(..., N)`.
    """
    return weight_terms(log_y)[0]


def weight_terms(log_y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """ω, `(..., N)`, and what it is computed from: ỹ and ỹ log ỹ, `(..., N, C)`. log_y: see `sample_weight`."""
    y = log_y.exp()
    y_log_y = y * _finite(log_y)
    # The clamp only removes rounding: H can exceed log C by an ulp at the uniform label, where its gradient is 0.
    return (1.0 + y_log_y.sum(dim=-1) / math.log(log_y.shape[-1])).clamp(min=0.0), y, y_log_y


def _finite(log_p: Tensor) -> Tensor:
    """Replace log 0 by the lowest finite number: 0 log 0 is then 0, and so is its gradient."""
    return log_p.clamp(min=torch.finfo(log_p.dtype).min)
