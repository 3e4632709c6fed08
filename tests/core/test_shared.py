"""`coupling="shared"`: the interaction term through the student's Jacobian, in one backward of the student."""

import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev

from drift import Game, HardStrategy, SoftStrategy
from drift.core.strategy import Response, Strategy
from drift.errors import ShapeError, StateError
from drift.models.gcn import GCN
from drift.models.mlp import mlp
from drift.models.stacked import Stacked

ALPHA, TAU = 0.6, 0.5
EXACT = {"rtol": 1e-10, "atol": 1e-14}
DRAW = torch.Generator().manual_seed(0)
X_U = torch.randn(24, 4, generator=DRAW, dtype=torch.float64)
X_L = torch.randn(12, 4, generator=DRAW, dtype=torch.float64)
Y = torch.arange(12) % 3


class Margin(Strategy):
    """A strategy with another loss: sharpened labels, the squared distance of probabilities."""

    def respond(self, log_p: Tensor) -> Response:
        return Response(torch.log_softmax(3 * log_p, -1), log_p.exp().max(-1).values)

    def loss(self, response: Response, log_q: Tensor) -> Tensor:
        return response.omega * (response.log_y.exp() - log_q.exp()).square().sum(-1)


FORMS: dict[str, dict[str, Any]] = {
    "semi": {"unlabeled": X_U, "labeled": (X_L, Y)},
    "weak": {"unlabeled": X_U},
    "distillation": {"labeled": (X_L, Y)},
}
STRATEGIES: dict[str, dict[str, Any]] = {
    "drift": {},
    "prior": {"prior": (0.2, 0.3, 0.5)},
    "unbalanced": {"unbalanced_class": 0},
    "w/o DrPL": {"differentiate_labels": False},
    "w/o DrW": {"differentiate_weights": False},
    "w/o SR": {"reweight": False},
    "w/o class mass": {"class_mass": False},
    "another": {"strategy": Margin()},
}


def linear() -> nn.Module:
    return nn.Linear(4, 3).double()


def network(dropout: float = 0.0) -> nn.Module:
    return mlp(4, 3, hidden=(8,), dropout=dropout).double()


def game(build: Callable[[], nn.Module] = network, **settings: Any) -> Game:
    torch.manual_seed(0)
    return Game(build(), **{"teacher": build(), "alpha": ALPHA, "coupling": "shared", **settings})


def flat(module: nn.Module) -> Tensor:
    return torch.cat([p.grad.flatten() for p in module.parameters()])


def gradient(played: Game, **batch: Any) -> Tensor:
    torch.manual_seed(1)
    played.backward(played.loss(**batch))
    assert all(p.grad is None for p in played.teacher.parameters())
    return flat(played.student).clone()


# Where it is exact: logits that are linear in the parameters.


