"""When a phase ends: after a fixed number of steps, or when it has converged; in either case when time is up.

The start has converged when its loss has reached a plateau. In the game the loss says little, because its target, the
pseudo-labels, moves: the game has converged when the predicted classes of a fixed sample of unlabelled rows no longer
drift. Some rows change back and forth for as long as a student is trained with dropout; the classes drift as long as
they differ more from those of two checks ago than from those of the last check.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict
from torch import Tensor

from drift.methods.method import Method
from drift.training.callbacks import Callback, TrainingState
from drift.training.flips import watched_classes
from drift.training.plateau import STABLE, Plateau

if TYPE_CHECKING:
    from drift.training.trainer import Trainer

Reason = Literal["converged", "maximum", "steps", "minutes", "patience", "callback"]

WATCHED = 512  # unlabelled rows whose classes are compared: the first
BEGUN = 0.9  # a start whose loss is above this part of its first loss has not learned anything yet
RAMPS = ("ramp_steps", "annealing_steps")  # settings of methods whose loss changes over so many steps of the game
LEAST_TRAINING = 0.25  # of the minutes, if embedding or the lower layers take longer than the rest
MEMORY = 2  # the teacher averages over 1/(1-α) steps; this many times that long, it lags behind its student
TEXTS: Mapping[str, str] = {
    "converged": "converged after {} steps",
    "maximum": "stopped at the maximum, {} steps; more might help",
    "steps": "{} steps, as set",
    "minutes": "stopped after {} steps, when the time was up (training.minutes); more might help",
    "patience": "stopped after {} steps: dev had not improved for a while (training.patience)",
    "callback": "stopped after {} steps by a callback",
}


@dataclass(frozen=True)
class PhaseEnd:
    """Why a phase ended, and after how many steps."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    phase: str
    steps: int
    reason: Reason

    def __str__(self) -> str:
        return f"{self.phase}: {TEXTS[self.reason].format(f'{self.steps:,}')}"


def changed_share(before: Tensor, after: Tensor) -> float:
    """The share of rows that changed class, among those that are not in the commonest class at both times.

    Without the others, changes of rare classes count fully: of names among words, or of spam among messages.
    """
    commonest = after.flatten().mode().values
    others = (before != commonest) | (after != commonest)
    return int((before != after).sum()) / max(1, int(others.sum()))


def least_game_steps(method: Method) -> int:
    """Steps of the game before it can have converged: until ramps end and the teacher has moved away from θinit."""
    ramps = [int(getattr(method.settings, name, 0)) for name in RAMPS]
    alpha = getattr(method.settings, "alpha", 0.0)
    memory = math.ceil(MEMORY / (1 - alpha)) if method.has_teacher and alpha < 1 else 0
    return max(memory, *ramps)


def seconds_to_train(run: "Trainer") -> float:
    """What `training.minutes` leaves to both phases after the preparation; never less than `LEAST_TRAINING` of it."""
    seconds = 60 * (run.settings.minutes or math.inf)
    return max(seconds - run.prepared_in, LEAST_TRAINING * seconds)


class Convergence(Callback):
    """Ends phases, and records why each ended. All processes come to the same decision.

    ends: one entry per phase that has ended.
    """

    def __init__(self, run: "Trainer") -> None:
        self.run = run
        self.ends: list[PhaseEnd] = []
        self.plateau = Plateau(run.settings.window, run.settings.tolerance, begun=BEGUN)
        self.classes: list[Tensor] = []  # of the sample, at the last two checks
        self.stable = 0  # checks in a row in which the classes did not drift
        self.reason: Reason | None = None
        self.entered_at = 0.0  # seconds of training at the beginning of the phase

    def enter(self) -> None:
        """Begin a phase."""
        self.plateau.reset()
        self.entered_at = self.run.seconds
        self.classes, self.stable, self.reason = [], 0, None

    def on_step_end(self, state: TrainingState) -> None:
        settings = self.run.settings
        if settings.until == "converged" and self._converged(state):
            self.reason = "converged"
        elif settings.minutes is not None and self.run.machine.any(self.spent() >= 1)[0]:
            self.reason = "minutes"
        state.stop = state.stop or self.reason is not None

    def on_phase_end(self, state: TrainingState) -> None:
        if not state.last_step:  # there is no such phase
            return
        reason = self.reason
        if reason is None and state.step >= state.last_step:
            reason = "maximum" if self.run.settings.until == "converged" else "steps"
        reason = reason or ("patience" if self.run.selection.exhausted else "callback")
        self.ends = [end for end in self.ends if end.phase != state.phase]
        self.ends.append(PhaseEnd(state.phase, state.step, reason))

    def _converged(self, state: TrainingState) -> bool:
        unlabeled = self.run.data.unlabeled
        if not state.playing or unlabeled is None:
            return self.plateau.add(state.loss)
        if state.step % self.run.settings.window:
            return False
        classes = watched_classes(self.run.method, unlabeled, self.run.machine, WATCHED)
        if len(self.classes) == 2:
            long_ago, lately = (changed_share(earlier, classes) for earlier in self.classes)
            self.stable = self.stable + 1 if long_ago - lately <= self.run.settings.tolerance else 0
        self.classes = [*self.classes[-1:], classes]
        return self.stable >= STABLE and state.step >= least_game_steps(self.run.method)

    def spent(self) -> float:
        """The share of the phase's time that has passed; 0 without a time limit.

        The start may use half of the time, if a game follows; the game may use all that is left.
        """
        run = self.run
        if run.settings.minutes is None:
            return 0.0
        limit = seconds_to_train(run) * (1.0 if run.state.playing or not run.lengths[1] else 0.5) + run.observed_in
        return (run.seconds - self.entered_at) / max(1e-9, limit - self.entered_at)

    def state_dict(self) -> dict[str, Any]:
        return {
            "plateau": self.plateau.state_dict(),
            "classes": self.classes,
            "stable": self.stable,
            "reason": self.reason,
            "entered_at": self.entered_at,
            "ends": [vars(end) for end in self.ends],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.plateau.load_state_dict(state["plateau"])
        self.classes, self.stable, self.reason = state["classes"], state["stable"], state["reason"]
        self.entered_at = state.get("entered_at", 0.0)
        self.ends = [PhaseEnd(**end) for end in state["ends"]]
