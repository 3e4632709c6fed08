"""Mean teacher: the terms, the schedules and the noise, each against an independent formula."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from torch import nn

from drift.core.teacher import copy_of
from drift.data.examples import Batch
from drift.errors import ConfigError
from drift.methods.mean_teacher import MeanTeacher, MeanTeacherSettings
from drift.methods.method import Context
from drift.models.gcn import GCN
from drift.models.grand import Grand
from drift.models.mlp import mlp
from tests.runs.small import small_encoder, small_fit, small_table

DRAW = torch.Generator().manual_seed(0)
X, U, Y = torch.randn(6, 4, generator=DRAW), torch.randn(9, 4, generator=DRAW), torch.tensor([0, 1, 2, 0, 1, 2])


def new_method(dropout: float = 0.0, **settings: Any) -> MeanTeacher:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        student = mlp(4, 3, hidden=(8,), dropout=dropout)
    return MeanTeacher(student, MeanTeacherSettings(**settings), Context(copy_of(student), single_process=True))


def moved(method: MeanTeacher) -> MeanTeacher:
    """Return a method whose student differs from its teacher."""
    with torch.no_grad():
        for parameter in method.student.parameters():
            parameter.add_(0.5 * torch.randn(parameter.shape, generator=DRAW))
    return method


def test_consistency_is_the_mean_squared_distance_of_probabilities() -> None:
    method = moved(new_method(consistency_weight=3.0, ramp_steps=0))

    def softmax(logits: torch.Tensor) -> np.ndarray:
        e = np.exp(logits.detach().double().numpy())
        return e / e.sum(1, keepdims=True)

    p, q = softmax(method.teacher(U)), softmax(method.student(U))
    expected = 3.0 * ((p - q) ** 2).mean()
    loss = method.loss(Batch(unlabeled=U))
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    method.backward(loss)
    assert all(parameter.grad.abs().sum() > 0 for parameter in method.student.parameters())
    assert all(parameter.grad is None for parameter in method.teacher.parameters())


def test_both_players_have_noise_of_their_own() -> None:
    method = new_method(dropout=0.5)
    method.start()
    assert method.loss(Batch(unlabeled=U)).item() > 0
    quiet = new_method()
    quiet.start()
    assert quiet.loss(Batch(unlabeled=U)).item() == 0.0  # student and teacher are equal, and there is no noise


@pytest.mark.parametrize("kind", [GCN, Grand])
def test_both_players_have_noise_of_their_own_on_a_graph(kind: type[nn.Module]) -> None:
    nodes = torch.arange(12)
    student = kind(torch.rand(12, 5), torch.stack([nodes, nodes.roll(1)]), 3, seeds=[0, 1])
    method = MeanTeacher(student, MeanTeacherSettings(ramp_steps=0), Context(stacked=True, single_process=True))
    method.start()
    for _ in range(3):
        loss = method.loss(Batch(unlabeled=nodes))
        assert loss.item() > 0
        method.backward(loss)
        method.follow()  # copies the student's count of draws


def test_a_weight_of_zero_is_supervised_learning() -> None:
    method = moved(new_method(consistency_weight=0.0))
    assert torch.allclose(method.loss(Batch((X, Y), U)), method.initial_loss(Batch((X, Y))))


def test_weight_and_average_follow_their_schedules() -> None:
    method = new_method(ramp_steps=4, consistency_weight=2.0, early_alpha=0.5, late_alpha=0.75)
    method.start()
    weights, alphas = [], []
    for _ in range(6):
        method.backward(method.loss(Batch((X, Y), U)))
        weights.append(method.game.unlabeled_weight)
        method.student.zero_grad()
        method.follow()
        alphas.append(method.game.alpha)
    assert weights == pytest.approx([2.0 * math.exp(-5 * (1 - min(t, 4) / 4) ** 2) for t in range(6)])
    assert alphas == [0.5] * 4 + [0.75] * 2


def test_bad_settings_are_reported_on_one_line() -> None:
    with pytest.raises(ConfigError, match=r"^settings: ramp_steps=-1: .*; late_alpha=1.5: "):
        MeanTeacherSettings.read({"ramp_steps": -1, "late_alpha": 1.5})


def test_it_runs_from_a_table_to_a_classifier_with_dropout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    train = pandas.DataFrame(small_table(40, labeled=8))
    run = small_fit(train, small_encoder(tmp_path / "encoder"), method="mean-teacher", out=tmp_path / "run")
    assert run.model.predict_proba(train["body"][:3].tolist()).shape == (3, 2)
    assert "dropout: 0" in (tmp_path / "run" / "config.yaml").read_text()