@pytest.mark.parametrize("pseudo_label", ["unlabeled", "all"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_for_a_linear_model_it_is_the_differentiable_teacher(form: str, strategy: str, pseudo_label: str) -> None:
    settings = {**STRATEGIES[strategy], "pseudo_label": pseudo_label}
    shared, exact, detached = (
        gradient(game(linear, coupling=coupling, **settings), **FORMS[form])
        for coupling in ("shared", "differentiable", "detached")
    )
    torch.testing.assert_close(shared, exact, **EXACT)
    has_pseudo_labels = form != "distillation" or pseudo_label == "all"
    assert ((shared - detached).norm() > 1e-3 * detached.norm()) == has_pseudo_labels


def test_for_stacked_linear_models_it_is_the_differentiable_teacher() -> None:
    x_u, x_l = (torch.randn(3, n, 4, dtype=torch.float64) for n in (10, 6))
    batch = {"unlabeled": x_u, "labeled": (x_l, torch.arange(18).view(3, 6) % 3)}
    gradients = []
    for coupling in ("shared", "differentiable"):
        played = game(
            lambda: Stacked([linear() for _ in range(3)]), stacked=True, coupling=coupling, pseudo_label="all"
        )
        gradients.append(gradient(played, **batch))
    torch.testing.assert_close(*gradients, **EXACT)


class OneLayerGraph(nn.Module):
    """Â X W: a graph model that is linear in W and computes all nodes at every call."""

    calls = 0

    def __init__(self) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(5)
        self.features = torch.randn(30, 4, generator=draw, dtype=torch.float64)
        self.adjacency = torch.rand(30, 30, generator=draw, dtype=torch.float64)
        self.weight = nn.Parameter(torch.randn(4, 3, dtype=torch.float64))

    def forward(self, rows: Tensor) -> Tensor:
        self.calls += 1
        return (self.adjacency @ self.features @ self.weight)[rows]


@pytest.mark.parametrize("pseudo_label", ["unlabeled", "all"])
def test_for_a_full_graph_both_kinds_of_rows_keep_their_order(pseudo_label: str) -> None:
    batch = {"unlabeled": torch.arange(29, 11, -1), "labeled": (torch.arange(12), Y)}
    settings = {"full_graph": True, "pseudo_label": pseudo_label}
    played = game(OneLayerGraph, **settings)
    shared = gradient(played, **batch)
    exact = gradient(game(OneLayerGraph, coupling="differentiable", **settings), **batch)
    torch.testing.assert_close(shared, exact, **EXACT)
    assert played.student.calls == 1


# Elsewhere: the student's Jacobian.


def reference(student: nn.Module, teacher: nn.Module, x: Tensor, alpha: float) -> Tensor:
    """J_Sᵀ (g_S + (1 - α) g_T), written out: logits as leaves, the Jacobian by torch.func. Weakly supervised."""
    z_s, z_t = (module(x).detach().requires_grad_() for module in (student, teacher))
    sharp = torch.softmax(z_t, -1) ** (1 / TAU)
    y = sharp / sharp.sum(0)
    y = y / y.sum(1, keepdim=True)
    omega = 1 + (y * y.log()).sum(1) / torch.tensor(3.0, dtype=torch.float64).log()
    (omega * (y * (y.log() - torch.log_softmax(z_s, -1))).sum(1)).mean().backward()
    theta = {name: p.detach() for name, p in student.named_parameters()}
    jacobian = jacrev(lambda theta: functional_call(student, theta, (x,)))(theta)  # (N, C, *shape) by name
    sent = z_s.grad + (1 - alpha) * z_t.grad
    return torch.cat([torch.einsum("nc,nc...->...", sent, jacobian[name]).flatten() for name in theta])


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9])
def test_for_a_network_it_is_the_students_jacobian(alpha: float) -> None:
    played = game(alpha=alpha)
    expected = reference(played.student, played.teacher, X_U, alpha)
    actual = gradient(played, unlabeled=X_U)
    torch.testing.assert_close(actual, expected, **EXACT)
    exact = gradient(game(alpha=alpha, coupling="differentiable"), unlabeled=X_U)
    assert (actual - exact).norm() > 1e-3 * (1 - alpha) * exact.norm()  # the test can tell the two apart


def test_the_teacher_has_no_graph() -> None:
    played = game()
    seen = []
    played.teacher.register_forward_hook(lambda module, args, output: seen.append(output.requires_grad))
    gradient(played, unlabeled=X_U)
    assert seen == [False]


# Limits.


@pytest.mark.parametrize("settings", [{"alpha": 1.0}, {"strategy": HardStrategy()}], ids=["alpha=1", "hard labels"])
def test_without_interaction_it_is_self_training(settings: dict[str, Any]) -> None:
    shared, detached = (game(coupling=coupling, **settings) for coupling in ("shared", "detached"))
    assert torch.equal(gradient(shared, **FORMS["semi"]), gradient(detached, **FORMS["semi"]))
    assert not shared.couples
    assert shared.diagnostics().interaction_norm == 0


