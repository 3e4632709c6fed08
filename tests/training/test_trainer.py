"""A whole run: both phases as Algorithm 1 has them, chosen on dev, one trial or many at once."""

import pytest
import torch

from drift import Game
from drift.data.examples import Labeled, Unlabeled, Vectors
from drift.data.labels import LabelBudget
from drift.errors import ConfigError
from drift.models.stacked import Stacked
from drift.training.data import TrainingData
from drift.training.devices import SingleProcess
from drift.training.feeds import Feed
from tests.training.runs import (
    SETTINGS,
    Seen,
    clouds,
    dev_looks,
    small_data,
    small_run,
    small_student,
    weights,
)


def by_hand(data: TrainingData, *, coupling: str = "differentiable") -> Game:
    """Both phases in a loop of one's own, on the batches a run draws."""
    game = Game(small_student(), coupling=coupling)
    for initial in (True, False):
        feed = Feed(
            data.labeled if initial or not data.weak else None,
            None if initial else data.unlabeled,
            batch_size=SETTINGS["batch_size"],
            unlabeled_batch_size=SETTINGS["unlabeled_batch_size"],
            seeds=(0,),
        )
        named = list(game.student.named_parameters())
        decayed = {"params": [p for name, p in named if "bias" not in name], "weight_decay": 1e-4}
        free = {"params": [p for name, p in named if "bias" in name], "weight_decay": 0.0}
        optimizer = torch.optim.AdamW([decayed, free], lr=SETTINGS["learning_rate"], fused=True)
        for _ in range(SETTINGS["initial_steps" if initial else "steps"]):
            (batch,) = next(feed)
            if initial:
                game.initial_loss(batch.labeled).backward()
            else:
                game.backward(game.loss(unlabeled=batch.unlabeled, labeled=batch.labeled))
            optimizer.step()
            optimizer.zero_grad()
            if not initial:
                game.follow()
        if initial:
            game.reset()
    return game


# Both phases.


@pytest.mark.parametrize(("method", "coupling"), [("drift", "differentiable"), ("self-training", "detached")])
@pytest.mark.parametrize("weak", [False, True])
def test_a_run_is_algorithm_1_written_out(method: str, coupling: str, weak: bool) -> None:
    data = small_data(dev=False, weak=weak)
    run = small_run(data=data, method=method, played={"prior": "uniform"}, return_to_start=False)
    assert run.run().steps == SETTINGS["initial_steps"] + SETTINGS["steps"]
    game = by_hand(data, coupling=coupling)
    assert torch.equal(weights(run.method.student), weights(game.student))
    assert torch.equal(weights(run.method.teacher), weights(game.teacher))


def test_weak_labels_make_the_start_and_are_thrown_away() -> None:
    run = small_run(data=small_data(weak=True), kind=Seen)
    run.run()
    start, game = run.batches
    assert all(batch.labeled is not None and batch.unlabeled is None for batch in start)
    assert all(batch.labeled is None and batch.unlabeled is not None for batch in game)
    assert len(start) == SETTINGS["initial_steps"]
    assert len(game) == SETTINGS["steps"]


def test_the_label_budget_counts_gold_alone_dev_included() -> None:
    assert small_data().budget == LabelBudget(train=24, dev=100)
    assert small_data(dev=False).budget == LabelBudget(train=24, dev=0)
    assert small_data(weak=True).budget == LabelBudget(train=0, dev=100)
    assert str(small_data().budget) == "124 gold labels (24 to train, 100 dev)"


def test_weak_labels_alone_cannot_go_on() -> None:
    data = small_data(weak=True)
    with pytest.raises(ConfigError, match="give unlabelled rows for the second phase"):
        small_run(data=TrainingData(data.labeled, weak=True))


def test_supervised_learning_is_the_first_phase_alone() -> None:
    supervised = small_run(method="supervised", kind=Seen)
    outcome = supervised.run()
    assert outcome.steps == SETTINGS["initial_steps"]
    assert supervised.batches[1] == []
    assert outcome.best == outcome.start
    start = small_run(steps=0)
    start.run()
    assert torch.equal(weights(supervised.method.student), weights(start.method.student))


# What is chosen.


