"""UDA: its loss against numpy, limits that hold exactly, its coupling to DRIFT's teacher, and whole runs."""

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from drift.data.examples import Batch
from drift.errors import ConfigError, DriftError
from drift.methods.method import Context
from drift.methods.uda import SCHEDULES, UDA, UDASettings
from drift.models.mlp import mlp
from drift.models.stacked import Stacked
from drift.runs.result import Run
from tests.methods.pieces import cut
from tests.runs.small import same_weights, small_encoder, small_fit, small_table

pandas = pytest.importorskip("pandas")
pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")

GENERATOR = torch.Generator().manual_seed(0)
CLASSES, FEATURES = 3, 4


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, FEATURES, generator=GENERATOR, dtype=torch.float64)


X_L, X_U, VIEWS = drawn(9), 3 * drawn(14), (3 * drawn(14), 3 * drawn(14))
Y = torch.randint(0, CLASSES, (9,), generator=GENERATOR)
BATCH = Batch((X_L, Y), X_U, views=VIEWS)


def new_student(seed: int = 0) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        student = mlp(FEATURES, CLASSES, hidden=(6,)).double()
        return nn.Sequential(*(layer for layer in student if not isinstance(layer, nn.Dropout)))


def new_method(student: nn.Module | None = None, **settings: Any) -> UDA:
    method = UDA(
        student or new_student(),
        UDASettings(**settings),
        Context(stacked=isinstance(student, Stacked), single_process=True),
    )
    method.start()
    return method


def gradient(method: UDA, batch: Batch) -> Tensor:
    method.backward(method.loss(batch))
    return torch.cat([parameter.grad.flatten() for parameter in method.student.parameters()])


def probabilities(student: nn.Module, x: Tensor, tau: float = 1.0) -> np.ndarray:
    logits = student(x).detach().numpy() / tau
    exp = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(exp / exp.sum(-1, keepdims=True))


# The loss.


@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_consistency_is_the_kl_of_the_confident_rows_over_all_rows(threshold: float) -> None:
    method = new_method(tau=0.6, threshold=threshold, unlabeled_weight=1.5)
    p, y = probabilities(method.student, X_U), probabilities(method.student, X_U, 0.6)
    confident = p.max(-1) > threshold
    assert confident.all() == (threshold == 0)
    assert confident.any()
    kl = [(y * np.log(y / probabilities(method.student, view))).sum(-1) * confident for view in VIEWS]
    assert method.loss(Batch(unlabeled=X_U, views=VIEWS)).item() == pytest.approx(1.5 * np.mean(kl))


@pytest.mark.parametrize(("annealing", "step"), [("linear", 0), ("linear", 5), ("log", 2), ("exp", 9), ("none", 0)])
def test_annealing_leaves_out_what_is_known(annealing: str, step: int) -> None:
    method = new_method(annealing=annealing, annealing_steps=10)
    method.game.steps = step
    t = step / 10
    progress = {"linear": t, "log": 1 - math.exp(-5 * t), "exp": math.exp(5 * (t - 1)), "none": 1.0}[annealing]
    p = probabilities(method.student, X_L)[np.arange(9), Y.numpy()]
    kept = p <= progress * (1 - 1 / CLASSES) + 1 / CLASSES
    assert kept.any()
    assert method.loss(Batch((X_L, Y))).item() == pytest.approx(-np.log(p[kept]).mean())


def test_a_batch_that_is_known_by_heart_has_no_supervised_loss() -> None:
    method = new_method(annealing="linear")
    known = probabilities(method.student, X_L).argmax(-1)
    assert method.loss(Batch((X_L, torch.from_numpy(known)))).item() == 0


def test_schedules_end_with_all_rows() -> None:
    method = new_method(annealing="linear", annealing_steps=3)
    method.game.steps = 7
    assert method.loss(Batch((X_L, Y))).item() == pytest.approx(method.initial_loss(BATCH).item())
    assert [SCHEDULES[name](1.0) for name in ("linear", "exp", "none")] == [1, 1, 1]
    assert SCHEDULES["log"](1.0) == pytest.approx(1 - math.exp(-5))


def test_both_terms_add_up() -> None:
    method = new_method()
    whole = method.loss(BATCH)
    parts = method.loss(Batch(BATCH.labeled)) + method.loss(Batch(unlabeled=X_U, views=VIEWS))
    assert whole.item() == pytest.approx(parts.item())


