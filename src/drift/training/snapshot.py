"""All that a run is made of at one moment, to go on from to the bit."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from drift.core.randomness import random_state, set_random_state
from drift.training.sharding import local, wrapped_for, wrapped_like

if TYPE_CHECKING:
    from drift.training.trainer import Trainer


def take(run: "Trainer") -> tuple[dict[str, Any], dict[str, Any]]:
    """The state that all processes share, and this process's own: its random numbers and, if sharded, its shards."""
    own: dict[str, Any] = {"random": random_state()}
    weights = local(
        {
            "student": dict(run.method.student.state_dict()),
            "method": run.method.state_dict(),
            "optimizer": run.optimizer.state_dict(),
            "selection": run.selection.state_dict(),
        }
    )
    shared = {
        "at": run.at,
        "step": run.step,
        "taken": run.taken,
        "seconds": run.seconds,
        # A schedule is a function of the step; the function itself is made anew.
        "schedule": {name: value for name, value in run.schedule.state_dict().items() if name != "lr_lambdas"},
        "feed": run.feed.state_dict(),
        "places": run.places,
        "start_scores": run.start_scores,
        "first_classes": run.first_classes,
        "guard": run.guard.average,
        "trace": run.trace.mark(),
        "machine": run.machine.state_dict(),
    }
    return (shared, {**own, **weights}) if run.machine.sharded else ({**shared, **weights}, own)


def put_back(run: "Trainer", shared: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Make a run that has entered the same phase what it was when `take` was called."""
    weights = own if run.machine.sharded else shared
    student = run.method.student
    student.load_state_dict(wrapped_like(weights["student"], dict(student.state_dict())))
    run.method.load_state_dict(wrapped_like(weights["method"], run.method.state_dict()))
    run.optimizer.load_state_dict(wrapped_for(weights["optimizer"], run.optimizer))
    run.selection.load_state_dict(weights["selection"])
    run.step, run.taken, run.spent = shared["step"], shared["taken"], shared["seconds"]
    run.schedule.load_state_dict({**shared["schedule"], "lr_lambdas": [None] * len(run.schedule.lr_lambdas)})
    run.draw_from(shared["places"])
    run.feed.load_state_dict(shared["feed"])
    run.start_scores, run.guard.average = shared["start_scores"], shared["guard"]
    run.first_classes = shared["first_classes"]
    run.trace.rewind(shared["trace"])
    run.machine.load_state_dict(shared["machine"])
    set_random_state(own["random"])
