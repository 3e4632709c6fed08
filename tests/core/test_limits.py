"""Limits in which DRIFT reduces to something simpler, exactly or up to float64 rounding."""

import copy
import itertools

import pytest
import torch
from torch import nn

from drift import Game, HardStrategy, SoftStrategy
from drift.core import hard_labels, kl_divergence, log_soft_labels, sample_weight, supervised_loss
from drift.models.mlp import mlp


def student() -> nn.Module:
    torch.manual_seed(0)
    return mlp(4, 3, hidden=(8,)).double()


def batch(rows: int = 16) -> torch.Tensor:
    return torch.randn(rows, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


X, Y = batch(), torch.tensor([0, 1, 2, 2, 1, 0, 0, 1, 2, 1, 1, 0, 2, 2, 0, 1])


def drifted(**settings) -> Game:
    """A game whose teacher differs from its student, so that no term is zero by accident."""
    teacher = student()
    with torch.no_grad():
        for p in teacher.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=torch.Generator().manual_seed(2), dtype=p.dtype))
    return Game(student(), teacher=teacher, **settings)


def gradient(game: Game, **data) -> torch.Tensor:
    game.student.zero_grad()
    game.backward(game.loss(**data))
    return torch.cat([p.grad.flatten() for p in game.student.parameters()])


def play(game: Game, steps: int = 10, **data) -> torch.Tensor:
    optimizer = torch.optim.Adam(game.student.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        game.backward(game.loss(**data))
        optimizer.step()
        game.follow()
    return torch.cat([p.detach().flatten() for p in game.student.parameters()])


def test_alpha_one_makes_the_interaction_zero() -> None:
    coupled, detached = (gradient(drifted(alpha=1.0, coupling=c), unlabeled=X) for c in ("differentiable", "detached"))
    assert torch.equal(coupled, detached)


def test_alpha_one_keeps_the_teacher_to_the_bit() -> None:
    game = drifted(alpha=1.0)
    before = copy.deepcopy(game.teacher.state_dict())
    play(game, unlabeled=X)
    assert all(torch.equal(before[name], value) for name, value in game.teacher.state_dict().items())


def test_alpha_zero_makes_the_teacher_the_student_to_the_bit() -> None:
    game = drifted(alpha=0.0)
    play(game, unlabeled=X)
    pairs = zip(game.student.parameters(), game.teacher.parameters(), strict=True)
    assert all(torch.equal(s, t) for s, t in pairs)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9, 0.99])
