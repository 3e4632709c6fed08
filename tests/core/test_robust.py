"""Properties that hold for every batch, and extremes at which nothing may become NaN or infinite."""

import math
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor, nn
from torch.testing import assert_close

from drift import Game, HardStrategy, SoftStrategy
from drift.core import hard_labels, kl_divergence, log_soft_labels, sample_weight

FEATURES = 4
CLOSE = {"rtol": 1e-9, "atol": 1e-10}  # float64; log p / τ reaches 6,000, whose rounding is 1e-12
INF = math.inf

quick = settings(deadline=None, max_examples=60)


@st.composite
def batches(draw: st.DrawFn, *, largest: float = 30.0, least_rows: int = 2) -> Tensor:
    """Log-probabilities `(N, C)`, float64, from logits of every size."""
    shape = draw(st.tuples(st.integers(least_rows, 8), st.integers(2, 6)))
    logits = draw(hnp.arrays(np.float64, shape, elements=st.floats(-largest, largest, width=32)))
    return torch.log_softmax(torch.from_numpy(logits), -1)


taus = st.floats(0.01, 5.0)


# Properties


@quick
@given(batches(largest=1e4), taus, st.booleans())
def test_labels_are_on_the_simplex_and_weights_in_the_unit_interval(log_p: Tensor, tau: float, mass: bool) -> None:
    log_y = log_soft_labels(log_p, tau, class_mass=mass)
    assert (log_y <= 0).all()
    assert_close(log_y.exp().sum(-1), torch.ones(len(log_p), dtype=torch.float64), **CLOSE)
    omega = sample_weight(log_y)
    assert (omega >= 0).all()
    assert (omega <= 1).all()


@quick
@given(batches(), taus, st.booleans(), st.randoms(use_true_random=False))
def test_renaming_the_classes_renames_the_labels(log_p: Tensor, tau: float, mass: bool, random: object) -> None:
    order = list(range(log_p.shape[1]))
    random.shuffle(order)
    log_y, renamed = (log_soft_labels(each, tau, class_mass=mass) for each in (log_p, log_p[:, order]))
    assert_close(renamed, log_y[:, order], **CLOSE)
    assert_close(sample_weight(renamed), sample_weight(log_y), rtol=1e-9, atol=1e-9)


@quick
@given(batches(), taus, st.booleans(), st.randoms(use_true_random=False))
def test_reordering_the_rows_reorders_the_labels(log_p: Tensor, tau: float, mass: bool, random: object) -> None:
    order = list(range(len(log_p)))
    random.shuffle(order)
    log_y, reordered = (log_soft_labels(each, tau, class_mass=mass) for each in (log_p, log_p[order]))
    assert_close(reordered, log_y[order], **CLOSE)
    assert_close(sample_weight(reordered), sample_weight(log_y)[order], rtol=1e-9, atol=1e-9)


@quick
@given(batches(), st.integers(2, 4))
def test_a_batch_repeated_has_the_same_labels(log_p: Tensor, times: int) -> None:
    assert_close(log_soft_labels(log_p.repeat(times, 1), 0.5), log_soft_labels(log_p, 0.5).repeat(times, 1), **CLOSE)


@quick
@given(batches(), st.data())
def test_kl_is_not_negative_and_zero_at_equality(log_y: Tensor, data: st.DataObject) -> None:
    logits = data.draw(hnp.arrays(np.float64, tuple(log_y.shape), elements=st.floats(-30, 30)))
    log_q = torch.log_softmax(torch.from_numpy(logits), -1)
    assert (kl_divergence(log_y, log_q) >= -1e-12).all()
    assert_close(kl_divergence(log_y, log_y), torch.zeros(len(log_y), dtype=torch.float64), rtol=0, atol=0)


@quick
@given(batches())
def test_the_weight_falls_with_entropy_from_one_to_zero(log_p: Tensor) -> None:
    C = log_p.shape[-1]
    omega = sample_weight(log_p)
    entropy = -(log_p.exp() * log_p).sum(-1)
    assert_close(omega, (1 - entropy / math.log(C)).clamp(0, 1), **CLOSE)
    uniform = torch.full((1, C), -math.log(C), dtype=torch.float64)
    assert float(sample_weight(uniform)) == pytest.approx(0.0, abs=1e-12)
    certain = HardStrategy().respond(log_p).log_y
    assert torch.equal(sample_weight(certain), torch.ones(len(log_p), dtype=torch.float64))


