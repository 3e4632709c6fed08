"""A plan says what a run then does."""

import pytest

from drift.data.labels import LabelBudget
from drift.training.callbacks import Callback, TrainingState
from drift.training.plan import format_duration, make_plan
from tests.training.runs import small_data, small_run


class Counter(Callback):
    """Counts dev evaluations."""

    evaluations = 0

    def on_evaluate(self, state: TrainingState, scores: object) -> None:
        self.evaluations += 1


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"initial_steps": 10, "steps": 20},  # both end on an evaluation that is due anyway
        {"initial_steps": 0},
        {"steps": 0},
        {"method": "supervised"},
        {"evaluate_every": 1000},
    ],
)
def test_steps_and_evaluations_are_those_of_the_run(options: dict[str, object]) -> None:
    plan = make_plan(small_run(**options))
    counter = Counter()
    outcome = small_run(callbacks=[counter], **options).run()
    assert plan.initial_steps + plan.steps == outcome.steps
    assert plan.evaluations == counter.evaluations
    assert plan.budget == LabelBudget(24, 100)
    for steps, seconds in zip((plan.initial_steps, plan.steps), plan.seconds_per_step, strict=True):
        assert (seconds > 0) == (steps > 0)
    assert plan.seconds_per_evaluation > 0
    assert plan.memory > 0
    first, second = plan.seconds_per_step
    training = plan.initial_steps * first + plan.steps * second
    between = plan.evaluations * plan.seconds_per_evaluation + plan.refreshes * plan.seconds_per_refresh
    assert plan.seconds == pytest.approx(training + between)


def test_a_plan_reads_as_one_line_a_fact() -> None:
    lines = make_plan(small_run()).lines()
    assert lines[0].startswith("8 steps to find the start, ")
    assert lines[1].startswith("12 steps after that, ")
    assert lines[2].startswith("6 dev evaluations, ")
    assert lines[-1] == "label budget: 124 gold labels (24 to train, 100 dev)"


def test_without_dev_no_evaluation_is_planned() -> None:
    plan = make_plan(small_run(data=small_data(dev=False)))
    assert (plan.evaluations, plan.seconds_per_evaluation) == (0, 0.0)
    assert "no dev set: no dev evaluations" in plan.lines()


def test_hours_are_spoken() -> None:
    assert [format_duration(seconds) for seconds in (20, 600, 7200)] == ["20 seconds", "10 minutes", "2 hours"]
