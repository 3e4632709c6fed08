"""MixText: its loss against numpy, limits that hold exactly, its coupling to DRIFT's teacher, and whole runs."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from drift.data.examples import Batch
from drift.errors import ConfigError
from drift.methods.method import Context
from drift.methods.mixtext import MixText, MixTextSettings
from drift.models.mlp import mlp
from drift.models.stacked import Stacked
from tests.runs.small import same_weights, small_encoder, small_fit, small_table

pandas = pytest.importorskip("pandas")
transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")

GENERATOR = torch.Generator().manual_seed(0)
CLASSES, FEATURES, LABELED, UNLABELED = 3, 4, 6, 10


def drawn(*shape: int) -> Tensor:
    return 2 * torch.randn(*shape, FEATURES, generator=GENERATOR, dtype=torch.float64)


X_L, X_U, VIEWS = drawn(LABELED), drawn(UNLABELED), (drawn(UNLABELED), drawn(UNLABELED))
Y = torch.randint(0, CLASSES, (LABELED,), generator=GENERATOR)
BATCH, ALONE = Batch((X_L, Y), X_U, views=VIEWS), Batch(unlabeled=X_U, views=VIEWS)
HARDLY = 1e-3  # Beta(a, a) with this a is 0 or 1, to all digits


def new_student(seed: int = 0) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return mlp(FEATURES, CLASSES, hidden=(6,)).double()


def new_method(student: nn.Module | None = None, **settings: Any) -> MixText:
    student = student or new_student()
    settings = {"views": 2, "ramp_steps": 1, **settings}
    method = MixText(
        student, MixTextSettings(**settings), Context(stacked=isinstance(student, Stacked), single_process=True)
    )
    method.start()
    return method


def loss(method: MixText, batch: Batch) -> Tensor:
    """Return the loss with the draws of one seed."""
    torch.manual_seed(5)
    return method.loss(batch)


def draws(method: MixText, rows: int) -> tuple[float, np.ndarray]:
    """Return the share and the order that `loss` used."""
    torch.manual_seed(5)
    share, _, order = method._draw(rows)
    return share, order.numpy()


def gradient(method: MixText, batch: Batch) -> Tensor:
    method.student.zero_grad()
    method.backward(loss(method, batch))
    return torch.cat([parameter.grad.flatten() for parameter in method.student.parameters()])


def probabilities(student: nn.Module, x: Any) -> np.ndarray:
    logits = student(torch.as_tensor(x)).detach().numpy()
    exp = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(exp / exp.sum(-1, keepdims=True))


def mixture(student: nn.Sequential, x: Any, share: float, order: np.ndarray) -> np.ndarray:
    """Return predictions for rows mixed at the input of the last layer."""
    hidden = student[:-1](torch.as_tensor(x)).detach()
    return probabilities(student[-1], share * hidden + (1 - share) * hidden[order])


def sharpened(p: np.ndarray, tau: float = 0.5) -> np.ndarray:
    return np.asarray(p ** (1 / tau) / (p ** (1 / tau)).sum(-1, keepdims=True))


# The loss.


@pytest.mark.parametrize("weights", [None, (1.0, 0.5, 0.0), (0.0, 2.0, 2.0)])
def test_a_guess_is_the_sharpened_mean_over_forms(weights: tuple[float, ...] | None) -> None:
    method = new_method(weights=weights, tau=0.4)
    forms = [probabilities(method.student, x) for x in (X_U, *VIEWS)]
    mean = np.average(forms, axis=0, weights=weights)
    torch.testing.assert_close(method.guess((X_U, *VIEWS)), torch.from_numpy(sharpened(mean, 0.4)))


@pytest.mark.parametrize("labeled", [True, False], ids=["semi", "weak"])
def test_the_loss_is_what_it_is_by_hand(labeled: bool) -> None:
    method = new_method(unlabeled_weight=1.5, margin_weight=0.3, margin=0.8)
    guess = sharpened(np.mean([probabilities(method.student, x) for x in (X_U, *VIEWS)], axis=0))
    x = np.concatenate([each.numpy() for each in ((X_L,) if labeled else ()) + (X_U, *VIEWS)])
    y = np.concatenate([np.eye(CLASSES)[Y], guess, guess, guess] if labeled else [guess] * 3)
    share, order = draws(method, len(x))
    assert 0.5 < share < 0.9
    q = mixture(method.student, x, share, order)
    y = share * y + (1 - share) * y[order]
    first = LABELED if labeled else 0
    supervised = -(y * np.log(q)).sum(1)[:first].mean() if labeled else 0.0
    divergence = (y * np.log(np.where(y > 0, y, 1) / q)).sum(1)[first:].mean()
    margin = np.maximum(0, 0.8 - (probabilities(method.student, X_U) ** 2).sum(1)).mean()
    assert margin > 0
    expected = supervised + 1.5 * divergence + 0.3 * margin
    assert loss(method, BATCH if labeled else ALONE).item() == pytest.approx(expected)


@pytest.mark.parametrize("settings", [{"margin_weight": 0.0}, {"unlabeled_weight": 0.0, "margin_weight": 1.0}])
def test_either_unlabelled_term_reaches_the_student(settings: dict[str, float]) -> None:
    assert gradient(new_method(margin=1.0, **settings), ALONE).abs().max() > 1e-4


def test_labelled_rows_alone_are_mixed_with_one_another() -> None:
    method = new_method()
    share, order = draws(method, LABELED)
    q = mixture(method.student, X_L, share, order)
    y = share * np.eye(CLASSES)[Y] + (1 - share) * np.eye(CLASSES)[Y][order]
    assert loss(method, Batch((X_L, Y))).item() == pytest.approx(-(y * np.log(q)).sum(1).mean())


def test_the_weight_of_unlabelled_rows_rises() -> None:
    method = new_method(ramp_steps=4)
    whole = loss(new_method(), ALONE).item()
    ratios = []
    for step in range(6):
        method.game.steps = step
        ratios.append(loss(method, ALONE).item() / whole)
    assert ratios == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1])


def test_shares_are_at_least_a_half_and_layers_all_come() -> None:
    method = new_method()
    method.layers = [4, 5, 6]
    torch.manual_seed(0)
    shares, layers, orders = zip(*(method._draw(7) for _ in range(200)), strict=True)
    assert 0.5 <= min(shares) < 0.51 < 0.6 < max(shares) < 1
    assert set(layers) == {4, 5, 6}
    assert all(sorted(order.tolist()) == list(range(7)) for order in orders)


@pytest.mark.parametrize(("depth", "expected"), [(12, [7, 9, 12]), (6, [4, 5, 6]), (24, [14, 18, 24]), (1, [1, 1, 1])])
def test_layers_are_scaled_to_the_depth(depth: int, expected: list[int]) -> None:
    config = transformers.BertConfig(
        vocab_size=8, hidden_size=4, num_hidden_layers=depth, num_attention_heads=1, intermediate_size=4
    )
    student = transformers.BertForSequenceClassification(config)
    assert new_method(student).layers == expected


# Limits.


def test_without_mixing_temperature_and_views_unlabelled_rows_ask_for_nothing() -> None:
    method = new_method(beta=HARDLY, tau=1.0)
    batch = Batch((X_L, Y), X_U)
    actual = gradient(method, batch)
    method.student.zero_grad()
    method.initial_loss(batch).backward()
    assert torch.allclose(actual, torch.cat([p.grad.flatten() for p in method.student.parameters()]))


def test_the_guess_is_a_constant_from_the_current_student() -> None:
    method = new_method(beta=HARDLY)
    optimizer = torch.optim.SGD(method.student.parameters(), lr=0.5)
    for _ in range(3):
        method.backward(loss(method, BATCH))
        optimizer.step()
        optimizer.zero_grad()
        method.follow()
    student = copy.deepcopy(method.student)
    y = torch.from_numpy(sharpened(np.mean([probabilities(student, x) for x in (X_U, *VIEWS)], axis=0)))
    terms = [(y * (y.log() - torch.log_softmax(student(x), -1))).sum(-1).mean() / 3 for x in (X_U, *VIEWS)]
    expected = torch.autograd.grad(sum(terms), list(student.parameters()))
    assert torch.allclose(gradient(method, ALONE), torch.cat([g.flatten() for g in expected]))


@pytest.mark.parametrize("coupling", ["detached", "differentiable", "shared"])
def test_stacked_students_learn_as_if_alone(coupling: Any) -> None:
    students = [new_student(seed) for seed in (0, 1)]
    settings = {"coupling": coupling, "margin_weight": 0.5}
    together = new_method(Stacked(students), **settings)
    x_l, x_u, view, y = (torch.stack([t, t.flip(0)]) for t in (X_L, X_U, VIEWS[0], Y))
    together.backward(loss(together, Batch((x_l, y), x_u, views=(view,))))
    for trial, student in enumerate(students):
        alone = new_method(student, **settings)
        alone.backward(loss(alone, Batch((x_l[trial], y[trial]), x_u[trial], views=(view[trial],))))
        for many, one in zip(together.student.parameters(), alone.student.parameters(), strict=True):
            assert torch.allclose(many.grad[trial], one.grad)


# The coupling.


@pytest.mark.parametrize("alpha", [0.7, 0.0])
def test_a_coupled_gradient_is_that_through_the_moving_average(alpha: float) -> None:
    student, previous = new_student(0), new_student(1)
    settings = {"tau": 0.6, "weights": (1.0, 0.5, 2.0)}
    method = new_method(copy.deepcopy(student), coupling="differentiable", alpha=alpha, **settings)
    names = [name for name, _ in student.named_parameters()]
    old = {name: parameter.detach() for name, parameter in previous.named_parameters()}
    x = torch.cat([X_L, X_U, *VIEWS])
    share, order = draws(method, len(x))

    def objective(*values: Tensor) -> Tensor:
        theta = dict(zip(names, values, strict=True))
        theta_t = {name: alpha * old[name] + (1 - alpha) * theta[name] for name in names}
        forms = [torch.softmax(functional_call(student, theta_t, (form,)), -1) for form in (X_U, *VIEWS)]
        mean = (forms[0] + 0.5 * forms[1] + 2 * forms[2]) / 3.5
        guess = mean ** (1 / 0.6) / (mean ** (1 / 0.6)).sum(-1, keepdim=True)
        y = torch.cat([torch.eye(CLASSES, dtype=torch.float64)[Y], guess, guess, guess])
        y = share * y + (1 - share) * y[order]
        logits = functional_call(student, theta, (x,))  # equals mixing the input of the last, linear layer
        log_q = torch.log_softmax(share * logits + (1 - share) * logits[order], -1)
        supervised = -(y * log_q).sum(-1)[:LABELED].mean()
        guessed = y[LABELED:]
        return supervised + (guessed * (guessed.log() - log_q[LABELED:])).sum(-1).mean()

    values = tuple(p.detach().clone().requires_grad_() for p in student.parameters())
    expected = torch.cat([g.flatten() for g in torch.autograd.grad(objective(*values), values)])
    with torch.no_grad():
        for teacher, before, now in zip(
            method.teacher.parameters(), previous.parameters(), student.parameters(), strict=True
        ):
            teacher.copy_(alpha * before + (1 - alpha) * now)
    actual = gradient(method, BATCH)
    assert torch.allclose(actual, expected, rtol=1e-9, atol=1e-12)
    assert not torch.allclose(actual, gradient(new_method(copy.deepcopy(student), **settings), BATCH))


def test_a_teacher_that_never_moves_adds_nothing() -> None:
    coupled = gradient(new_method(coupling="differentiable", alpha=1.0), BATCH)
    assert torch.equal(coupled, gradient(new_method(), BATCH))


def test_a_guess_that_is_certain_has_a_finite_gradient() -> None:
    student = new_student()
    with torch.no_grad():
        student[-1].weight.mul_(1e4)  # probabilities of 0 and 1, also after mixing
    assert torch.isfinite(gradient(new_method(student.float(), coupling="differentiable", alpha=0.5), _short())).all()


def _short() -> Batch:
    return Batch((X_L.float(), Y), X_U.float(), views=tuple(view.float() for view in VIEWS))


# What is refused.


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": [0]}, "layers.0=0"),
        ({"layers": []}, "layers"),
        ({"beta": 0}, "beta=0"),
        ({"weights": [1.0]}, "give 2 weights, one for the text and one per view"),
        ({"weights": [0, 0]}, "not all 0"),
        ({"view": 2}, "did you mean 'views'"),
    ],
)
def test_bad_settings_are_reported_on_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        MixTextSettings.read(settings, "method")
    assert "\n" not in str(error.value)


def test_mixing_over_micro_batches_is_refused_with_exact_accumulation() -> None:
    with pytest.raises(ConfigError, match="exact_accumulation=false"):
        new_method().accumulate([BATCH, BATCH])


# Whole runs.


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_encoder(tmp_path_factory.mktemp("encoder"))


def fit(encoder: str, *, model: dict[str, Any], labels: str = "label", seeds: int = 1, **settings: Any) -> Any:
    table = pandas.DataFrame(small_table(40, labeled=12 if labels == "label" else None))
    name = model.get("name", encoder)
    options = {"method": {"name": "mixtext", **settings}, "model": {**model, "name": name}}
    return small_fit(table, name, text="body", **{labels: "topic"}, seeds=seeds, settings=options)


MODELS = {"frozen": {"frozen": True}, "finetuned": {"frozen": False}, "textcnn": {"name": "textcnn", "maps": 5}}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("labels", ["label", "weak"])
def test_a_run_from_a_table_to_a_model(encoder: str, model: str, labels: str) -> None:
    run = fit(encoder, model=MODELS[model], labels=labels, seeds=2 if model == "frozen" else 1, margin_weight=0.1)
    assert run.metrics["method"] == "mixtext"
    assert run.metrics["steps"] == (4 if model == "finetuned" else 8)  # a head takes the place of the first phase
    assert set(run.predict(["stock bank", "team game"])) <= {"money", "sport"}


def test_a_run_is_the_same_twice_and_another_with_a_coupled_teacher(encoder: str) -> None:
    settings = {"model": MODELS["frozen"], "views": 2, "replace": 0.5}
    one, same, coupled = (fit(encoder, **settings, **more) for more in ({}, {}, {"coupling": "differentiable"}))
    assert same_weights(one, same)
    assert not same_weights(one, coupled)
