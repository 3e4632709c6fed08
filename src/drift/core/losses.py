"""The student's losses, one value per example (Eqs. 1 and 8); the caller takes the mean."""

import torch
from torch import Tensor

from drift.core.closed_form import StudentLoss, divergence_terms


def kl_divergence(log_y: Tensor, log_q: Tensor) -> Tensor:
    """KL(ỹ ‖ q) = Σ_j ỹ_j (log ỹ_j - log q_j). Both `(..., N, C)`, normalised; returns `(..., N)`."""
    return divergence_terms(log_y, log_q)[1].sum(dim=-1)


def student_loss(log_y: Tensor, omega: Tensor, log_q: Tensor) -> Tensor:
    """ℓ_S = ω KL(ỹ ‖ f(x, θS)) (Eq. 8). log_y, log_q: `(..., N, C)`; omega: `(..., N)`; returns `(..., N)`."""
    losses: Tensor = StudentLoss.apply(log_y, omega, log_q)  # type: ignore[no-untyped-call]
    return losses


def supervised_loss(log_q: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy ℓ_sup = -log q_y (Eq. 1), or -Σ_j y_j log q_j if labels are soft.

    log_q: `(..., N, C)`. y: class indices `(..., N)`, or probabilities `(..., N, C)`. Returns `(..., N)`.
    """
    if y.is_floating_point():
        # Where y_j = 0 the term is 0, even if log q_j is -inf.
        return -torch.where(y > 0, y * log_q, 0.0).sum(dim=-1)
    return -log_q.gather(-1, y.unsqueeze(-1)).squeeze(-1)
