"""Phases that end when they have converged, or when time is up; the record says which."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from drift.errors import Interrupted
from drift.methods import METHODS
from drift.training.convergence import (
    BEGUN,
    PhaseEnd,
    changed_share,
    least_game_steps,
    seconds_to_train,
)
from drift.training.plan import make_plan
from drift.training.plateau import STABLE, Plateau
from drift.training.trainer import Trainer
from tests.training.runs import final_state, same_bits, small_data, small_run, small_student, stopped_after, weights

CONVERGED: dict[str, Any] = dict(until="converged", initial_steps=400, steps=400, window=10, learning_rate=0.01)


def steps_until_plateau(losses: list[float], window: int, tolerance: float) -> int | None:
    plateau = Plateau(window, tolerance, begun=BEGUN)
    return next((step for step, loss in enumerate(losses, 1) if plateau.add(loss)), None)


def reference(losses: list[float], window: int, tolerance: float) -> int | None:
    """The same rule from all means at once."""
    means = [float(np.mean(losses[at : at + window])) for at in range(0, len(losses) - window + 1, window)]
    fell = [mean < min(means[:at]) - tolerance * losses[0] for at, mean in enumerate(means) if at]
    for at in range(STABLE, len(fell) + 1):
        if not any(fell[at - STABLE : at]) and min(means[: at + 1]) < BEGUN * losses[0]:
            return window * (at + 1)
    return None


def test_a_loss_that_halves_every_window_ends_by_its_first_value() -> None:
    """Falls of 1/2, 1/4 and 1/8 are above 1/16 of the first mean; those of 1/16 and 1/32 are not, and end it."""
    losses = [2.0 ** -(step // 4) for step in range(400)]
    assert steps_until_plateau(losses, 4, 1 / 16) == 4 * 6
    assert steps_until_plateau(losses[:23], 4, 1 / 16) is None


def test_a_loss_that_rises_and_falls_again_does_not_end_at_once() -> None:
    losses = [4.0] * 5 + [2.0] * 5 + [3.0] * 5 + [1.0] * 5 + [0.0] * 5
    assert steps_until_plateau(losses, 5, 0.01) is None
    assert steps_until_plateau([*losses, *[0.0] * 10], 5, 0.01) == 35


def test_a_loss_that_has_not_begun_to_fall_has_no_plateau() -> None:
    assert steps_until_plateau([1.0] * 500, 10, 0.01) is None
    assert steps_until_plateau([1.0] * 200 + [0.5] * 40, 10, 0.01) == 230  # two windows after the first lower one


@given(
    st.lists(st.floats(0.01, 9), min_size=1, max_size=60),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([0.0, 0.01, 0.2]),
    st.sampled_from([1.0, 8.0]),
)
def test_the_plateau_is_that_of_the_means_and_does_not_depend_on_the_scale(
    losses: list[float], window: int, tolerance: float, scale: float
) -> None:
    """A loss that is a sum over stacked trials ends like their mean."""
    rounded = [round(loss * 64) / 64 for loss in losses]  # sums are then exact
    assert steps_until_plateau([scale * loss for loss in rounded], window, tolerance) == reference(
        rounded, window, tolerance
    )


def test_changes_of_rare_classes_count_fully() -> None:
    before = torch.tensor([0] * 96 + [1, 1, 2, 2])
    after = torch.tensor([0] * 95 + [1] + [1, 1, 2, 0])
    assert changed_share(before, before) == 0
    assert changed_share(before, after) == 2 / 5  # of the five that are not 0 at both times
    assert changed_share(torch.zeros(9), torch.zeros(9)) == 0
    assert changed_share(torch.zeros(9), torch.ones(9)) == 1
    assert changed_share(before.expand(3, -1), after.expand(3, -1)) == pytest.approx(2 / 5)  # stacked trials


def test_a_slow_teacher_and_a_ramp_need_time() -> None:
    def least(name: str, **settings: Any) -> int:
        return least_game_steps(small_run(method=name, played=settings).method)

    assert least("drift", alpha=0.5) == 4
    assert least("drift", alpha=0.99) == 200
    assert least("drift", alpha=1.0) == 0
    assert least("supervised") == 0
    assert least("mean-teacher", ramp_steps=70) == 70
    assert {"uda", "mean-teacher", "mixtext"} <= set(METHODS)


@pytest.mark.parametrize("dev", [True, False])
def test_both_phases_end_when_they_have_converged(dev: bool) -> None:
    run = small_run(data=small_data(dev=dev), **CONVERGED)
    outcome = run.run()
    start, game = outcome.ends
    assert [end.reason for end in outcome.ends] == ["converged", "converged"]
    assert outcome.steps == start.steps + game.steps
    assert str(start) == f"start: converged after {start.steps} steps"
    assert start.steps % CONVERGED["window"] == game.steps % CONVERGED["window"] == 0
    assert 30 <= start.steps < 400
    assert 30 <= game.steps < 400
    # The rule, applied to the losses of a run of fixed length.
    fixed = small_run(data=small_data(dev=dev), **{**CONVERGED, "until": "steps"}, trace_every=1).run()
    losses = [entry["loss"] for entry in fixed.entries if entry["phase"] == "start" and "loss" in entry]
    assert start.steps == steps_until_plateau(losses, 10, 0.01)


def test_the_last_student_of_a_converged_phase_is_evaluated() -> None:
    outcome = small_run(**CONVERGED, evaluate_every=1000).run()
    looks = {(entry["phase"], entry["step"]) for entry in outcome.entries if "dev" in entry}
    assert looks == {("game", 0), *((end.phase, end.steps) for end in outcome.ends)}


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        ({}, ["steps", "steps"]),
        ({"method": "supervised"}, ["steps"]),
        ({"until": "converged"}, ["maximum", "maximum"]),  # 8 and 12 steps are less than a window
        ({"minutes": 1e-9}, ["minutes", "minutes"]),
        ({"minutes": 1e3}, ["steps", "steps"]),
        ({"patience": 1, "initial_steps": 500, "steps": 500, "evaluate_every": 1}, ["patience", "patience"]),
    ],
)
def test_why_a_phase_ended(options: dict[str, Any], reasons: list[str]) -> None:
    ends = small_run(**options).run().ends
    assert [end.reason for end in ends] == reasons
    assert [end.phase for end in ends] == ["start", "game"][: len(reasons)]
    if "minutes" in reasons:
        assert [end.steps for end in ends] == [1, 1]
    for end in ends:
        assert str(end).startswith(f"{end.phase}: ")
        assert f"{end.steps:,} steps" in str(end)


def test_a_converged_phase_has_the_same_steps_as_a_fixed_one() -> None:
    """Checks change nothing: no random number is drawn for them, and dropout is as before."""
    converged = small_run(student=small_student(dropout=0.3), **CONVERGED)
    start, game = converged.run().ends
    options = {**CONVERGED, "until": "steps", "initial_steps": start.steps, "steps": game.steps}
    fixed = small_run(student=small_student(dropout=0.3), **options)
    fixed.run()
    assert torch.equal(weights(fixed.method.student), weights(converged.method.student))


@pytest.mark.parametrize("place", ["in the start", "at its end", "in the game", "at its last step"])
def test_resumed_is_the_same_to_the_bit(tmp_path: Path, place: str) -> None:
    def run(folder: Path, **options: Any) -> Any:
        options = {"student": small_student(dropout=0.3), **CONVERGED, **options}
        return small_run(tmp_path / folder, **options)

    whole = run(Path("whole"))
    outcome = whole.run()
    start, game = (end.steps for end in outcome.ends)
    after = {
        "in the start": start - 13,
        "at its end": start,
        "in the game": start + game - 7,
        "at its last step": start + game,
    }[place]
    with pytest.raises(Interrupted):
        run(Path("run"), kind=stopped_after(after)).run()
    again = run(Path("run"), student=small_student(dropout=0.3, seed=9))
    resumed = again.run(resume=True)
    assert resumed.ends == outcome.ends
    assert same_bits(final_state(again), final_state(whole))


def test_the_plan_says_at_most() -> None:
    lines = make_plan(small_run(**CONVERGED)).lines()
    assert lines[0].startswith("at most 400 steps to find the start, ")
    assert lines[1].startswith("at most 400 steps after that, ")
    training = next(line for line in lines if " of training; peak memory" in line)
    assert training.startswith("at most ")
    assert make_plan(small_run(minutes=5)).lines()[0].startswith("at most 8 steps")


@pytest.mark.parametrize(("prepared", "left"), [(0.0, 60.0), (20.0, 40.0), (50.0, 15.0), (1e6, 15.0)])
def test_preparation_counts_towards_the_minutes_but_a_quarter_is_left(prepared: float, left: float) -> None:
    assert seconds_to_train(small_run(minutes=1, prepared_in=prepared)) == left


def test_predictions_of_the_start_do_not_count_towards_the_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = small_run(minutes=1)
    monkeypatch.setattr(Trainer, "seconds", property(lambda self: 0.0))
    trainer.enter(1)
    monkeypatch.setattr(Trainer, "seconds", property(lambda self: 60.0))
    assert trainer.convergence.spent() == 1.0
    trainer.observed_in = 60.0
    assert trainer.convergence.spent() == 0.5


def test_a_plan_has_as_many_steps_as_fit_into_the_minutes() -> None:
    plan = make_plan(small_run(minutes=1e-9))
    assert (plan.initial_steps, plan.steps) == (1, 1)
    assert "these steps fit into training.minutes=1e-09, with the preparation" in plan.lines()
    plan = make_plan(small_run(minutes=60))
    assert (plan.initial_steps, plan.steps) == (8, 12)


def test_the_maximum_is_said_to_be_one() -> None:
    assert str(PhaseEnd("game", 2000, "maximum")) == "game: stopped at the maximum, 2,000 steps; more might help"
