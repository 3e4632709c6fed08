"""BOND: labels and losses against numpy, the schedule of the teacher, and reinitialised students."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from torch import Tensor

from drift.core.teacher import copy_of
from drift.data.examples import Batch
from drift.errors import ConfigError
from drift.methods.bond import Bond, BondSettings, SureStrategy
from drift.methods.method import Context
from drift.models.mlp import mlp
from drift.models.stacked import Stacked
from drift.training.packing import pack, unpack
from tests.runs.small import small_encoder, small_fit, small_table
from tests.runs.small_tokens import small_sentences, small_word_encoder

DRAW = torch.Generator().manual_seed(0)
X, U, Y = torch.randn(6, 4, generator=DRAW), torch.randn(30, 4, generator=DRAW), torch.tensor([0, 1, 2, 0, 1, 2])


def students(count: int) -> list[torch.nn.Module]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return [mlp(4, 3, hidden=(8,)) for _ in range(count)]


def new_method(**settings: Any) -> Bond:
    (student,) = students(1)
    return Bond(student, BondSettings(**settings), Context(copy_of(student), single_process=True))


def step(method: Bond, optimizer: torch.optim.Optimizer) -> None:
    method.backward(method.loss(Batch(unlabeled=U)))
    optimizer.step()
    optimizer.zero_grad()
    method.follow()


def weights(module: torch.nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def reference(teacher: Tensor, student: Tensor, threshold: float) -> float:
    """Return the loss from logits, in numpy."""
    p, q = (np.exp(z.detach().double().numpy()) for z in (teacher, student))
    p, q = p / p.sum(1, keepdims=True), q / q.sum(1, keepdims=True)
    y = p**2 / p.sum(0)
    y = y / y.sum(1, keepdims=True)
    sure = y.max(1)
    kept = sure > threshold if (sure > threshold).any() else sure == sure.max()
    return float((y * np.log(y / q)).sum(1)[kept].mean())


@pytest.mark.parametrize("threshold", [0.0, 0.45, 0.55, 0.99], ids=["all", "most", "some", "none, so the surest"])
def test_the_loss_is_the_mean_divergence_over_sure_rows(threshold: float) -> None:
    method = new_method(threshold=threshold, unlabeled_weight=0.5)
    with torch.no_grad():
        for parameter in method.student.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=DRAW))
    loss = method.loss(Batch(unlabeled=U))
    assert loss.item() == pytest.approx(0.5 * reference(method.teacher(U), method.student(U), threshold), rel=1e-5)
    method.backward(loss)
    assert all(parameter.grad.abs().sum() > 0 for parameter in method.student.parameters())


def test_thresholds_of_that_test_select_all_most_some_and_one() -> None:
    log_p = torch.log_softmax(new_method().teacher(U), -1).detach()
    kept = [int(SureStrategy(threshold).respond(log_p).omega.sum()) for threshold in (0.0, 0.45, 0.55, 0.99)]
    assert kept[0] == 30 > kept[1] > kept[2] > kept[3] == 1


def test_an_unbalanced_class_is_not_divided_by_how_common_it_is() -> None:
    log_p = torch.log_softmax(3 * torch.randn(40, 3, generator=DRAW, dtype=torch.float64), -1)
    p = log_p.exp().numpy()
    f = p.sum(0) / p[:, 1:].sum(0).mean()
    f[0] = 1
    y = p**2 / f
    labels = SureStrategy(0.5, unbalanced_class=0).respond(log_p).log_y.exp()
    assert np.allclose(labels.numpy(), y / y.sum(1, keepdims=True))


def test_stacked_trials_are_games_of_their_own() -> None:
    alone = [
        Bond(student, BondSettings(threshold=0.5), Context(copy_of(student), single_process=True))
        for student in students(3)
    ]
    several = Stacked(students(3))
    method = Bond(several, BondSettings(threshold=0.5), Context(copy_of(several), stacked=True, single_process=True))
    together = method.loss(Batch((X.expand(3, -1, -1), Y.expand(3, -1)), U.expand(3, -1, -1)))
    assert torch.allclose(together, sum(one.loss(Batch((X, Y), U)) for one in alone))


def test_the_teacher_changes_every_so_many_steps_and_not_between() -> None:
    method = new_method(teacher_every=3)
    method.start()
    optimizer = torch.optim.Adam(method.student.parameters(), lr=0.1)
    seen = []
    for _ in range(7):
        step(method, optimizer)
        seen.append((weights(method.teacher), weights(method.student)))
    assert torch.equal(seen[0][0], seen[1][0])
    assert torch.equal(seen[2][0], seen[2][1])
    assert torch.equal(seen[3][0], seen[2][1])
    assert torch.equal(seen[4][0], seen[2][1])
    assert torch.equal(seen[5][0], seen[5][1])


def test_a_student_that_starts_over_does_so_from_before_the_start_and_only_when_it_steps() -> None:
    method = new_method(teacher_every=2, reinitialize=True)
    untrained = weights(method.student)
    with torch.no_grad():
        for parameter in method.student.parameters():  # the first phase
            parameter.add_(1.0)
    method.start()
    optimizer = torch.optim.SGD(method.student.parameters(), lr=0.1)
    step(method, optimizer)
    assert float((weights(method.student) - untrained).abs().max()) < 0.5  # one step from untrained
    step(method, optimizer)
    assert torch.equal(weights(method.student), weights(method.teacher))  # trained, as in dev evaluations
    assert not torch.equal(weights(method.student), untrained)
    method.loss(Batch(unlabeled=U))
    assert torch.equal(weights(method.student), untrained)


def test_a_saved_student_remembers_where_it_began() -> None:
    method = new_method(reinitialize=True, teacher_every=1)
    saved = unpack(*pack(method.state_dict()))
    again = Bond(
        mlp(4, 3, hidden=(8,)), BondSettings(reinitialize=True, teacher_every=1), Context(mlp(4, 3, hidden=(8,)))
    )
    again.load_state_dict(saved)
    again.loss(Batch(unlabeled=U))
    assert torch.equal(weights(again.student), weights(method.student))


def test_bad_settings_are_reported_on_one_line() -> None:
    with pytest.raises(ConfigError, match=r"^settings: teacher_every=0: .*; threshold=1.0: "):
        BondSettings.read({"teacher_every": 0, "threshold": 1.0})


@pytest.mark.parametrize("reinitialize", [False, True])
def test_it_runs_from_texts_to_a_classifier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reinitialize: bool
) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    train = pandas.DataFrame(small_table(40, labeled=8))
    settings = {"method": {"teacher_every": 2, "reinitialize": reinitialize}}
    run = small_fit(train, small_encoder(tmp_path / "encoder"), method="bond", settings=settings)
    assert run.model.predict_proba(train["body"][:3].tolist()).shape == (3, 2)


def test_it_runs_on_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    train = pandas.DataFrame(small_sentences(20, labeled=8))
    encoder = small_word_encoder(tmp_path / "encoder")
    run = small_fit(train, encoder, task="tokens", method="bond", finetune=True)
    assert run.metrics["steps"] == 8
