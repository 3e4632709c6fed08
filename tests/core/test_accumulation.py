"""Micro-batches: plain accumulation, and the exact form that equals the whole batch."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from drift import Game
from drift.errors import ShapeError
from drift.models.mlp import mlp

X_U = torch.randn(24, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
X_L = torch.randn(12, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
Y = torch.arange(12) % 3
SOFT_Y = torch.softmax(torch.randn(12, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64), -1)


def game(**settings: Any) -> Game:
    torch.manual_seed(0)
    student, teacher = mlp(4, 3, hidden=(8,)).double(), mlp(4, 3, hidden=(8,)).double()
    return Game(student, teacher=teacher, alpha=0.6, **settings)


def gradient(game: Game) -> Tensor:
    return torch.cat([p.grad.flatten() for p in game.student.parameters()])


def semi(rows: slice, labels: slice) -> dict[str, Any]:
    return {"unlabeled": X_U[rows], "labeled": (X_L[labels], Y[labels])}


SEMI = [semi(slice(0, 5), slice(0, 6)), semi(slice(5, 15), slice(6, 9)), semi(slice(15, 24), slice(9, 12))]
SOFT = [
    {**batch, "labeled": (X_L[rows], SOFT_Y[rows])}
    for batch, rows in zip(SEMI, (slice(0, 6), slice(6, 9), slice(9, 12)), strict=True)
]
WEAK = [{"unlabeled": batch["unlabeled"]} for batch in SEMI]
LABELED = [{"labeled": batch["labeled"]} for batch in SEMI]
FORMS: dict[str, tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any]]] = {
    "semi": (SEMI, semi(slice(None), slice(None)), {}),
    "soft labels": (SOFT, {"unlabeled": X_U, "labeled": (X_L, SOFT_Y)}, {}),
    "weak": (WEAK, {"unlabeled": X_U}, {}),
    "algorithm 1": (SEMI, semi(slice(None), slice(None)), {"pseudo_label": "all"}),
    "distillation": (LABELED, {"labeled": (X_L, Y)}, {"pseudo_label": "all"}),
    "supervised": (LABELED, {"labeled": (X_L, Y)}, {}),
    "detached": (SEMI, semi(slice(None), slice(None)), {"coupling": "detached"}),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_exact_form_equals_the_whole_batch_for_micro_batches_of_different_size(form: str) -> None:
    parts, whole, settings = FORMS[form]
    at_once, in_parts = game(**settings), game(**settings)
    loss = at_once.loss(**whole)
    at_once.backward(loss)
    torch.testing.assert_close(in_parts.accumulate(parts), loss.detach(), rtol=1e-12, atol=0)
    torch.testing.assert_close(gradient(in_parts), gradient(at_once), rtol=1e-9, atol=1e-13)
    in_parts.follow()


def test_plain_accumulation_has_other_class_masses_and_so_another_gradient() -> None:
    at_once, in_parts = game(), game()
    at_once.backward(at_once.loss(unlabeled=X_U))
    for batch in WEAK:
        in_parts.backward(in_parts.loss(**batch) * (len(batch["unlabeled"]) / len(X_U)))
    assert (gradient(in_parts) - gradient(at_once)).norm() > 1e-3 * gradient(at_once).norm()


def test_plain_accumulation_is_exact_without_class_mass() -> None:
    at_once, in_parts = game(class_mass=False), game(class_mass=False)
    at_once.backward(at_once.loss(unlabeled=X_U))
    for batch in WEAK:
        in_parts.backward(in_parts.loss(**batch) * (len(batch["unlabeled"]) / len(X_U)))
    torch.testing.assert_close(gradient(in_parts), gradient(at_once), rtol=1e-9, atol=1e-13)


def with_dropout(build: Callable[..., Game], **settings: Any) -> Game:
    played = build()
    student = nn.Sequential(nn.Dropout(0.5), played.student)
    teacher = nn.Sequential(nn.Dropout(0.5), played.teacher)
    return Game(student, teacher=teacher, alpha=0.6, **settings)


@pytest.mark.parametrize("teacher_mode", ["eval", "train"])
def test_the_second_pass_draws_the_dropout_of_the_first(teacher_mode: Any) -> None:
    """The gradient is that of the loss returned: finite differences along one direction, same random state."""
    played = with_dropout(game, teacher_mode=teacher_mode, coupling="detached")
    torch.manual_seed(3)
    played.accumulate(SEMI)
    actual = {name: p.grad.clone() for name, p in played.student.named_parameters()}
    direction = {name: torch.randn_like(p) for name, p in played.student.named_parameters()}
    values = []
    for sign in (1, -1):
        moved = copy.deepcopy(played)
        with torch.no_grad():
            for name, p in moved.student.named_parameters():
                p.add_(sign * 1e-6 * direction[name])
        torch.manual_seed(3)
        values.append(float(moved.accumulate(SEMI)))
    analytic = float(sum((actual[name] * direction[name]).sum() for name in actual))
    assert (values[0] - values[1]) / 2e-6 == pytest.approx(analytic, rel=1e-5)


def test_buffers_are_updated_once_per_micro_batch() -> None:
    student = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3)).double()
    played = Game(student)
    played.accumulate(WEAK)
    assert int(student[0].num_batches_tracked) == len(WEAK)


def test_diagnostics_work_after_accumulation() -> None:
    played = game()
    played.accumulate(SEMI)
    assert played.diagnostics().interaction_norm > 0


def test_an_empty_list_of_micro_batches_is_refused() -> None:
    with pytest.raises(ShapeError, match="no micro-batch"):
        game().accumulate([])