def test_coupling_off_equals_self_training_written_by_hand(alpha: float) -> None:
    ours = play(Game(student(), alpha=alpha, coupling="detached"), unlabeled=X, labeled=(X, Y))

    model = student()
    teacher = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(10):
        with torch.no_grad():
            p = torch.softmax(teacher(X), -1) ** 2
            y = p / p.sum(0)
            y = y / y.sum(1, keepdim=True)
            omega = 1 + (y * y.log()).sum(1) / torch.log(torch.tensor(3.0, dtype=torch.float64))
        log_q = torch.log_softmax(model(X), -1)
        loss = nn.functional.nll_loss(log_q, Y) + (omega * (y * (y.log() - log_q)).sum(1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for t, s in zip(teacher.parameters(), model.parameters(), strict=True):
                t.copy_(alpha * t + (1 - alpha) * s)
    by_hand = torch.cat([p.detach().flatten() for p in model.parameters()])
    torch.testing.assert_close(ours, by_hand, rtol=1e-9, atol=1e-11)


def test_no_unlabeled_equals_supervised_learning_to_the_bit() -> None:
    model = student()
    nn.functional.cross_entropy(model(X), Y).backward()
    expected = torch.cat([p.grad.flatten() for p in model.parameters()])
    torch.testing.assert_close(gradient(drifted(), labeled=(X, Y)), expected, rtol=0, atol=1e-16)


def test_strategy_and_weight_may_change_between_steps() -> None:
    changed, fresh = drifted(), drifted(tau=0.2, unlabeled_weight=3.0)
    gradient(changed, unlabeled=X, labeled=(X, Y))
    changed.strategy, changed.unlabeled_weight = SoftStrategy(tau=0.2), 3.0
    assert torch.equal(gradient(changed, unlabeled=X, labeled=(X, Y)), gradient(fresh, unlabeled=X, labeled=(X, Y)))


def test_weight_zero_equals_supervised_learning() -> None:
    alone, weighted = gradient(drifted(), labeled=(X, Y)), drifted(unlabeled_weight=0.0)
    torch.testing.assert_close(gradient(weighted, labeled=(X, Y), unlabeled=X), alone, rtol=0, atol=1e-16)


@pytest.mark.parametrize("tau", [1e-2, 1e-3, 1e-4])
def test_low_temperature_without_class_mass_is_the_hard_label(tau: float) -> None:
    log_p = torch.log_softmax(student()(X), -1).detach()
    gap = log_p.topk(2).values.diff().abs().min() / tau  # how much sharper the runner-up's label is
    soft = log_soft_labels(log_p, tau, class_mass=False).exp()
    hard = nn.functional.one_hot(hard_labels(log_p), 3).double()
    torch.testing.assert_close(soft, hard, rtol=0, atol=float((-gap).exp()) + 1e-15)


def test_low_temperature_with_class_mass_is_the_class_nearest_its_own_best() -> None:
    """The paper's remark holds only without class mass: with it it is argmax_j p_j over the batch's largest p_j."""
    log_p = torch.log_softmax(batch(40)[:, :3] + torch.tensor([2.0, 0.0, 0.0]), -1)  # skewed to one class
    soft = log_soft_labels(log_p, 1e-3, class_mass=True)
    expected = (log_p - log_p.max(0).values).argmax(1)
    assert torch.equal(soft.argmax(1), expected)
    assert not torch.equal(expected, hard_labels(log_p))


def test_hard_strategy_is_cross_entropy_with_the_teachers_choice() -> None:
    game = drifted(strategy=HardStrategy())
    chosen = game.teacher(X).argmax(-1)
    expected = nn.functional.cross_entropy(game.student(X), chosen)
    torch.testing.assert_close(game.loss(unlabeled=X), expected, rtol=1e-14, atol=0)
    assert not game.couples


def test_uniform_labels_have_weight_0_and_one_hot_labels_weight_1() -> None:
    uniform = torch.full((1, 5), 0.2, dtype=torch.float64).log()
    one_hot = torch.tensor([[0.0, -torch.inf, -torch.inf, -torch.inf, -torch.inf]], dtype=torch.float64)
    assert float(sample_weight(uniform)) == pytest.approx(0.0, abs=1e-15)
    assert float(sample_weight(one_hot)) == 1.0


def test_class_mass_of_equal_rows_cancels() -> None:
    """When every row is the same, p / f is the same for all classes: balanced labels are uniform."""
    log_p = torch.log_softmax(torch.tensor([[3.0, 1.0, 0.0]] * 6, dtype=torch.float64), -1)
    torch.testing.assert_close(log_soft_labels(log_p, 0.5).exp(), torch.full_like(log_p, 1 / 3))


def test_losses_agree_with_torch() -> None:
    log_q, log_y = torch.log_softmax(student()(X), -1), torch.log_softmax(batch()[:, :3], -1)
    expected = nn.functional.kl_div(log_q, log_y, log_target=True, reduction="none").sum(-1)
    torch.testing.assert_close(kl_divergence(log_y, log_q), expected)
    torch.testing.assert_close(supervised_loss(log_q, Y), nn.functional.nll_loss(log_q, Y, reduction="none"))
    soft = torch.softmax(batch()[:, :3], -1)
    expected = nn.functional.cross_entropy(log_q, soft, reduction="none")  # of logits, which log q are, too
    torch.testing.assert_close(supervised_loss(log_q, soft), expected)


def test_one_hot_labels_are_class_indices() -> None:
    one_hot = nn.functional.one_hot(Y, 3).double()
    soft, hard = (gradient(drifted(), unlabeled=X, labeled=(X, y)) for y in (one_hot, Y))
    torch.testing.assert_close(soft, hard, rtol=1e-12, atol=1e-15)


# The six cases of the ablation: every distinct setting of SR, DrPL and DrW.

SWITCHES = list(itertools.product((True, False), repeat=3))  # reweight, differentiate_labels, differentiate_weights


def gradient_of(reweight: bool, labels: bool, weights: bool, **settings) -> torch.Tensor:
    return gradient(
        drifted(reweight=reweight, differentiate_labels=labels, differentiate_weights=weights, **settings), unlabeled=X
    )


def test_the_switches_make_six_distinct_cases() -> None:
    distinct: list[torch.Tensor] = []
    for switches in SWITCHES:
        actual = gradient_of(*switches)
        if not any(torch.equal(actual, other) for other in distinct):
            distinct.append(actual)
    assert len(distinct) == 6


def test_without_reweighting_the_weights_switch_has_no_effect() -> None:
    for labels in (True, False):
        assert torch.equal(gradient_of(False, labels, True), gradient_of(False, labels, False))


def test_all_switches_off_equals_coupling_off() -> None:
    for reweight in (True, False):
        off = gradient_of(reweight, False, False)
        detached = gradient_of(reweight, True, True, coupling="detached")
        assert torch.equal(off, detached)


def test_labels_and_weights_contribute_additively() -> None:
    """d(ω KL) = ω dKL + KL dω: what DrPL adds and what DrW adds sum to what both add."""
    base, labels = gradient_of(True, False, False), gradient_of(True, True, False)
    weights, both = gradient_of(True, False, True), gradient_of(True, True, True)
    torch.testing.assert_close((labels - base) + (weights - base), both - base, rtol=1e-10, atol=1e-14)


def test_every_single_term_reaches_the_student() -> None:
    """No dead terms: the supervised loss, the student's side and each part of the strategy have a gradient."""
    base = gradient_of(True, False, False)
    assert gradient(drifted(), labeled=(X, Y)).norm() > 1e-3
    assert base.norm() > 1e-3
    assert (gradient_of(True, True, False) - base).norm() > 1e-4
    assert (gradient_of(True, False, True) - base).norm() > 1e-4


def test_class_mass_gradient_flows_through_the_sum() -> None:
    """A row's label depends on the other rows through f_j, and so does its gradient."""
    log_p = torch.log_softmax(student()(X), -1).detach().requires_grad_()
    log_soft_labels(log_p, 0.5)[0, 0].backward()
    assert log_p.grad[1:].abs().min() > 0


def test_a_uniform_prior_is_the_default() -> None:
    log_p = torch.log_softmax(student()(X), -1)
    with_prior = SoftStrategy(prior=(5.0, 5.0, 5.0)).respond(log_p)
    torch.testing.assert_close(with_prior.log_y, SoftStrategy().respond(log_p).log_y)


def test_an_unbalanced_class_keeps_its_odds_and_the_others_are_balanced() -> None:
    log_p = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
    sharp = log_p.exp() ** 2
    f = sharp.sum(0)
    by_hand = sharp / torch.cat([torch.ones(1), f[1:] / f[1:].mean()])
    actual = log_soft_labels(log_p, 0.5, unbalanced_class=0).exp()
    torch.testing.assert_close(actual, by_hand / by_hand.sum(-1, keepdim=True))


def test_an_unbalanced_class_has_no_effect_if_all_classes_have_the_same_mass() -> None:
    rows = torch.randn(1, 3, generator=torch.Generator().manual_seed(1)).log_softmax(-1)
    log_p = torch.cat([rows.roll(shift, -1) for shift in range(3)])  # every class has the same mass
    torch.testing.assert_close(log_soft_labels(log_p, 0.5, unbalanced_class=1), log_soft_labels(log_p, 0.5))
    torch.testing.assert_close(
        log_soft_labels(log_p, 0.5, unbalanced_class=1), log_soft_labels(log_p, 0.5, class_mass=False)
    )
