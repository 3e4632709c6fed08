"""Gradients in closed form equal those of autograd through the formulas, and finite differences."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from drift import SoftStrategy
from drift.core.closed_form import SoftResponse, StudentLoss
from drift.core.labels import log_soft_labels, sample_weight
from drift.core.losses import kl_divergence, student_loss

EXACT = {"rtol": 1e-10, "atol": 1e-14}
SETTINGS: dict[str, dict[str, Any]] = {
    "drift": {},
    "another temperature": {"tau": 0.25},
    "prior": {"prior": (0.1, 0.2, 0.3, 0.4)},
    "unbalanced": {"unbalanced_class": 1},
    "unbalanced, prior": {"unbalanced_class": 0, "prior": (0.1, 0.2, 0.3, 0.4)},
    "w/o class mass": {"class_mass": False},
    "w/o SR": {"reweight": False},
    "w/o DrPL": {"differentiate_labels": False},
    "w/o DrW": {"differentiate_weights": False},
}


def draw(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.log_softmax(2 * torch.randn(*shape, generator=generator, dtype=torch.float64), -1)


def by_formula(strategy: SoftStrategy, log_p: Tensor) -> tuple[Tensor, Tensor]:
    """Labels and weights from Eqs. 6 and 7 as `drift.core.labels` has them, with autograd's gradients."""
    log_y = log_soft_labels(
        log_p,
        strategy.tau,
        class_mass=strategy.class_mass,
        log_prior=strategy._log_prior(log_p),
        unbalanced_class=strategy.unbalanced_class,
    )
    omega = sample_weight(log_y) if strategy.reweight else torch.ones_like(log_y[..., 0])
    return (
        log_y if strategy.differentiate_labels else log_y.detach(),
        omega if strategy.differentiate_weights else omega.detach(),
    )


def gradients(response: tuple[Tensor, Tensor], log_p: Tensor, log_q: Tensor, *, fused: bool) -> list[Tensor | None]:
    log_y, omega = response
    losses = student_loss(log_y, omega, log_q) if fused else omega * kl_divergence(log_y, log_q)
    weights = torch.linspace(-1, 2, losses.numel(), dtype=losses.dtype).view_as(losses)  # unequal rows
    loss = (weights * losses).sum() + (log_y.exp() * draw(*log_y.shape, seed=9)).sum() + omega.square().sum()
    return list(torch.autograd.grad(loss, (log_p, log_q), allow_unused=True))


@pytest.mark.parametrize("shape", [(7, 4), (3, 7, 4)], ids=["rows", "trials"])
@pytest.mark.parametrize("settings", SETTINGS)
def test_values_and_gradients_are_those_of_the_formulas(settings: str, shape: tuple[int, ...]) -> None:
    strategy = SoftStrategy(**SETTINGS[settings])
    log_p, log_q = draw(*shape).requires_grad_(), draw(*shape, seed=1).requires_grad_()
    response, expected = strategy.respond(log_p), by_formula(strategy, log_p)
    assert torch.equal(response.log_y, expected[0])
    assert torch.equal(response.omega, expected[1])
    actual = gradients((response.log_y, response.omega), log_p, log_q, fused=True)
    for ours, theirs in zip(actual, gradients(expected, log_p, log_q, fused=False), strict=True):
        torch.testing.assert_close(ours, theirs, **EXACT)


@pytest.mark.parametrize("unbalanced", [None, 2])
@pytest.mark.parametrize("prior", [None, (0.5, 0.1, 0.2, 0.2)])
def test_the_response_agrees_with_finite_differences(unbalanced: int | None, prior: tuple[float, ...] | None) -> None:
    log_prior = None if prior is None else torch.tensor(prior, dtype=torch.float64).log()

    def respond(log_p: Tensor) -> tuple[Tensor, Tensor]:
        log_y, omega = SoftResponse.apply(log_p, 0.5, True, log_prior, unbalanced, True)
        return log_y, omega

    assert torch.autograd.gradcheck(respond, (draw(6, 4).requires_grad_(),))


def test_the_loss_agrees_with_finite_differences() -> None:
    omega = torch.linspace(0.1, 0.9, 6, dtype=torch.float64)
    inputs = (draw(6, 4).requires_grad_(), omega.requires_grad_(), draw(6, 4, seed=1).requires_grad_())
    assert torch.autograd.gradcheck(StudentLoss.apply, inputs)


def test_a_class_that_is_impossible_in_some_rows_is_the_limit_of_a_rare_one() -> None:
    """Autograd through the formulas multiplies 0 by infinity there, so the oracle has a probability of exp(-10000)."""
    impossible = draw(6, 4)
    impossible[:2, 1] = -math.inf
    impossible = impossible.log_softmax(-1)
    log_q = draw(6, 4, seed=1).requires_grad_()
    found = []
    for log_p, respond in ((impossible, SoftStrategy().respond), (impossible.clamp(min=-1e4), None)):
        leaf = log_p.clone().requires_grad_()
        response = respond(leaf) if respond else None
        parts = (response.log_y, response.omega) if response else by_formula(SoftStrategy(), leaf)
        found.append(torch.autograd.grad(student_loss(*parts, log_q).sum(), (leaf, log_q)))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, **EXACT)


def test_a_class_that_is_impossible_in_every_row_has_a_gradient_of_0() -> None:
    log_p = draw(6, 4)
    log_p[:, 3] = -math.inf
    log_p = log_p.log_softmax(-1).requires_grad_()
    response = SoftStrategy().respond(log_p)
    (gradient,) = torch.autograd.grad(
        (5 * student_loss(response.log_y, response.omega, draw(6, 4, seed=1))).sum(), log_p
    )
    assert torch.isfinite(gradient).all()
    assert (gradient[:, 3] == 0).all()
    assert gradient[:, :3].abs().min() > 0


def test_second_derivatives_are_refused_and_not_wrong() -> None:
    log_p = draw(6, 4).requires_grad_()
    response = SoftStrategy().respond(log_p)
    (gradient,) = torch.autograd.grad(response.log_y.exp().square().sum(), log_p, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()
