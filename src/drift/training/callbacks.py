"""Callbacks: what happens around the steps of a run. Progress, trace, checkpoints and pruning are callbacks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drift.data.examples import Batch
from drift.methods.method import Method

START, GAME = PHASES = ("start", "game")


@dataclass
class TrainingState:
    """Where a run stands. Every callback of a run receives the same object.

    method: what is trained; `method.student` is the module.
    phase: "start" while the run looks for θinit, then "game".
    step: the step in the phase, counted from 1; 0 before the first.
    last_step: number of steps planned for the phase.
    total_steps: steps taken in both phases together.
    loss: loss of the current step, a mean over all processes.
    batches: micro-batches of the current step, as this process sees them.
    best_score: mean over trials of the best dev score so far in this phase; -inf without a dev set.
    stop: a callback sets this to True, on any process, to end the phase after the current step.
    """

    method: Method
    phase: str = START
    step: int = 0
    last_step: int = 0
    total_steps: int = 0
    loss: float = math.nan
    batches: Sequence[Batch] = ()
    best_score: float = -math.inf
    stop: bool = False

    @property
    def playing(self) -> bool:
        """Whether the run is in its second phase."""
        return self.phase == GAME


class Callback:
    """Hooks into a run; override what you need. Hooks run on every process, in the order the callbacks were given.

    An exception raised in a hook ends the run; `on_run_end` is still called.
    """

    def on_run_begin(self, state: TrainingState) -> None:
        """Training starts, or continues after a resume."""

    def on_phase_begin(self, state: TrainingState) -> None:
        """A phase starts, or continues after a resume: `state.step` steps of it have been taken."""

    def on_backward_end(self, state: TrainingState) -> None:
        """The gradients of `state.step` are complete; the student has not moved yet."""

    def on_step_end(self, state: TrainingState) -> None:
        """Student and teacher have moved."""

    def on_log(self, state: TrainingState, entry: Mapping[str, Any]) -> None:
        """An entry for the trace: phase, step, loss, learning rate, and the method's diagnostics in the game."""

    def on_evaluate(self, state: TrainingState, scores: Sequence[Mapping[str, float]]) -> None:
        """The student was scored on dev. scores: one dictionary per trial; the first score is selected by."""

    def on_phase_end(self, state: TrainingState) -> None:
        """The last step of the phase has been taken."""

    def on_run_end(self, state: TrainingState) -> None:
        """The run is over: finished, interrupted, or ended by an error."""

    def state_dict(self) -> dict[str, Any]:
        """What it takes to continue exactly after a resume: numbers, strings, lists and tensors.

        With several processes, the state of the first one is saved and restored in all of them.
        """
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned."""


def mean_scores(scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean over trials of every score."""
    return {name: sum(trial[name] for trial in scores) / len(scores) for name in scores[0]}
