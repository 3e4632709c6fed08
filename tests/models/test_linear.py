"""Only students whose Jacobian depends on the inputs alone count as linear."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from drift import Game
from drift.core.teacher import copy_of
from drift.methods import METHODS
from drift.methods.method import Context
from drift.models.linear import is_linear
from drift.models.mlp import mlp
from drift.models.stacked import Stacked
from drift.tasks.heads import linear_head


class Squashed(nn.Linear):
    """A linear layer by its base class alone."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).tanh()


class Wrapped(nn.Module):
    """A module of the user's, which may do anything with its layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.layer(x))


STUDENTS: dict[str, tuple[Callable[[], nn.Module], bool]] = {
    "layer": (lambda: nn.Linear(4, 3), True),
    "head": (lambda: linear_head(4, 3), True),
    "stacked heads": (lambda: Stacked([linear_head(4, 3) for _ in range(2)]), True),
    "stacked layers, by vmap": (lambda: Stacked([nn.Linear(4, 3) for _ in range(2)]), True),
    "dropout of 0": (lambda: nn.Sequential(nn.Dropout(0.0), nn.Linear(4, 3)), True),
    "head with dropout": (lambda: linear_head(4, 3, 0.1), False),
    "two layers": (lambda: nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3)), False),
    "network": (lambda: mlp(4, 3, hidden=(8,), dropout=0.0), False),
    "activation": (lambda: nn.Sequential(nn.Tanh(), nn.Linear(4, 3)), False),
    "subclass": (lambda: Squashed(4, 3), False),
    "own module": (Wrapped, False),
}


@pytest.mark.parametrize("student", STUDENTS)
def test_linear_students_are_recognised(student: str) -> None:
    make, expected = STUDENTS[student]
    assert is_linear(make()) == expected


def gradient(student: nn.Module, teacher: nn.Module, **settings: Any) -> tuple[Game, Tensor]:
    method = METHODS["drift"]
    made = method(
        student, method.settings_type(**settings), Context(copy_of(teacher), stacked=True, single_process=True)
    )
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 12, 4, generator=generator, dtype=torch.float64)
    made.game.backward(made.game.loss(unlabeled=x))
    return made.game, torch.cat([p.grad.flatten() for p in student.parameters() if p.grad is not None])


@pytest.mark.parametrize(("dropout", "coupling"), [(0.0, "shared"), (0.1, "differentiable")])
def test_drift_shares_the_jacobian_only_where_that_is_the_papers_gradient(dropout: float, coupling: str) -> None:
    torch.manual_seed(1)
    student, teacher = (Stacked([linear_head(4, 3, dropout) for _ in range(2)]).double() for _ in range(2))
    for module in (student, teacher):
        for p in module.parameters():
            nn.init.normal_(p)
    gradients = []
    for settings in ({}, {"coupling": "differentiable"}, {"coupling": "detached"}):
        student.zero_grad()
        torch.manual_seed(2)  # the same dropout
        game, found = gradient(student, teacher, alpha=0.5, **settings)
        gradients.append(found.clone())
        assert game.coupling == settings.get("coupling", coupling)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-10, atol=1e-14)
    assert (gradients[0] - gradients[2]).norm() > 1e-3 * gradients[2].norm()