def test_an_impossible_class_gives_finite_gradients() -> None:
    class Impossible(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = linear()

        def forward(self, x: Tensor) -> Tensor:
            return self.body(x) + x.new_tensor([0.0, -torch.inf, 0.0])

    shared, exact = (gradient(game(Impossible, coupling=c), unlabeled=X_U) for c in ("shared", "differentiable"))
    assert torch.isfinite(shared).all()
    torch.testing.assert_close(shared, exact, **EXACT)


# Micro-batches, precision, wrappers of the backward.

PARTS = [
    {"unlabeled": X_U[rows], "labeled": (X_L[labels], Y[labels])}
    for rows, labels in ((slice(0, 5), slice(0, 6)), (slice(5, 15), slice(6, 9)), (slice(15, 24), slice(9, 12)))
]


@pytest.mark.parametrize("pseudo_label", ["unlabeled", "all"])
def test_micro_batches_equal_the_whole_batch(pseudo_label: str) -> None:
    whole, parts = (game(pseudo_label=pseudo_label) for _ in range(2))
    expected = gradient(whole, **FORMS["semi"])
    parts.accumulate(PARTS)
    torch.testing.assert_close(flat(parts.student), expected, **EXACT)
    actual = parts.diagnostics()
    assert actual.interaction_norm == pytest.approx(whole.diagnostics().interaction_norm, rel=1e-9)
    parts.follow()


def test_plain_accumulation_without_class_mass_equals_the_whole_batch() -> None:
    whole, parts = (game(class_mass=False) for _ in range(2))
    expected = gradient(whole, unlabeled=X_U)
    for last, batch in enumerate(PARTS):
        loss = parts.loss(unlabeled=batch["unlabeled"]) * (len(batch["unlabeled"]) / len(X_U))
        parts.backward(loss, merge=last == 2)
    torch.testing.assert_close(flat(parts.student), expected, **EXACT)
    assert parts.diagnostics().interaction_norm == pytest.approx(whole.diagnostics().interaction_norm, rel=1e-9)


def test_under_autocast() -> None:
    played, exact = (game(lambda: nn.Linear(4, 3), coupling=coupling) for coupling in ("shared", "differentiable"))
    for each in (played, exact):
        with torch.autocast("cpu", torch.bfloat16):
            loss = each.loss(unlabeled=X_U.float())
        assert loss.dtype == torch.float32
        each.backward(loss)
    torch.testing.assert_close(flat(played.student), flat(exact.student), rtol=0.02, atol=1e-4)
    assert_terms_add_up(played, rel=1e-5)  # repeated in bfloat16, although outside the context


def test_a_scaled_loss_scales_both_terms() -> None:
    plain, scaled = game(), game()
    expected = gradient(plain, **FORMS["semi"])
    scaled.backward(scaled.loss(**FORMS["semi"]), backward=lambda loss: (8 * loss).backward())
    torch.testing.assert_close(flat(scaled.student), 8 * expected, **EXACT)
    assert scaled.diagnostics().interaction_norm == pytest.approx(8 * plain.diagnostics().interaction_norm)


def test_with_a_gradient_scaler_the_step_is_the_same() -> None:
    """The scaler multiplies the loss, so that both terms are scaled, and divides before the step."""
    plain, scaled = game(), game()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
    optimizers = [torch.optim.SGD(played.student.parameters(), lr=0.3) for played in (plain, scaled)]
    gradient(plain, **FORMS["semi"])
    optimizers[0].step()
    scaled.backward(scaled.loss(**FORMS["semi"]), backward=lambda loss: scaler.scale(loss).backward())
    scaler.unscale_(optimizers[1])
    scaler.step(optimizers[1])
    scaler.update()
    for a, b in zip(plain.student.parameters(), scaled.student.parameters(), strict=True):
        torch.testing.assert_close(a, b, **EXACT)
    scaled.follow()


# Misuse.


def test_bypassing_backward_is_refused_at_follow() -> None:
    played = game()
    played.loss(unlabeled=X_U).backward()
    with pytest.raises(StateError, match=r"game\.backward\(loss\)"):
        played.follow()
    played.student.zero_grad()
    gradient(played, unlabeled=X_U)
    played.follow()
    assert played.steps == 1


def test_predictions_on_other_rows_are_refused() -> None:
    class Longer(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x[1:] if self.training else x)

    played = game(lambda: Longer(4, 3).double())
    with pytest.raises(ShapeError, match=r"\(24, 3\).*\(23, 3\).*same rows"):
        played.loss(unlabeled=X_U)


# Custom losses.


def custom(played: Game, *, once: bool) -> Tensor:
    if once:
        log_q, response = played.play(X_U)
    else:
        response = played.respond(X_U)
        log_q = torch.log_softmax(played.student(X_U), -1)
    played.backward(played.strategy.loss(response, log_q).mean())
    return flat(played.student)


@pytest.mark.parametrize("once", [True, False], ids=["play", "respond"])
@pytest.mark.parametrize("coupling", ["shared", "differentiable", "detached"])
def test_a_custom_loss_is_the_games(coupling: str, once: bool) -> None:
    expected = gradient(game(coupling=coupling), unlabeled=X_U)
    played = game(coupling=coupling)
    torch.testing.assert_close(custom(played, once=once), expected, **EXACT)
    assert_terms_add_up(played)
    played.follow()


def test_a_response_leaves_the_students_statistics_alone() -> None:
    played = game(lambda: nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3)).double())
    played.respond(X_U)
    assert int(played.student[0].num_batches_tracked) == 0
    played.play(X_U)
    assert int(played.student[0].num_batches_tracked) == 1


