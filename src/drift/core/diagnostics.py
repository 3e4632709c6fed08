"""How a game stands: the two terms of its gradient, the angle between them, and what the teacher says."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from drift.core.labels import log_class_mass
from drift.core.teacher import Gradients


@dataclass(frozen=True)
class Diagnostics:
    """One look at the game. Over stacked trials, norms are of all trials together and shares are means."""

    leader_norm: float  # ‖∂L/∂θS‖ with the follower's answer held fixed
    interaction_norm: float  # ‖(1 - α) ∂L/∂θT‖
    angle: float | None  # degrees between the two; None where one is zero
    mean_omega: float
    class_mass: list[float]  # f_j as a share of Σ f_j: the teacher's sharpened predictions, before balancing
    flips: int | None  # pseudo-labels of the probe changed since the last look; None at the first
    probe_size: int

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def stamp(parameters: Iterable[nn.Parameter]) -> tuple[int | None, ...]:
    """Changes when a gradient is cleared or written to, as clipping does."""
    return tuple(None if parameter.grad is None else parameter.grad._version for parameter in parameters)


@torch.no_grad()
def terms(
    parameters: Iterable[nn.Parameter], interaction: Gradients, scale: float
) -> tuple[float, float, float | None]:
    """Take the merged gradient apart again: leader = student.grad - (1 - α) ∂L/∂θT. Both norms, and the angle."""
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


def _total(values: Tensor) -> float:
    """The sum; of a sharded tensor, over all shards."""
    total = values.sum()
    return float(total.full_tensor() if isinstance(total, DTensor) else total)


def mass_shares(log_p: Tensor, tau: float) -> list[float]:
    """f_j / Σ f_j, the mean over trials if there are any. log_p: `(..., N, C)`."""
    shares = torch.softmax(log_class_mass(log_p / tau), dim=-1)
    return [float(share) for share in shares.flatten(0, -2).mean(0)]