@quick
@given(batches(), taus)
def test_sharpening_without_class_mass_keeps_the_best_class(log_p: Tensor, tau: float) -> None:
    log_y = log_soft_labels(log_p, tau, class_mass=False)
    best = hard_labels(log_p)[:, None]
    assert (log_y.gather(1, best)[:, 0] >= log_y.amax(1) - 1e-9).all()


# The class prior


@quick
@given(batches(), taus, st.floats(0.1, 10.0))
def test_a_uniform_prior_is_no_prior(log_p: Tensor, tau: float, share: float) -> None:
    C = log_p.shape[-1]
    without = SoftStrategy(tau).respond(log_p)
    uniform = SoftStrategy(tau, prior=[share] * C).respond(log_p)
    assert_close(uniform.log_y, without.log_y, **CLOSE)
    assert_close(uniform.omega, without.omega, rtol=1e-9, atol=1e-9)


@quick
@given(batches(largest=10.0), st.data())
def test_the_prior_moves_the_mean_label_toward_it(log_p: Tensor, data: st.DataObject) -> None:
    shares = data.draw(st.lists(st.floats(0.05, 1.0), min_size=log_p.shape[1], max_size=log_p.shape[1]))
    prior = torch.tensor(shares, dtype=torch.float64) / sum(shares)

    def distance(labels: Tensor) -> float:
        return float((prior * (prior / labels.mean(0)).log()).sum())

    # At τ = 1 this is one round of Sinkhorn's scaling, which never raises KL(π ‖ mean label).
    balanced = log_soft_labels(log_p, 1.0, log_prior=prior.log())
    assert distance(balanced.exp()) <= distance(log_p.exp()) + 1e-9


@quick
@given(batches(), taus, st.floats(1.5, 10.0), st.data())
def test_a_larger_share_raises_the_label_in_every_row(
    log_p: Tensor, tau: float, times: float, data: st.DataObject
) -> None:
    C = log_p.shape[-1]
    favoured = data.draw(st.integers(0, C - 1))
    prior = [times if j == favoured else 1.0 for j in range(C)]
    flat, skewed = SoftStrategy(tau).respond(log_p), SoftStrategy(tau, prior=prior).respond(log_p)
    assert (skewed.log_y[:, favoured] >= flat.log_y[:, favoured] - 1e-9).all()
    others = [j for j in range(C) if j != favoured]
    assert (skewed.log_y[:, others] <= flat.log_y[:, others] + 1e-9).all()


def test_a_skewed_prior_gives_skewed_labels() -> None:
    log_p = torch.log_softmax(torch.randn(500, 3, generator=torch.Generator().manual_seed(0)), -1)
    prior = torch.tensor([0.7, 0.2, 0.1])
    balanced = SoftStrategy(0.5).respond(log_p).log_y.exp().mean(0)
    skewed = SoftStrategy(0.5, prior=prior.tolist()).respond(log_p).log_y.exp().mean(0)
    assert_close(balanced, torch.full((3,), 1 / 3), rtol=0, atol=0.05)
    assert (((balanced - skewed) / (balanced - prior)) > 0.1).all()  # every class moves in the right direction
    assert (((skewed - prior) / (balanced - prior)) > 0).all()  # and none goes past it


# Extremes: the whole game, forwards and backwards


class Extreme(nn.Module):
    """A linear student whose logits are scaled, shifted and cast, as a large or damaged network's might be."""

    def __init__(self, shift: Tensor, scale: float = 1.0, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.body = nn.Linear(FEATURES, shift.shape[-1])
        nn.init.normal_(self.body.weight, generator=torch.Generator().manual_seed(0))
        nn.init.zeros_(self.body.bias)
        self.shift, self.scale, self.dtype = shift, scale, dtype

    def forward(self, x: Tensor) -> Tensor:
        logits = self.scale * self.body(x) + self.shift.to(x)
        return logits if self.dtype is None else logits.to(self.dtype)


def inputs(n: int = 6, seed: int = 1) -> Tensor:
    return torch.randn(n, FEATURES, generator=torch.Generator().manual_seed(seed))


def play_safely(game: Game, x: Tensor, labeled: tuple[Tensor, Tensor] | None = None) -> Tensor:
    """Three steps with the gradient cut to length one, all finite; the first gradient, flat."""
    parameters = list(game.student.parameters())
    first = None
    for _ in range(3):
        loss = game.loss(x, labeled)
        game.backward(loss)
        gradient = torch.cat([p.grad.flatten() for p in parameters])
        first = gradient.clone() if first is None else first
        assert torch.isfinite(loss), loss
        assert torch.isfinite(gradient).all(), gradient
        parts = game.last
        assert parts is not None
        for name in ("self_trained", "omega") + (("supervised",) if labeled else ()):
            assert torch.isfinite(getattr(parts, name)).all(), name
        for log in (parts.log_p, parts.log_y):  # log 0 = -inf is allowed, NaN is not
            assert (log <= 0).all()
            assert_close(log.exp().sum(-1), torch.ones_like(log[..., 0]))
        assert ((parts.omega >= 0) & (parts.omega <= 1)).all()
        nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)
        with torch.no_grad():
            for p in parameters:
                p -= 0.1 * p.grad
        game.student.zero_grad()
        game.follow()
    assert all(torch.isfinite(p).all() for p in game.teacher.parameters())
    return first