def test_the_student_that_was_best_on_dev_is_what_remains() -> None:
    rates = {"learning_rate": 1.0, "initial_learning_rate": 0.02}
    run = small_run(kind=Seen, played={"prior": "uniform"}, optimizer="adam", steps=40, evaluate_every=4, **rates)
    outcome = run.run()
    scores = {entry["step"]: entry["dev"]["accuracy"] for entry in dev_looks(outcome.entries, "game")}
    (best,) = outcome.best_steps
    assert 0 < best < 40  # else this shows nothing
    assert scores[40] < scores[best] == max(scores.values()) == outcome.best[0]["accuracy"]
    assert torch.equal(weights(run.method.student), run.students[best])


def test_where_the_game_only_harms_the_start_remains() -> None:
    """Dev agrees with the noisy start alone: labels at random, which the start has learnt by heart."""
    x, _ = clouds(60)
    noisy = torch.randint(0, 3, (24,), generator=torch.Generator().manual_seed(1))
    examples, rows = Vectors(x), torch.arange(60)
    known = Labeled(examples, rows[:24], noisy)
    run = small_run(
        data=TrainingData(known, Unlabeled(examples, rows), known, weak=True),
        initial_steps=200,
        steps=20,
        learning_rate=0.3,
        initial_learning_rate=0.05,
    )
    outcome = run.run()
    assert outcome.best_steps == [0]
    assert outcome.best == outcome.start
    alone = small_run(
        data=TrainingData(known, Unlabeled(examples, rows), known, weak=True),
        initial_steps=200,
        steps=0,
        learning_rate=0.3,
        initial_learning_rate=0.05,
    )
    alone.run()
    assert torch.equal(weights(run.method.student), weights(alone.method.student))


def test_patience_ends_a_phase_and_without_dev_nothing_does() -> None:
    tiny = dict(learning_rate=1e-9, steps=40, evaluate_every=2, patience=3)  # no look is ever better than the first
    with_dev = small_run(**tiny).run()
    assert [entry["step"] for entry in dev_looks(with_dev.entries, "game")] == [0, 2, 4, 6]
    assert with_dev.steps == SETTINGS["initial_steps"] + 6
    without = small_run(data=small_data(dev=False), **tiny).run()
    assert without.steps == SETTINGS["initial_steps"] + 40
    assert (without.start, without.best, without.best_steps) == (None, None, None)
    assert dev_looks(without.entries, "game") == []


def test_without_a_first_phase_the_start_is_the_student_as_given() -> None:
    outcome = small_run(initial_steps=0).run()
    assert outcome.start == [dev_looks(outcome.entries, "game")[0]["dev"]]


# Many at once.


def test_stacked_trials_come_to_what_each_comes_to_alone() -> None:
    x, y = clouds()
    examples, seeds = Vectors(x), (0, 1, 2)
    orders = [torch.randperm(140, generator=torch.Generator().manual_seed(seed)) for seed in seeds]
    dev = Labeled(examples, torch.arange(140, 240), y[140:])
    labeled, unlabeled = torch.stack([o[:24] for o in orders]), torch.stack([o[24:] for o in orders])
    options = dict(learning_rate=0.05, steps=30, evaluate_every=3)

    together = small_run(
        student=Stacked([small_student(seed=seed) for seed in seeds]),
        data=TrainingData(Labeled(examples, labeled, y[labeled]), Unlabeled(examples, unlabeled, y[unlabeled]), dev),
        seeds=seeds,
        **options,
    )
    outcome = together.run()
    assert len(set(outcome.best_steps)) > 1  # every trial has a best of its own
    for trial, seed in enumerate(seeds):
        alone = small_run(
            student=small_student(seed=seed),
            data=TrainingData(
                Labeled(examples, labeled[trial], y[labeled[trial]]), Unlabeled(examples, unlabeled[trial]), dev
            ),
            seed=seed,
            **options,
        )
        expected = alone.run()
        assert outcome.best[trial] == pytest.approx(expected.best[0])
        assert outcome.start[trial] == pytest.approx(expected.start[0])
        assert outcome.best_steps[trial] == expected.best_steps[0]
        found = weights(together.method.student.trial(trial))
        assert torch.allclose(found, weights(alone.method.student), rtol=1e-3, atol=1e-4)


def test_the_callers_random_numbers_go_on_as_if_nothing_had_run() -> None:
    before = torch.random.get_rng_state()
    small_run(student=small_student(dropout=0.3), machine=SingleProcess()).run()
    assert torch.equal(before, torch.random.get_rng_state())