# Limits.


def test_a_weight_of_zero_is_supervised_learning() -> None:
    method = new_method(unlabeled_weight=0.0)
    actual = gradient(method, BATCH)
    method.student.zero_grad()
    method.initial_loss(BATCH).backward()
    assert torch.allclose(actual, torch.cat([p.grad.flatten() for p in method.student.parameters()]))


def test_the_same_text_at_temperature_one_asks_for_nothing() -> None:
    actual = gradient(new_method(tau=1.0), Batch(unlabeled=X_U, views=(X_U,)))
    assert actual.abs().max() < 1e-12


def test_no_row_above_the_threshold_asks_for_nothing() -> None:
    assert gradient(new_method(threshold=0.9999), Batch(unlabeled=X_U, views=VIEWS)).abs().max() == 0


def test_a_confident_row_alone_has_a_gradient() -> None:
    assert gradient(new_method(threshold=0.5), Batch(unlabeled=X_U, views=VIEWS)).abs().max() > 0


def test_the_prediction_on_the_text_itself_is_a_constant() -> None:
    student = new_student()
    y = torch.from_numpy(probabilities(student, X_U, 0.85))
    loss = sum((y * (y.log() - torch.log_softmax(student(view), -1))).sum(-1).mean() / 2 for view in VIEWS)
    expected = torch.autograd.grad(loss, list(student.parameters()))
    actual = gradient(new_method(copy.deepcopy(student)), Batch(unlabeled=X_U, views=VIEWS))
    assert torch.allclose(actual, torch.cat([g.flatten() for g in expected]))


def test_it_is_taken_from_the_student_as_it_is_now() -> None:
    method = new_method()
    optimizer = torch.optim.SGD(method.student.parameters(), lr=0.5)
    for _ in range(3):
        method.backward(method.loss(BATCH))
        optimizer.step()
        optimizer.zero_grad()
        method.follow()
    now = new_method(copy.deepcopy(method.student))
    assert torch.equal(method.loss(BATCH), now.loss(BATCH))


@pytest.mark.parametrize("coupling", ["detached", "differentiable", "shared"])
def test_stacked_students_learn_as_if_alone(coupling: Any) -> None:
    settings = {"coupling": coupling, "annealing": "linear", "annealing_steps": 10, "threshold": 0.4}
    students = [new_student(seed) for seed in (0, 1)]
    together = new_method(Stacked(students), **settings)
    together.game.steps = 5
    x_l, x_u, view, y = (torch.stack([t, t.flip(0)]) for t in (X_L, X_U, VIEWS[0], Y))
    together.backward(together.loss(Batch((x_l, y), x_u, views=(view,))))
    for trial, student in enumerate(students):
        alone = new_method(student, **settings)
        alone.game.steps = 5
        alone.backward(alone.loss(Batch((x_l[trial], y[trial]), x_u[trial], views=(view[trial],))))
        for many, one in zip(together.student.parameters(), alone.student.parameters(), strict=True):
            assert torch.allclose(many.grad[trial], one.grad)


# The coupling.


@pytest.mark.parametrize("alpha", [0.7, 0.0])
def test_a_coupled_gradient_is_that_through_the_moving_average(alpha: float) -> None:
    tau, student, previous = 0.6, new_student(0), new_student(1)
    names = [name for name, _ in student.named_parameters()]
    old = dict(previous.named_parameters())

    def objective(*values: Tensor) -> Tensor:
        theta = dict(zip(names, values, strict=True))
        theta_t = {name: alpha * old[name].detach() + (1 - alpha) * theta[name] for name in names}
        p = torch.softmax(functional_call(student, theta_t, (X_U,)), -1)
        y = p ** (1 / tau) / (p ** (1 / tau)).sum(-1, keepdim=True)
        confident = (p.max(-1).values > 0.5).double()
        total = torch.nn.functional.cross_entropy(functional_call(student, theta, (X_L,)), Y)
        for view in VIEWS:
            q = torch.softmax(functional_call(student, theta, (view,)), -1)
            total = total + ((y * (y / q).log()).sum(-1) * confident).mean() / len(VIEWS)
        return total

    values = tuple(p.detach().clone().requires_grad_() for p in student.parameters())
    expected = torch.autograd.grad(objective(*values), values)

    method = new_method(copy.deepcopy(student), tau=tau, threshold=0.5, coupling="differentiable", alpha=alpha)
    with torch.no_grad():
        for teacher, before, now in zip(
            method.teacher.parameters(), previous.parameters(), student.parameters(), strict=True
        ):
            teacher.copy_(alpha * before + (1 - alpha) * now)
    actual = gradient(method, BATCH)
    assert torch.allclose(actual, torch.cat([g.flatten() for g in expected]), rtol=1e-9, atol=1e-12)
    assert not torch.allclose(actual, gradient(new_method(copy.deepcopy(student), tau=tau, threshold=0.5), BATCH))


