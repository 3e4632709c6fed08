"""COSINE: its terms against numpy, limits that hold exactly, the schedule of the teacher, and whole runs."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from drift.core import Game
from drift.data.examples import Batch
from drift.errors import ConfigError
from drift.methods.cosine import Cosine, CosineSettings, contrastive_loss
from drift.methods.method import Context
from drift.models.hidden import last_layer
from drift.models.mlp import mlp
from drift.models.stacked import Stacked
from drift.tasks.text.model import linear_head
from tests.methods.pieces import cut
from tests.runs.small import small_encoder, small_fit, small_table
from tests.runs.small_tokens import small_sentences, small_word_encoder

pandas = pytest.importorskip("pandas")
pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")

GENERATOR = torch.Generator().manual_seed(0)
CLASSES, FEATURES, LABELED, UNLABELED = 3, 4, 9, 20


def drawn(*shape: int) -> Tensor:
    return 2 * torch.randn(*shape, FEATURES, generator=GENERATOR, dtype=torch.float64)


X_L, X_U = drawn(LABELED), drawn(UNLABELED)
Y = torch.randint(0, CLASSES, (LABELED,), generator=GENERATOR)
BATCH, ALONE = Batch((X_L, Y), X_U), Batch(unlabeled=X_U)
NO_REGULARIZER = {"contrastive_weight": 0.0, "uniform_weight": 0.0}


def new_student(seed: int = 0) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return mlp(FEATURES, CLASSES, hidden=(6,)).double()


def new_head(seed: int = 0) -> nn.Sequential:
    head = linear_head(FEATURES, CLASSES)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        nn.init.normal_(head[0].weight, std=0.3)
    return head.double()


def new_method(student: nn.Module | None = None, **settings: Any) -> Cosine:
    student = student or new_student()
    method = Cosine(
        student, CosineSettings(**settings), Context(stacked=isinstance(student, Stacked), single_process=True)
    )
    method.start()
    return method


def gradient(method: Cosine, batch: Batch) -> Tensor:
    method.student.zero_grad()
    method.backward(method.loss(batch))
    return torch.cat([parameter.grad.flatten() for parameter in method.student.parameters()])


def taken(method: Cosine, steps: int) -> None:
    optimizer = torch.optim.SGD(method.student.parameters(), lr=0.2)
    for _ in range(steps):
        method.backward(method.loss(BATCH))
        optimizer.step()
        optimizer.zero_grad()
        method.follow()


# The loss.


def by_hand(log_p: np.ndarray, log_q: np.ndarray, vectors: np.ndarray, settings: CosineSettings) -> list[float]:
    """Return L_c, R_1 and R_2, computed row by row."""
    p, q = np.exp(log_p), np.exp(log_q)
    y = p**2 / (p**2).sum(0)
    y /= y.sum(1, keepdims=True)
    omega = 1 + (y * np.log(y)).sum(1) / np.log(CLASSES)
    rows = [row for row in range(len(p)) if omega[row] >= settings.threshold]
    assert 3 < len(rows) < len(p)
    self_trained = np.mean([omega[row] * (y[row] * np.log(y[row] / q[row])).sum() for row in rows])
    uniform = np.mean([(np.log(1 / CLASSES / q[row]) / CLASSES).sum() for row in rows])
    pairs = []
    for position, row in enumerate(rows):
        other = rows[(position + len(rows) // 3) % len(rows)]
        squared = np.mean((vectors[row] - vectors[other]) ** 2)
        alike = y[row].argmax() == y[other].argmax()
        pairs.append(squared if alike else max(0.0, settings.margin - np.sqrt(squared)) ** 2)
    return [float(self_trained), float(np.mean(pairs)), float(uniform)]


@pytest.mark.parametrize("fixed", [False, True], ids=["vectors that move", "fixed vectors"])
def test_terms_are_what_they_are_by_hand(fixed: bool) -> None:
    settings = {"threshold": 0.2, "margin": 0.8, "contrastive_weight": 0.7, "uniform_weight": 0.3}
    method = new_method(new_head() if fixed else None, unlabeled_weight=1.5, **settings)
    method.teacher.load_state_dict((new_head if fixed else new_student)(1).state_dict())
    log_p, log_q = (torch.log_softmax(module(X_U), -1).detach().numpy() for module in (method.teacher, method.student))
    vectors = np.exp(log_q) if fixed else method.student[:2](X_U).detach().numpy()
    self_trained, contrastive, uniform = by_hand(log_p, log_q, vectors, method.settings)
    assert min(self_trained, contrastive, uniform) > 0
    expected = 1.5 * (self_trained + 0.7 * contrastive + 0.3 * uniform)
    assert method.loss(ALONE).item() == pytest.approx(expected)
    assert method.loss(BATCH).item() == pytest.approx(expected + method.initial_loss(BATCH).item())


@pytest.mark.parametrize(
    "kept", [NO_REGULARIZER, {"contrastive_weight": 1e9, "uniform_weight": 0}, {"uniform_weight": 1e9}]
)
def test_every_term_alone_reaches_the_student(kept: dict[str, float]) -> None:
    method = new_method(threshold=0.0, **kept)
    assert gradient(method, ALONE).abs().sum() > 0
    below = [p for p in method.student.parameters() if p not in set(last_layer(method.student).parameters())]
    assert all(parameter.grad.abs().sum() > 0 for parameter in below)


def test_the_contrastive_term_over_fixed_vectors_reaches_the_head() -> None:
    with_it, without = (new_method(new_head(), contrastive_weight=weight) for weight in (1.0, 0.0))
    assert not torch.allclose(gradient(with_it, ALONE), gradient(without, ALONE))


def test_like_rows_are_drawn_together_and_others_apart_up_to_the_margin() -> None:
    both = torch.ones(2, dtype=torch.bool)
    losses = [
        contrastive_loss(torch.tensor([[0.0], [apart]]), torch.tensor([0, label]), both, 1.0).item()
        for label in (0, 1)
        for apart in (0.5, 2.0)
    ]
    assert losses == pytest.approx([0.25, 4.0, 0.25, 0.0])


def test_rows_on_one_spot_in_two_classes_have_a_finite_gradient() -> None:
    vectors = torch.ones(4, 3, requires_grad=True)
    contrastive_loss(vectors, torch.tensor([0, 1, 2, 0]), torch.ones(4, dtype=torch.bool), 1.0).backward()
    assert torch.isfinite(vectors.grad).all()


def test_rows_that_are_not_confident_do_not_count() -> None:
    vectors, labels = torch.randn(6, 3), torch.tensor([0, 1, 0, 1, 1, 0])
    confident = torch.tensor([True, False, True, True, False, True])
    expected = contrastive_loss(vectors[confident], labels[confident], torch.ones(4, dtype=torch.bool), 1.0)
    assert torch.equal(contrastive_loss(vectors, labels, confident, 1.0), expected)


# Limits.


def test_without_threshold_and_regularizers_it_is_self_training() -> None:
    method = new_method(threshold=0.0, **NO_REGULARIZER)
    game = Game(new_student(), tau=0.5, coupling="detached", single_process=True)
    assert torch.allclose(method.loss(BATCH), game.loss(unlabeled=X_U, labeled=(X_L, Y)))


def test_a_weight_of_zero_is_supervised_learning() -> None:
    method = new_method(unlabeled_weight=0.0)
    actual = gradient(method, BATCH)
    method.student.zero_grad()
    method.initial_loss(BATCH).backward()
    assert torch.allclose(actual, torch.cat([p.grad.flatten() for p in method.student.parameters()]))


def test_where_no_row_is_confident_the_most_confident_one_is() -> None:
    method = new_method(threshold=1.0, **NO_REGULARIZER)
    response = method.game.respond(X_U)
    surest = int(response.omega.argmax())
    log_q = torch.log_softmax(method.student(X_U), -1)[surest]
    y = response.log_y[surest].exp()
    expected = response.omega[surest] * (y * (y.log() - log_q)).sum()
    assert method.loss(ALONE).item() == pytest.approx(expected.item())


def test_the_teacher_changes_every_so_many_steps() -> None:
    method = new_method(teacher_every=3)
    start = [p.detach().clone() for p in method.student.parameters()]
    taken(method, 2)
    assert all(torch.equal(*pair) for pair in zip(method.teacher.parameters(), start, strict=True))
    taken(method, 1)
    assert all(
        torch.equal(*pair) for pair in zip(method.teacher.parameters(), method.student.parameters(), strict=True)
    )
    taken(method, 2)
    assert not any(
        torch.equal(*pair) for pair in zip(method.teacher.parameters(), method.student.parameters(), strict=True)
    )


@pytest.mark.parametrize("make", [new_student, new_head], ids=["moving", "fixed"])
def test_stacked_students_learn_as_if_alone(make: Any) -> None:
    students = [make(seed) for seed in (0, 1)]
    together = new_method(Stacked(students), threshold=0.3)
    x_l, x_u, y = (torch.stack([tensor, tensor.flip(0) + add]) for tensor, add in ((X_L, 1), (X_U, 1), (Y, 0)))
    together.backward(together.loss(Batch((x_l, y), x_u)))
    for trial, student in enumerate(students):
        alone = new_method(student, threshold=0.3)
        alone.backward(alone.loss(Batch((x_l[trial], y[trial]), x_u[trial])))
        for many, one in zip(together.student.parameters(), alone.student.parameters(), strict=True):
            assert torch.allclose(many.grad[trial], one.grad)


@pytest.mark.parametrize("batch", [BATCH, ALONE], ids=["semi", "weak"])
def test_accumulated_pieces_are_the_whole_batch(batch: Batch) -> None:
    whole, pieces = (new_method(threshold=0.3) for _ in range(2))
    expected = gradient(whole, batch)
    pieces.accumulate(cut(batch, 5))
    assert torch.allclose(torch.cat([p.grad.flatten() for p in pieces.student.parameters()]), expected)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"threshold": 1.5}, "threshold=1.5"), ({"teacher_every": 0}, "teacher_every"), ({"xi": 0.2}, "there is no 'xi'")],
)
def test_bad_settings_are_reported_on_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        CosineSettings.read(settings, "method")
    assert "\n" not in str(error.value)


# Whole runs.


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.mark.parametrize(
    ("model", "seeds"),
    [({"frozen": True}, 2), ({"frozen": False}, 1), ({"name": "textcnn", "maps": 5}, 1)],
    ids=["frozen", "finetuned", "textcnn"],
)
@pytest.mark.parametrize("labels", ["label", "weak"])
def test_a_run_on_texts(encoder: str, model: dict[str, Any], seeds: int, labels: str) -> None:
    table = pandas.DataFrame(small_table(40, labeled=12 if labels == "label" else None))
    name = model.get("name", encoder)
    settings = {"method": {"name": "cosine", "teacher_every": 2}, "model": {**model, "name": name}}
    run = small_fit(table, name, text="body", **{labels: "topic"}, seeds=seeds, settings=settings)
    assert run.metrics["method"] == "cosine"
    assert run.metrics["steps"] == (8 if model.get("frozen", True) else 4)  # a head takes the place of the first phase
    assert set(run.predict(["stock bank", "team game"])) <= {"money", "sport"}


@pytest.mark.parametrize("frozen", [True, False], ids=["frozen", "finetuned"])
def test_a_run_on_words(tmp_path: Any, frozen: bool) -> None:
    table = pandas.DataFrame(small_sentences(20, labeled=8))
    settings = {"method": {"name": "cosine"}, "model": {"frozen": frozen}}
    run = small_fit(
        table,
        small_word_encoder(tmp_path),
        task="tokens",
        tokens="tokens",
        label="ner_tags",
        seeds=2 if frozen else 1,
        settings=settings,
    )
    assert run.metrics["steps"] == 8
