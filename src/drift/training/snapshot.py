"""The complete state of a run at one moment, from which it continues bit for bit."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from drift.core.randomness import random_state, set_random_state
from drift.training.callbacks import PHASES
from drift.training.sharding import local, wrapped_for, wrapped_like

if TYPE_CHECKING:
    from drift.training.trainer import Trainer


def take(run: "Trainer") -> tuple[dict[str, Any], dict[str, Any]]:
    """The state that all processes share, and the state of this process: its random numbers and, if sharded, shards."""
    own: dict[str, Any] = {"random": random_state()}
    weights = local(
        {
            "student": dict(run.method.student.state_dict()),
            "method": run.method.state_dict(),
            "optimizer": run.optimizer.state_dict(),
            "selection": run.selection.state_dict(),
            "start": run.start.state_dict(),
        }
    )
    shared = {
        "at": PHASES.index(run.state.phase),
        "step": run.state.step,
        "taken": run.state.total_steps,
        "seconds": run.seconds,
        # The schedule's function of the step is not saved: it is built from the settings.
        "schedule": {name: value for name, value in run.schedule.state_dict().items() if name != "lr_lambdas"},
        "feed": run.feed.state_dict(),
        "places": run.places,
        "start_scores": run.start_scores,
        "first_classes": run.first_classes,
        "guard": run.guard.average,
        "trace": run.trace.mark(),
        "machine": run.machine.state_dict(),
        "stop": run.state.stop,
        "convergence": run.convergence.state_dict(),
        "callbacks": _callback_states(run),
    }
    return (shared, {**own, **weights}) if run.machine.sharded else ({**shared, **weights}, own)


def put_back(run: "Trainer", shared: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Restore a run, which has entered the same phase, to its state when `take` was called."""
    weights = own if run.machine.sharded else shared
    student = run.method.student
    student.load_state_dict(wrapped_like(weights["student"], dict(student.state_dict())))
    run.method.load_state_dict(wrapped_like(weights["method"], run.method.state_dict()))
    run.optimizer.load_state_dict(wrapped_for(weights["optimizer"], run.optimizer))
    run.selection.load_state_dict(weights["selection"])
    if "start" in weights:  # checkpoints of 0.1 do not have it
        run.start.load_state_dict(weights["start"])
    run.state.step, run.state.total_steps = shared["step"], shared["taken"]
    run.state.stop = shared.get("stop", False)
    run.state.best_score = run.selection.scores.mean().item()
    run.seconds_before = shared["seconds"]
    run.schedule.load_state_dict({**shared["schedule"], "lr_lambdas": [None] * len(run.schedule.lr_lambdas)})
    run.draw_from(shared["places"])
    run.feed.load_state_dict(shared["feed"])
    run.start_scores, run.guard.average = shared["start_scores"], shared["guard"]
    run.first_classes = shared["first_classes"]
    run.trace.rewind(shared["trace"])
    run.machine.load_state_dict(shared["machine"])
    if "convergence" in shared:  # checkpoints of 0.1 do not have it, and their phases have fixed lengths
        run.convergence.load_state_dict(shared["convergence"])
    states = {name: list(saved) for name, saved in shared.get("callbacks", {}).items()}
    for callback in run.user_callbacks:
        if remaining := states.get(type(callback).__name__):
            callback.load_state_dict(remaining.pop(0))
    set_random_state(own["random"])


def _callback_states(run: "Trainer") -> dict[str, list[dict[str, Any]]]:
    """The states of the user's callbacks by class, so that a resume with other callbacks restores those it knows."""
    states: dict[str, list[dict[str, Any]]] = {}
    for callback in run.user_callbacks:
        states.setdefault(type(callback).__name__, []).append(callback.state_dict())
    return states
