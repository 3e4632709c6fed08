"""Measurements of a game: the two terms of its gradient, the angle between them, and the teacher's labels."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from drift.core.labels import log_class_mass
from drift.core.sharded import is_sharded
from drift.core.teacher import Gradients


@dataclass(frozen=True)
class Diagnostics:
    """One measurement of a game. For stacked trials, norms are over all trials together and shares are means."""

    leader_norm: float  # ‖∂L/∂θS‖ with the follower's response held fixed
    interaction_norm: float  # ‖(1 - α) ∂L/∂θT‖
    angle: float | None  # between the two, in degrees; None if one of them is zero
    mean_omega: float
    class_mass: list[float]  # f_j / Σ f_j of the teacher's sharpened predictions, before balancing
    flips: int | None  # pseudo-labels of the probe that changed since the previous call; None at the first
    probe_size: int  # rows of the probe

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def stamp(parameters: Iterable[nn.Parameter]) -> tuple[int | None, ...]:
    """A fingerprint of the gradients, which changes when one is cleared or written to (as clipping does)."""
    return tuple(None if parameter.grad is None else parameter.grad._version for parameter in parameters)


@torch.no_grad()
def terms(
    parameters: Iterable[nn.Parameter], interaction: Gradients, scale: float
) -> tuple[float, float, float | None]:
    """Split the merged gradient: leader = student.grad - (1 - α) ∂L/∂θT.

    parameters: the student's. interaction: ∂L/∂θT. scale: 1 - α. Returns the norm of the leader, the norm of the scaled
    interaction, and the angle between them in degrees (None if one of them is zero).
    """
    leader2 = follower2 = dot = 0.0
    for parameter in parameters:
        if parameter.grad is None:
            continue
        leader = parameter.grad
        if (gradient := interaction.get(parameter)) is not None:
            leader = leader - scale * gradient
            follower2 += scale**2 * _total(gradient.square())
            dot += scale * _total(leader * gradient)
        leader2 += _total(leader.square())
    norms = math.sqrt(leader2) * math.sqrt(follower2)
    angle = math.degrees(math.acos(max(-1.0, min(1.0, dot / norms)))) if norms else None
    return math.sqrt(leader2), math.sqrt(follower2), angle


def changed_labels(previous: Tensor | None, labels: Tensor) -> int | None:
    """How many labels differ from the previous ones; None if there are none to compare with."""
    if previous is None or previous.shape != labels.shape:
        return None
    return int((previous.to(labels.device) != labels).sum())


def _total(values: Tensor) -> float:
    """The sum of all values, over all shards if the tensor is sharded."""
    total = values.sum()
    return float(total.full_tensor() if is_sharded(total) else total)


def mass_shares(log_p: Tensor, tau: float) -> list[float]:
    """f_j / Σ f_j, averaged over trials if there are any. log_p: `(..., N, C)`; tau: the temperature τ."""
    shares = torch.softmax(log_class_mass(log_p / tau), dim=-1)
    return [float(share) for share in shares.flatten(0, -2).mean(0)]