# Diagnostics.


def assert_terms_add_up(played: Game, rel: float = 1e-9) -> None:
    """‖L + I‖² = ‖L‖² + ‖I‖² + 2 ‖L‖ ‖I‖ cos, with the norms and the angle that diagnostics report."""
    before, total = [p.grad for p in played.student.parameters()], float(flat(played.student).square().sum())
    seen = played.diagnostics()
    assert all(p.grad is kept for p, kept in zip(played.student.parameters(), before, strict=True))
    cosine = 0.0 if seen.angle is None else float(torch.tensor(seen.angle, dtype=torch.float64).deg2rad().cos())
    sum_of_terms = seen.leader_norm**2 + seen.interaction_norm**2
    assert sum_of_terms + 2 * seen.leader_norm * seen.interaction_norm * cosine == pytest.approx(total, rel=rel)


STUDENTS: dict[str, Callable[[], nn.Module]] = {
    "network": network,
    "dropout": lambda: network(0.5),
    "batch norm": lambda: nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3)).double(),
}


@pytest.mark.parametrize("student", STUDENTS)
@pytest.mark.parametrize("pseudo_label", ["unlabeled", "all"])
def test_diagnostics_split_the_gradient(student: str, pseudo_label: str) -> None:
    """The leader is the gradient of the detached game with the same random numbers; the interaction is the rest."""
    played = game(STUDENTS[student], pseudo_label=pseudo_label)
    detached = game(STUDENTS[student], pseudo_label=pseudo_label, coupling="detached")
    merged, leader = (gradient(each, **FORMS["semi"]) for each in (played, detached))
    buffers = copy.deepcopy(dict(played.student.named_buffers()))
    state = torch.get_rng_state()
    seen = played.diagnostics()
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(buffers[name], buffer) for name, buffer in played.student.named_buffers())
    assert seen.leader_norm == pytest.approx(float(leader.norm()), rel=1e-9)
    assert seen.interaction_norm == pytest.approx(float((merged - leader).norm()), rel=1e-9)
    assert torch.equal(flat(played.student), merged)
    assert played.diagnostics().interaction_norm == seen.interaction_norm
    assert_terms_add_up(played)