def test_a_teacher_that_never_moves_adds_nothing() -> None:
    coupled = gradient(new_method(coupling="differentiable", alpha=1.0), BATCH)
    assert torch.equal(coupled, gradient(new_method(), BATCH))


def test_accumulated_micro_batches_with_views_are_the_whole_batch() -> None:
    for coupling in ("detached", "differentiable", "shared"):
        whole, pieces = (new_method(coupling=coupling) for _ in range(2))
        batch = Batch((X_L, Y), X_U, views=VIEWS)
        gradient(whole, batch)
        pieces.accumulate(cut(batch, 3))
        for one, other in zip(whole.student.parameters(), pieces.student.parameters(), strict=True):
            assert torch.allclose(one.grad, other.grad)


def test_annealing_over_micro_batches_is_refused_with_exact_accumulation() -> None:
    with pytest.raises(ConfigError, match="exact_accumulation=false"):
        new_method(annealing="log").accumulate([BATCH, BATCH])


# Whole runs.


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def fit(table: dict[str, list[Any]], encoder: str, *, labels: str = "label", **settings: Any) -> Run:
    options = {"text": "body", labels: "topic", "settings": {"method": {"name": "uda", **settings}}}
    return small_fit(pandas.DataFrame(table), encoder, **options)


@pytest.mark.parametrize(
    "settings",
    [{"views": 2, "replace": 0.5}, {"coupling": "differentiable", "annealing": "linear", "annealing_steps": 4}],
    ids=["as published", "coupled"],
)
def test_a_run_from_a_table_to_a_model(encoder: str, settings: dict[str, Any]) -> None:
    run = fit(small_table(40, labeled=12), encoder, **settings)
    assert run.metrics["method"] == "uda"
    assert set(run.predict(["stock bank", "team game"])) <= {"money", "sport"}


def test_a_weak_run_learns_from_the_texts_alone(encoder: str) -> None:
    run = fit(small_table(40), encoder, labels="weak")
    assert run.metrics["weak"]
    assert run.metrics["steps"] == 8


def test_a_column_of_the_table_is_what_it_learns_from(encoder: str) -> None:
    table = small_table(40, labeled=12)
    table |= {"said": small_table(40, seed=1)["body"], "blanks": [table["body"][0], *[""] * 39]}
    said, blanks, itself = (fit(table, encoder, column=column) for column in ("said", "blanks", "body"))
    assert same_weights(blanks, itself)  # where a cell is blank, the text itself is the view
    assert not same_weights(said, itself)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"column": "sade"}, "did you mean 'said'"),
        ({"column": "empty"}, "column 'empty' is blank in every row"),
        ({"annealing": "quadratic"}, "annealing='quadratic'"),
        ({"threshold": 1.0}, "threshold=1.0"),
        ({"tau": 0}, "tau=0"),
        ({"coupling": "both"}, "coupling='both'"),
        ({"translation": ["nowhere/here", "nowhere/there"], "augment": "tfidf"}, "set augment to translate"),
    ],
)
def test_a_mistake_is_reported_on_one_line(encoder: str, settings: dict[str, Any], message: str) -> None:
    table = small_table(20, labeled=12)
    table |= {"said": table["body"], "empty": [""] * 20}
    with pytest.raises(DriftError, match=message) as caught:
        fit(table, encoder, **settings)
    assert "\n" not in str(caught.value)


def test_it_is_for_texts_alone(encoder: str) -> None:
    with pytest.raises(ConfigError, match="uda is for text"):
        small_fit(pandas.DataFrame(small_table(4)), encoder, task="tokens", settings={"method": {"name": "uda"}})