SHIFTS = {
    "level": [0.0, 0.0, 0.0],
    "class of no mass": [0.0, -INF, 0.0],
    "two classes of no mass": [-INF, 0.0, -INF],
    "class of hardly any mass": [0.0, -1e4, 0.0],
    "class of denormal mass": [0.0, -95.0, 0.0],
    "all rows one class": [1e4, 0.0, 0.0],
    "large and small": [1e4, -1e4, 0.0],
}


@pytest.mark.parametrize("tau", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("class_mass", [True, False])
def test_nothing_breaks_at_extreme_logits(shift: str, tau: float, class_mass: bool) -> None:
    game = Game(Extreme(torch.tensor(SHIFTS[shift])), alpha=0.5, tau=tau, class_mass=class_mass)
    play_safely(game, inputs())


@pytest.mark.parametrize("tau", [0.01, 0.5])
@pytest.mark.parametrize("scale", [0.0, 1e-6, 1e2, 1e4])
@pytest.mark.parametrize("prior", [None, (0.98, 0.01, 0.01)])
def test_nothing_breaks_at_any_scale(scale: float, tau: float, prior: tuple[float, ...] | None) -> None:
    student = Extreme(torch.zeros(3), scale=scale)
    game = Game(student, alpha=0.5, tau=tau, prior=prior)
    play_safely(game, inputs(), (inputs(seed=2), torch.tensor([0, 1, 2, 0, 1, 2])))


@pytest.mark.parametrize("switches", [(a, b, c) for a in (True, False) for b in (True, False) for c in (True, False)])
@pytest.mark.parametrize("shift", ["class of no mass", "large and small"])
def test_nothing_breaks_in_any_ablation(shift: str, switches: tuple[bool, bool, bool]) -> None:
    reweight, labels, weights = switches
    game = Game(
        Extreme(torch.tensor(SHIFTS[shift])),
        tau=0.05,
        reweight=reweight,
        differentiate_labels=labels,
        differentiate_weights=weights,
    )
    play_safely(game, inputs())


@pytest.mark.parametrize("shift", SHIFTS)
def test_hard_labels_of_extreme_logits(shift: str) -> None:
    game = Game(Extreme(torch.tensor(SHIFTS[shift])), strategy=HardStrategy())
    play_safely(game, inputs())
    assert torch.equal(game.last.omega, torch.ones(6))


def test_a_class_possible_in_some_rows_only() -> None:
    shift = torch.zeros(6, 3)
    shift[:3, 1] = -INF
    shift[0, 2] = -INF  # one class left: certain
    game = Game(Extreme(shift), alpha=0.5)
    play_safely(game, inputs())
    y = game.last.log_y.exp()
    assert torch.equal(y[:3, 1], torch.zeros(3))
    assert (y[3:, 1] > 0).all()
    assert y[0, 0] == 1.0
    assert game.last.omega[0] == 1.0


def test_a_class_without_mass_changes_nothing() -> None:
    log_p = torch.log_softmax(inputs().double()[:, :3], -1)
    dead = torch.full((6, 1), -INF, dtype=torch.float64)
    widened = log_soft_labels(torch.cat([log_p[:, :2], dead, log_p[:, 2:]], 1), 0.5)
    assert torch.equal(widened[:, 2:3], dead)
    assert_close(widened[:, [0, 1, 3]], log_soft_labels(log_p, 0.5), **CLOSE)


def test_a_tiny_mass_is_balanced_like_any_other() -> None:
    """The labels depend on p_j / f_j: a class of mass 1e-4000 has labels as large as one of mass 1."""
    log_p = torch.log_softmax(inputs().double()[:, :3], -1)
    lowered = torch.log_softmax(log_p + torch.tensor([0.0, -1e4, 0.0], dtype=torch.float64), -1)
    mass = log_soft_labels(lowered, 0.5).exp().mean(0)
    assert (mass > 0.15).all()


@pytest.mark.parametrize("class_mass", [True, False])
def test_a_batch_of_one(class_mass: bool) -> None:
    game = Game(Extreme(torch.zeros(3)), class_mass=class_mass)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gradient = play_safely(game, inputs(1))
    messages = [str(w.message) for w in caught]
    if class_mass:
        assert any("batch of one" in m and "use more rows" in m for m in messages)
        assert_close(game.last.log_y, torch.full((1, 3), -math.log(3)))
        assert_close(game.last.omega, torch.zeros(1), rtol=0, atol=1e-6)
        assert gradient.norm() < 1e-5  # it carries no information
    else:
        assert messages == []
        assert gradient.norm() > 1e-3


@pytest.mark.parametrize("same_row", [True, False])
def test_every_row_of_one_class(same_row: bool) -> None:
    x = inputs(1).repeat(6, 1) if same_row else inputs()
    game = Game(Extreme(torch.tensor([50.0, 0.0, 0.0])), tau=0.5)
    play_safely(game, x)
    assert (hard_labels(game.last.log_p) == 0).all()
    if same_row:  # p_j / f_j is 1/N for every class
        assert_close(game.last.omega, torch.zeros(6), rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("tau", [0.01, 0.5])
def test_logits_of_any_precision_are_summed_in_float32_at_least(dtype: torch.dtype, tau: float) -> None:
    game = Game(Extreme(torch.zeros(3), scale=5.0, dtype=dtype), tau=tau)
    gradient = play_safely(game, inputs(64))
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    assert game.last.log_p.dtype == game.last.log_y.dtype == game.last.omega.dtype == wide
    assert gradient.norm() > 1e-4


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_a_student_of_any_precision(dtype: torch.dtype) -> None:
    student = Extreme(torch.zeros(3)).to(dtype)
    half = dtype in (torch.float16, torch.bfloat16)
    with pytest.warns(UserWarning, match="half precision, in which small updates") if half else nullcontext():
        game = Game(student, alpha=0.5)
    reference = Game(Extreme(torch.zeros(3)).to(dtype).double(), alpha=0.5)
    gradient = play_safely(game, inputs().to(dtype))
    expected = play_safely(reference, inputs().to(dtype).double())
    assert gradient.dtype == dtype
    assert all(p.dtype == dtype for p in game.teacher.parameters())
    error = (gradient.double() - expected).norm() / expected.norm()
    assert error < {torch.float16: 2e-2, torch.bfloat16: 0.1, torch.float64: 1e-12}[dtype]


@pytest.mark.parametrize("size", [1e4, 6e4])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_large_half_precision_logits_do_not_overflow(dtype: torch.dtype, size: float) -> None:
    shift = torch.tensor([size, -size, 0.0])
    game = Game(Extreme(shift, dtype=dtype), tau=0.01)
    with torch.no_grad():  # backward through float16 needs a gradient scaler for any loss
        loss = game.loss(inputs())
    assert torch.isfinite(loss)
    assert torch.isfinite(game.last.omega).all()
    assert not game.last.log_y.isnan().any()


@quick
@given(batches(largest=1e4, least_rows=1), batches(largest=1e4, least_rows=1), st.floats(0.01, 2.0), st.booleans())
@pytest.mark.filterwarnings("ignore:a batch of one")
def test_gradients_of_the_loss_are_finite_everywhere(teacher: Tensor, student: Tensor, tau: float, mass: bool) -> None:
    n, c = (min(a, b) for a, b in zip(teacher.shape, student.shape, strict=True))
    a, b = (logits[:n, :c].clone().float().requires_grad_() for logits in (teacher, student))
    strategy = SoftStrategy(tau, mass)
    loss = strategy.loss(strategy.respond(torch.log_softmax(a, -1)), torch.log_softmax(b, -1)).mean()
    for gradient in torch.autograd.grad(loss, (a, b)):
        assert torch.isfinite(gradient).all()
    assert torch.isfinite(loss)
    assert loss >= -1e-5