def test_diagnostics_of_a_graph_model_draw_its_masks_again() -> None:
    torch.manual_seed(0)
    edges = torch.randint(0, 30, (2, 60))
    student = GCN(torch.rand(30, 6), edges, 3, seeds=[1, 2], dropout=0.5)
    gradients = []
    batch = {
        "unlabeled": torch.arange(12, 30).expand(2, -1),
        "labeled": (torch.arange(12).expand(2, -1), Y.expand(2, -1)),
    }
    for coupling in ("shared", "detached"):
        played = Game(copy.deepcopy(student), alpha=ALPHA, coupling=coupling, full_graph=True, stacked=True)
        with torch.no_grad():
            for p in played.teacher.parameters():
                p.add_(0.1)
        gradients.append((played, gradient(played, **batch)))
    (shared, merged), (_, leader) = gradients
    drawn = shared.student.streams.drawn.clone()
    assert shared.diagnostics().interaction_norm == pytest.approx(float((merged - leader).norm()), rel=1e-3)
    assert torch.equal(shared.student.streams.drawn, drawn)


def test_diagnostics_after_the_step_are_refused() -> None:
    played = game()
    gradient(played, unlabeled=X_U)
    torch.optim.SGD(played.student.parameters(), lr=0.1).step()
    with pytest.raises(StateError, match=r"before optimizer\.step\(\)"):
        played.diagnostics()


def test_diagnostics_are_of_the_last_step_alone() -> None:
    played, fresh = game(), game()
    gradient(played, unlabeled=X_U)
    played.student.zero_grad()
    gradient(played, unlabeled=X_L)
    gradient(fresh, unlabeled=X_L)
    assert played.diagnostics().interaction_norm == fresh.diagnostics().interaction_norm


def test_nothing_is_repeated_unless_diagnostics_are_asked_for() -> None:
    played, calls = game(), []
    played.student.register_forward_hook(lambda *_: calls.append(1))
    for _ in range(3):
        gradient(played, unlabeled=X_U)
        played.student.zero_grad()
        played.follow()
    assert len(calls) == 3
    assert len(played._merger.shared.sent) == 1  # of the last step


# Training.


def steps(played: Game, optimizer: torch.optim.Optimizer, first: int, last: int) -> None:
    for step in range(first, last):
        torch.manual_seed(step)
        played.backward(played.loss(unlabeled=X_U[step::2], labeled=(X_L, Y)))
        optimizer.step()
        optimizer.zero_grad()
        played.follow()


def test_a_resumed_game_equals_an_uninterrupted_one() -> None:
    whole = game(lambda: network(0.3))
    optimizer = torch.optim.Adam(whole.student.parameters(), lr=0.02)
    steps(whole, optimizer, 0, 5)
    saved = copy.deepcopy((whole.student.state_dict(), optimizer.state_dict(), whole.state_dict()))
    steps(whole, optimizer, 5, 10)

    resumed = game(lambda: network(0.3))
    again = torch.optim.Adam(resumed.student.parameters(), lr=0.02)
    for part, state in zip((resumed.student, again, resumed), saved, strict=True):
        part.load_state_dict(state)
    steps(resumed, again, 5, 10)
    for player in ("student", "teacher"):
        for a, b in zip(getattr(whole, player).parameters(), getattr(resumed, player).parameters(), strict=True):
            assert torch.equal(a, b)


def test_a_linear_model_trains_as_with_the_differentiable_teacher() -> None:
    ends = []
    for coupling in ("shared", "differentiable"):
        played = game(linear, coupling=coupling, strategy=SoftStrategy(tau=TAU, prior=(0.3, 0.3, 0.4)))
        steps(played, torch.optim.SGD(played.student.parameters(), lr=0.5), 0, 20)
        ends.append(torch.cat([p.detach().flatten() for p in played.student.parameters()]))
    torch.testing.assert_close(*ends, rtol=1e-9, atol=1e-12)


def test_a_compiled_student_needs_no_other_call() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = game(lambda: torch.compile(network(), backend="eager"))
    torch.testing.assert_close(gradient(compiled, unlabeled=X_U), gradient(game(), unlabeled=X_U), **EXACT)
    assert_terms_add_up(compiled)
