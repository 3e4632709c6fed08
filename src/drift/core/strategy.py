"""The follower's strategy F(θT) = [ỹ(θT), ω(θT)]: the pseudo-labels and weights, and the student's loss on them.

`SoftStrategy` is the paper's, with the switches of its ablation. To write another one, subclass `Strategy`: return a
`Response` (or a subclass of it) from `respond`, and use it in `loss`.
"""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import torch
from torch import Tensor

from drift.core.checks import is_number
from drift.core.closed_form import SoftResponse
from drift.core.labels import hard_labels
from drift.core.losses import student_loss
from drift.core.renaming import renamed_arguments
from drift.errors import ConfigError, ShapeError


@dataclass(frozen=True)
class Response:
    """The follower's response to a batch.

    Parameters
    ----------
    log_y : Tensor
        Log-probabilities of the pseudo-labels, log ỹ, `(..., N, C)`.
    omega : Tensor
        Sample weights ω, `(..., N)`.
    """

    log_y: Tensor
    omega: Tensor

    def narrow(self, *, dim: int, start: int, stop: int) -> Self:
        """The rows [start, stop) of every tensor. dim: the dimension of the batch."""
        tensors = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(
            self, **{name: t.narrow(dim, start, stop - start) for name, t in tensors.items() if isinstance(t, Tensor)}
        )


class Strategy(ABC):
    """Base class of the follower's strategies. Subclass it to change the pseudo-labels, the weights or the loss."""

    @property
    def differentiable(self) -> bool:
        """Whether the response is differentiable in the teacher. If not, the game skips the teacher's backward."""
        return True

    @abstractmethod
    def respond(self, log_p: Tensor) -> Response:
        """The response to the teacher's log-probabilities `(..., N, C)`, with the gradients of the interaction term."""

    def loss(self, response: Response, log_q: Tensor) -> Tensor:
        """The student's loss on each example (Eq. 8).

        response: as returned by `respond`. log_q: the student's log-probabilities `(..., N, C)`. Returns `(..., N)`.
        """
        return student_loss(response.log_y, response.omega, log_q)


@renamed_arguments(spared="unbalanced_class")
@dataclass(frozen=True)
class SoftStrategy(Strategy):
    """Soft pseudo-labels and entropy weights (Eqs. 6 and 7), each differentiated or not.

    There are six distinct cases, as in the footnote of the paper's ablation:

        reweight  differentiate_labels  differentiate_weights
        True      True / False          True / False           DRIFT, w/o DrPL, w/o DrW, neither
        False     True / False          (no effect)            w/o SR, w/o SR and DrPL

    Parameters
    ----------
    tau : float, default=0.5
        Temperature τ; values below 1 sharpen.
    class_mass : bool, default=True
        Divide by the batch's class masses f_j, which balances the labels of a batch towards `prior`.
    prior : sequence of float, or one such sequence per trial, default=None
        Class frequencies π to balance towards, positive, in class order; None is uniform, as in the paper. With
        `unbalanced_class`, only the ratios among the other classes count.
    reweight : bool, default=True
        Weight each example by ω; otherwise every weight is 1.
    differentiate_labels : bool, default=True
        Let gradients flow through ỹ (DrPL in the paper).
    differentiate_weights : bool, default=True
        Let gradients flow through ω (DrW in the paper).
    unbalanced_class : int, default=None
        Index of a class that is not balanced, such as the tag of words outside entities. Without class mass it has no
        effect.
    """

    tau: float = 0.5
    class_mass: bool = True
    prior: Sequence[float] | Sequence[Sequence[float]] | None = None
    reweight: bool = True
    differentiate_labels: bool = True
    differentiate_weights: bool = True
    unbalanced_class: int | None = None

    def __post_init__(self) -> None:
        if not (is_number(self.tau) and self.tau > 0):
            raise ConfigError(f"tau={self.tau!r}: the temperature must be above 0; the paper uses 0.5")
        if self.prior is not None:
            if not self.class_mass:
                raise ConfigError("prior is given but class_mass is off; turn class_mass on or drop the prior")
            object.__setattr__(self, "prior", _checked_prior(self.prior))

    @property
    def differentiable(self) -> bool:
        return self.differentiate_labels or (self.reweight and self.differentiate_weights)

    def respond(self, log_p: Tensor) -> Response:
        if self.class_mass and log_p.shape[-2] == 1:
            warnings.warn(
                "a batch of one with class mass has uniform labels and teaches nothing; use more rows", stacklevel=2
            )
        # ω is computed from the labels before they are detached, so that DrW works without DrPL.
        log_y, omega = SoftResponse.apply(  # type: ignore[no-untyped-call]
            log_p, self.tau, self.class_mass, self._log_prior(log_p), self.unbalanced_class, self.reweight
        )
        if not self.differentiate_weights:
            omega = omega.detach()
        if not self.differentiate_labels:
            log_y = log_y.detach()
        return Response(log_y, omega)

    def _log_prior(self, log_p: Tensor) -> Tensor | None:
        if self.prior is None:
            return None
        prior = log_p.new_tensor(self.prior)  # (C,) or (trials, C)
        C = log_p.shape[-1]
        if prior.shape[-1] != C:
            raise ShapeError(f"prior has {prior.shape[-1]} classes but the logits have {C}; give one share per class")
        if prior.dim() == 2:
            if log_p.dim() != 3 or len(log_p) != len(prior):
                raise ShapeError(f"prior has {len(prior)} rows, one per trial; the logits are {tuple(log_p.shape)}")
            prior = prior.unsqueeze(1)  # (trials, 1, C)
        if self.unbalanced_class is not None:
            prior = _among_the_others(prior, self.unbalanced_class)
        return prior.log()


def _checked_prior(prior: Sequence[Any]) -> tuple[Any, ...]:
    """The same shares as tuples of positive numbers: one per class, or one tuple per trial."""
    try:
        by_trial = bool(len(prior)) and all(not isinstance(row, str) and hasattr(row, "__len__") for row in prior)
        rows = [tuple(float(share) for share in row) for row in (prior if by_trial else [prior])]
    except (TypeError, ValueError):
        raise ConfigError(f"prior={prior!r}: give a list of shares, one per class") from None
    if len({len(row) for row in rows}) > 1:
        raise ConfigError(f"prior={prior!r}: every trial needs the same number of shares")
    if not all(is_number(share) and share > 0 for row in rows for share in row):
        raise ConfigError(f"prior={tuple(rows) if by_trial else rows[0]}: every class needs a positive share")
    return tuple(rows) if by_trial else rows[0]


def _among_the_others(prior: Tensor, unbalanced_class: int) -> Tensor:
    """Shares relative to the mean share of the balanced classes; that of `unbalanced_class`, which is kept, is 1."""
    others = torch.arange(prior.shape[-1], device=prior.device) != unbalanced_class
    return torch.where(others, prior / prior[..., others].mean(-1, keepdim=True), 1.0)


@dataclass(frozen=True)
class HardStrategy(Strategy):
    """Conventional hard pseudo-labels (Eq. 5), with weight 1 for every example. Not differentiable."""

    @property
    def differentiable(self) -> bool:
        return False

    def respond(self, log_p: Tensor) -> Response:
        log_y = torch.full_like(log_p, -math.inf).scatter_(-1, hard_labels(log_p).unsqueeze(-1), 0.0)
        return Response(log_y, torch.ones_like(log_p[..., 0]))
