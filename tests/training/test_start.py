"""The start is kept during the game: its predictions, and its weights to return to."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from drift.data.examples import Labeled, Unlabeled, Vectors
from drift.methods import METHODS
from drift.methods.shares import Shares
from drift.models.stacked import Stacked
from drift.tasks.scoring import classification_scores
from drift.training import start as module
from drift.training.data import TrainingData
from drift.training.settings import TrainingSettings
from drift.training.trainer import Trainer

TRIALS, ROWS = 3, 60


def data(*, dev: bool = False, left_out: bool = False) -> TrainingData:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(ROWS) % 2
    x = torch.randn(ROWS, 4, generator=generator) + 2 * y.unsqueeze(1)
    examples = Vectors(x)
    rows = torch.arange(6).expand(TRIALS, -1)
    rest = torch.arange(8, ROWS).expand(TRIALS, -1)
    held = torch.arange(6, 8).expand(TRIALS, -1)
    return TrainingData(
        Labeled(examples, rows, y[rows]),
        Unlabeled(examples, rest),
        Labeled(examples, torch.arange(8, 20), y[8:20]) if dev else None,
        left_out=Labeled(examples, held, y[held]) if left_out else None,
    )


def trainer(part: TrainingData, method_settings: dict[str, object] | None = None, **settings: object) -> Trainer:
    heads = [nn.Sequential(nn.Linear(4, 2)) for _ in range(TRIALS)]
    method = METHODS["drift"]
    options = {"initial_steps": 20, "steps": 10, "learning_rate": 0.05, **settings}
    return Trainer(
        Stacked(heads),
        part,
        TrainingSettings(**options),
        method,
        method.settings_type(**(method_settings or {})),
        classification_scores,
        seeds=tuple(range(TRIALS)),
        observe=lambda: {"test": Labeled(part.labeled.examples, torch.arange(20, 30), torch.arange(10) % 2)},
    )


def test_the_predictions_of_the_start_are_those_of_its_weights() -> None:
    run = trainer(data())
    predicted = run.run().start_predictions["test"]
    other = trainer(data())
    other.method.student.load_state_dict(run.start.weights)
    x = data().labeled.examples.inputs(torch.arange(20, 30)).expand(TRIALS, -1, -1)
    torch.testing.assert_close(other.method.predict_proba(x), predicted)


def test_a_dev_set_chooses_and_no_weights_of_the_start_are_kept() -> None:
    run = trainer(data(dev=True))
    outcome = run.run()
    assert outcome.choice is None
    assert not run.start.weights
    assert "test" in outcome.start_predictions


def test_return_to_start_can_be_turned_off() -> None:
    run = trainer(data(), return_to_start=False)
    assert run.run().choice is None
    assert not run.start.weights


def test_no_second_phase_is_played_if_the_start_suffices() -> None:
    run = trainer(replace(data(), start_suffices="the reason"))
    outcome = run.run()
    assert outcome.choice is not None
    assert (outcome.choice.start_kept, outcome.choice.reason) == ((True,) * TRIALS, "the reason")
    assert outcome.steps == 20
    x = data().labeled.examples.inputs(torch.arange(20, 30)).expand(TRIALS, -1, -1)
    torch.testing.assert_close(run.method.predict_proba(x), outcome.start_predictions["test"])


@pytest.mark.parametrize(("dev", "settings"), [(True, {}), (False, {"return_to_start": False})])
def test_a_second_phase_is_played_in_any_case_with_dev_or_without_return(dev: bool, settings: dict[str, bool]) -> None:
    outcome = trainer(replace(data(dev=dev), start_suffices="the reason"), **settings).run()
    assert outcome.choice is None
    assert outcome.steps == 30


def test_only_trials_whose_shares_drifted_return_to_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    run = trainer(data())

    def drifts(shares: list[Shares], classes: np.ndarray) -> list[float]:
        assert classes.shape[0] == len(shares) == TRIALS
        return [0.0, 0.9, 0.1]

    monkeypatch.setattr(module, "_drifts", drifts)
    outcome = run.run()
    assert outcome.choice is not None
    assert outcome.choice.start_kept == (False, True, False)
    assert "90 points" in outcome.choice.reason
    for name, value in run.method.student.state_dict().items():
        same = [torch.equal(value[trial], run.start.weights[name][trial]) for trial in range(TRIALS)]
        assert same == [False, True, False]


@pytest.mark.parametrize(("changed", "kept"), [(0.4, False), (0.6, True)])
def test_without_balancing_a_game_that_changes_most_answers_is_given_up(
    changed: float, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "changed_share", lambda before, after: changed)
    outcome = trainer(data(), method_settings={"class_mass": False}).run()
    assert outcome.choice is not None
    assert outcome.choice.start_kept == (kept,) * TRIALS
    assert ("60 %" in outcome.choice.reason) == kept


def test_drift_is_the_total_variation_of_shares() -> None:
    shares = [Shares((0.5, 0.5), ""), Shares((0.9, 0.1), "")]
    classes = np.array([[0, 1, 0, 1], [1, 1, 1, 1]])
    assert module._drifts(shares, classes) == pytest.approx([0.0, 0.9])


def test_a_game_that_has_fewer_left_out_labels_right_is_given_up() -> None:
    noise = 0.02 * torch.rand(2, 10, generator=torch.Generator().manual_seed(0))

    def answers(p: float) -> torch.Tensor:
        return torch.stack([p + noise, 1 - p - noise], -1)

    rows = torch.arange(10).expand(2, -1)
    part = Labeled(Vectors(torch.zeros(10, 1)), rows, torch.zeros(2, 10, dtype=torch.long))
    assert "the start has 100 % right and the game 0 %" in module._less_right(answers(0.9), answers(0.2), part, [])
    assert not module._less_right(answers(0.6), answers(0.9), part, [])
    assert not module._less_right(answers(0.2), answers(0.9), part, [])
    assert not module._less_right(answers(0.9), answers(0.6), part, [])  # less sure, and as often right


def test_agreement_is_the_share_of_pairs_of_trials_with_one_answer() -> None:
    generator = np.random.default_rng(0)
    classes = generator.integers(3, size=(4, 50))
    pairs = [np.mean(classes[i] == classes[j]) for i in range(4) for j in range(i)]
    assert module.agreement(torch.from_numpy(classes)) == pytest.approx(np.mean(pairs))
    assert module.agreement(torch.tensor([[0, 1, 1]])) == 1.0


@pytest.mark.parametrize("changed", [False, True])
def test_a_game_whose_heads_agree_less_is_given_up(monkeypatch: pytest.MonkeyPatch, changed: bool) -> None:
    answers = module.watched_classes

    def scattered(*arguments: Any) -> torch.Tensor:
        classes = answers(*arguments)
        return classes + torch.arange(len(classes)).unsqueeze(1) * int(changed)

    monkeypatch.setattr(module, "watched_classes", scattered)
    outcome = trainer(data(left_out=True)).run()
    assert outcome.choice is not None
    assert outcome.choice.start_kept == (changed,) * TRIALS
    assert ("self-training was unstable" in outcome.choice.reason) == changed


def test_left_out_labels_count_by_the_share_of_their_class() -> None:
    labels = torch.tensor([[0] * 10 + [1] * 10])
    part = Labeled(Vectors(torch.zeros(20, 1)), torch.arange(20).unsqueeze(0), labels)
    noise = 0.02 * torch.rand(1, 20, generator=torch.Generator().manual_seed(0))
    always_first, always_second = (torch.stack([p - noise, 1 - p + noise], -1) for p in (0.9, 0.1))
    assert module._less_right(always_second, always_first, part, [Shares((0.05, 0.95), "")])
    assert not module._less_right(always_second, always_first, part, [Shares((0.95, 0.05), "")])


def test_left_out_labels_are_predicted_by_every_trial_before_and_after() -> None:
    outcome = trainer(data(left_out=True)).run()
    assert outcome.left_out is not None
    part, final = outcome.left_out
    assert final.shape == (*part.labels.shape, 2)
    assert outcome.start_predictions[module.LEFT_OUT].shape == final.shape


def test_shares_are_estimated_for_every_trial_and_survive_a_snapshot() -> None:
    run = trainer(data())
    outcome = run.run()
    assert len(outcome.shares) == TRIALS
    other = trainer(data())
    other.enter(1)
    other.method.load_state_dict(run.method.state_dict())
    assert other.method.shares == outcome.shares
    assert other.method.game.strategy == run.method.game.strategy


@pytest.mark.parametrize(("kept", "given_up"), [(True, True), (False, False)])
def test_a_game_that_leaves_the_labels_of_both_phases_is_given_up(kept: bool, given_up: bool) -> None:
    run = trainer(replace(data(), weak=True), method_settings={"class_mass": False}, keep_weak_labels=kept)
    outcome = run.run()
    assert outcome.choice is not None
    assert outcome.choice.start_kept == (False,) * TRIALS
    with torch.no_grad():
        for parameter in run.method.student.parameters():
            parameter.neg_()
    run.first_classes = None if run.first_classes is None else 1 - run.first_classes
    choice = module.choose(run)
    assert choice.start_kept == (given_up,) * TRIALS
    assert ("weak labels are not followed" in choice.reason) == given_up
