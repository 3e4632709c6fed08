"""The gradient `Game` leaves in the student is the total derivative of L(θS) with θT = α θT_prev + (1 - α) θS.

Two independent oracles, in float64: autograd through an explicit moving average, written out here from the paper's
equations without drift.core; and central finite differences of the same function.
"""

import copy
import itertools
import math

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from drift import Game
from drift.models.mlp import mlp

ALPHA, TAU = 0.7, 0.5


class TiedTransformer(nn.Module):
    """One encoder layer over token ids; the class scores reuse the token embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.readout = nn.Linear(8, 11, bias=False)
        self.readout.weight = self.embed.weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.readout(self.layer(self.embed(ids)).mean(1))[:, :3]


def small_cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Tanh(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 3)
    )


def inputs_for(kind: str, rows: int) -> Tensor:
    if kind == "transformer":
        return torch.randint(0, 11, (rows, 5))
    return torch.randn(rows, 1, 6, 6) if kind == "cnn" else torch.randn(rows, 4)


STUDENTS = {"mlp": lambda: mlp(4, 3, hidden=(6,)), "cnn": small_cnn, "transformer": TiedTransformer}
FORMS = ("semi", "weak", "distillation", "algorithm 1")


@pytest.fixture(params=itertools.product(STUDENTS, FORMS), ids=lambda p: "-".join(p))
def position(request):
    """A game after some steps: student and teacher differ, BatchNorm statistics have moved; one batch of each type."""
    kind, form = request.param
    torch.manual_seed(0)
    student = STUDENTS[kind]().double()
    # Pre-set statistics: in training mode the student does not use them, the teacher in eval mode does.
    previous = copy.deepcopy(student)
    with torch.no_grad():
        for p in previous.parameters():
            p.add_(0.1 * torch.randn_like(p))
        for b in previous.buffers():
            if b.is_floating_point():
                b.add_(0.2 * torch.rand_like(b))
    x_l, x_u = (inputs_for(kind, n) for n in (5, 7))
    if kind != "transformer":
        x_l, x_u = x_l.double(), x_u.double()
    y = torch.tensor([0, 1, 2, 1, 0])
    data = {
        "semi": dict(unlabeled=x_u, labeled=(x_l, y)),
        "weak": dict(unlabeled=x_u),
        "distillation": dict(labeled=(x_l, y)),
        "algorithm 1": dict(unlabeled=x_u, labeled=(x_l, y)),
    }[form]
    on_all = form in ("distillation", "algorithm 1")
    return student, previous, data, on_all


def objective(student: nn.Module, previous: nn.Module, data: dict, on_all: bool) -> "callable":
    """L as a function of the student's parameters only, written from the paper in probabilities, not logs."""
    teacher = copy.deepcopy(previous).eval()
    old = {name: p.detach() for name, p in previous.named_parameters()}

    def loss(theta: dict[str, Tensor]) -> Tensor:
        theta_t = {name: ALPHA * old[name] + (1 - ALPHA) * theta[name] for name in theta}
        total = torch.zeros((), dtype=torch.float64)
        p, q = [], []
        if "labeled" in data:
            x, y = data["labeled"]
            f = torch.softmax(functional_call(student, theta, (x,)), -1)
            total = total - f[torch.arange(len(y)), y].log().mean()
            if on_all:
                q.append(f)
                p.append(torch.softmax(functional_call(teacher, theta_t, (x,)), -1))
        if "unlabeled" in data:
            q.append(torch.softmax(functional_call(student, theta, (data["unlabeled"],)), -1))
            p.append(torch.softmax(functional_call(teacher, theta_t, (data["unlabeled"],)), -1))
        if p:
            p, q = torch.cat(p), torch.cat(q)
            sharp = p ** (1 / TAU)
            y = sharp / sharp.sum(0)
            y = y / y.sum(1, keepdim=True)
            omega = 1 + (y * y.log()).sum(1) / math.log(y.shape[1])
            total = total + (omega * (y * (y / q).log()).sum(1)).mean()
        return total

    return loss


def game_gradient(
    student: nn.Module, previous: nn.Module, data: dict, on_all: bool
) -> tuple[Tensor, dict[str, Tensor]]:
    """Set the teacher to the average of its previous state and the student; then one backward."""
    game = Game(
        student, teacher=copy.deepcopy(previous), alpha=ALPHA, tau=TAU, pseudo_label="all" if on_all else "unlabeled"
    )
    buffers = {name: b.clone() for name, b in previous.named_buffers()}
    game.follow()
    for name, b in game.teacher.named_buffers():  # the oracle's teacher has the previous statistics
        b.copy_(buffers[name])
    loss = game.loss(**data)
    game.backward(loss)
    return loss.detach(), {name: p.grad for name, p in student.named_parameters()}


def relative_error(actual: Tensor, expected: Tensor) -> float:
    return float((actual - expected).norm() / expected.norm())


def test_gradient_equals_autograd_through_an_explicit_average(position) -> None:
    student, previous, data, on_all = position
    loss = objective(student, previous, data, on_all)
    theta = {name: p.detach().clone().requires_grad_() for name, p in student.named_parameters()}
    value = loss(theta)
    expected = torch.autograd.grad(value, list(theta.values()))
    actual_value, actual = game_gradient(student, previous, data, on_all)
    assert abs(actual_value - value.detach()) < 1e-12
    flat = torch.cat([g.flatten() for g in actual.values()]), torch.cat([g.flatten() for g in expected])
    assert relative_error(*flat) < 1e-6


def test_gradient_equals_central_finite_differences(position) -> None:
    student, previous, data, on_all = position
    loss = objective(student, previous, data, on_all)
    theta = {name: p.detach().clone() for name, p in student.named_parameters()}
    _, actual = game_gradient(student, previous, data, on_all)
    generator = torch.Generator().manual_seed(1)
    step = 1e-6  # float64: in float32, rounding swamps a difference this small
    for _ in range(5):  # a random direction involves every parameter
        direction = {name: torch.randn(p.shape, generator=generator, dtype=p.dtype) for name, p in theta.items()}
        with torch.no_grad():
            ahead = loss({name: p + step * direction[name] for name, p in theta.items()})
            behind = loss({name: p - step * direction[name] for name, p in theta.items()})
        numeric = float(ahead - behind) / (2 * step)
        analytic = float(sum((actual[name] * direction[name]).sum() for name in theta))
        assert numeric == pytest.approx(analytic, rel=1e-4)


def test_the_interaction_is_part_of_it(position) -> None:
    """The gradient of the detached game differs, so the oracles above can distinguish the two."""
    student, previous, data, on_all = position
    _, coupled = game_gradient(student, previous, data, on_all)
    coupled = torch.cat([g.flatten() for g in coupled.values()]).clone()
    student.zero_grad()
    game = Game(student, teacher=copy.deepcopy(previous), alpha=ALPHA, tau=TAU, coupling="detached",
                pseudo_label="all" if on_all else "unlabeled")  # fmt: skip
    game.follow()
    game.backward(game.loss(**data))
    detached = torch.cat([p.grad.flatten() for p in student.parameters()])
    assert relative_error(detached, coupled) > 1e-3
