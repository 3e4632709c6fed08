"""Hard self-training: cross-entropy with the teacher's most likely class, by an independent formula."""

from pathlib import Path

import pandas
import pytest
import torch
from torch.nn.functional import cross_entropy

from drift.core.teacher import copy_of
from drift.data.examples import Batch
from drift.errors import ConfigError
from drift.methods.hard_self_training import HardSelfTraining, HardSelfTrainingSettings
from drift.methods.method import Context
from drift.models.mlp import mlp
from tests.runs.small import small_encoder, small_fit, small_table

DRAW = torch.Generator().manual_seed(0)
X, U, Y = torch.randn(6, 4, generator=DRAW), torch.randn(9, 4, generator=DRAW), torch.tensor([0, 1, 2, 0, 1, 2])


def new_method(**settings: float) -> HardSelfTraining:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        student = mlp(4, 3, hidden=(8,))
    return HardSelfTraining(
        student, HardSelfTrainingSettings(**settings), Context(copy_of(student), single_process=True)
    )


def test_the_loss_is_cross_entropy_with_the_teachers_first_choice() -> None:
    method = new_method(unlabeled_weight=0.7)
    with torch.no_grad():
        for parameter in method.teacher.parameters():  # so that it disagrees with the student
            parameter.add_(0.5 * torch.randn(parameter.shape, generator=DRAW))
    guessed = method.teacher(U).argmax(1)
    expected = cross_entropy(method.student(X), Y) + 0.7 * cross_entropy(method.student(U), guessed)
    assert torch.allclose(method.loss(Batch((X, Y), U)), expected)
    assert torch.allclose(method.loss(Batch(unlabeled=U)), 0.7 * cross_entropy(method.student(U), guessed))


def test_a_teacher_that_keeps_nothing_is_the_student() -> None:
    method = new_method(alpha=0.0)
    method.start()
    method.backward(method.loss(Batch((X, Y), U)))
    torch.optim.SGD(method.student.parameters(), lr=1.0).step()
    method.follow()
    assert all(map(torch.equal, method.teacher.parameters(), method.student.parameters()))


def test_a_copied_teacher_changes_every_so_many_steps_and_equals_the_student_then() -> None:
    method = new_method(copy_every=3)
    method.start()
    optimizer = torch.optim.SGD(method.student.parameters(), lr=1.0)
    labelled_by = []
    for step in range(1, 7):
        method.backward(method.loss(Batch((X, Y), U)))
        optimizer.step()
        method.follow()
        first, student = next(method.teacher.parameters()), next(method.student.parameters())
        labelled_by.append(first.detach().clone())
        assert torch.equal(first, student) == (step % 3 == 0)
    assert torch.equal(labelled_by[2], labelled_by[4])
    assert not torch.equal(labelled_by[1], labelled_by[2])


def test_the_student_labels_its_own_rows_unless_it_is_told_otherwise() -> None:
    assert (HardSelfTrainingSettings().alpha, HardSelfTrainingSettings().copy_every) == (0, None)


def test_bad_settings_are_reported_on_one_line() -> None:
    with pytest.raises(ConfigError, match=r"^settings: alpha=2.0: .*; there is no 'tau'"):
        HardSelfTrainingSettings.read({"alpha": 2.0, "tau": 0.5})


def test_it_runs_from_a_table_to_a_classifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    train = pandas.DataFrame(small_table(40, labeled=8))
    run = small_fit(train, small_encoder(tmp_path / "encoder"), method="hard-self-training")
    assert run.model.predict_proba(train["body"][:3].tolist()).shape == (3, 2)
