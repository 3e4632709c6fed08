"""What a run would do, without doing it: steps, labels, and time and memory measured on a few steps."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from drift.data.labels import LabelBudget
from drift.training.convergence import seconds_to_train
from drift.training.evaluation import evaluate
from drift.training.seeding import seeded
from drift.training.trainer import Trainer

TIMED = 3  # steps of each phase, after one that is not counted


@dataclass(frozen=True)
class Plan:
    """The plan of a run.

    initial_steps, steps: steps of the two phases. seconds_per_step: of each phase.
    evaluations, seconds_per_evaluation: dev evaluations and their time.
    refreshes, seconds_per_refresh: how often the method reads all unlabelled rows, and the time that takes.
    memory: peak memory so far, in GB.
    at_most: phases end when they have converged, or time is up; steps and evaluations are the maxima.
    minutes: `training.minutes`, which limits the steps here too; None without a limit.
    notes: what a user should know about the data.
    """

    initial_steps: int
    steps: int
    budget: LabelBudget
    seconds_per_step: tuple[float, float]
    evaluations: int
    seconds_per_evaluation: float
    memory: float
    refreshes: int = 0
    seconds_per_refresh: float = 0.0
    notes: Sequence[str] = ()
    at_most: bool = False
    minutes: float | None = None

    @property
    def seconds(self) -> float:
        """Estimated time of the whole training."""
        first, second = self.seconds_per_step
        training = self.initial_steps * first + self.steps * second
        between = self.evaluations * self.seconds_per_evaluation + self.refreshes * self.seconds_per_refresh
        return training + between

    def lines(self) -> list[str]:
        """The plan for a reader, one fact per line."""
        first, second = self.seconds_per_step
        most = "at most " if self.at_most else ""
        lines = [
            f"{most}{self.initial_steps} steps to find the start, {first:.3g} s each",
            f"{most}{self.steps} steps after that, {second:.3g} s each",
            f"{most}{self.evaluations} dev evaluations, {self.seconds_per_evaluation:.3g} s each"
            if self.evaluations
            else "no dev set: no dev evaluations",
        ]
        if not self.initial_steps:
            lines[:2] = [f"{most}{self.steps} steps, {second:.3g} s each"]
        if self.refreshes:
            lines.append(
                f"{most}{self.refreshes} passes over all unlabelled rows, {self.seconds_per_refresh:.3g} s each"
            )
        about = most or "about "
        lines.append(f"{about}{format_duration(self.seconds)} of training; peak memory so far {self.memory:.1f} GB")
        if self.minutes is not None:
            lines.append(f"these steps fit into training.minutes={self.minutes:g}, with the preparation")
        return [*lines, f"label budget: {self.budget}", *self.notes]


def make_plan(trainer: Trainer) -> Plan:
    """Time a few steps of both phases and one dev evaluation; the trainer cannot be used afterwards."""
    seconds, per_refresh = [], 0.0
    every = trainer.method.refresh_every
    refreshes = -(-trainer.lengths[1] // every) if every else 0
    with seeded(trainer.settings.seed):
        for at, length in enumerate(trainer.lengths):
            trainer.enter(at)
            if at and refreshes:
                began = time.perf_counter()
                trainer.refresh()
                per_refresh = time.perf_counter() - began
            seconds.append(_seconds_per_step(trainer) if length else 0.0)
        lengths = _fitting(trainer, seconds)
        evaluations, per_evaluation = 0, 0.0
        if trainer.data.dev is not None:
            evaluations = sum(-(-length // trainer.settings.evaluate_every) for length in lengths) + 1
            began = time.perf_counter()
            evaluate(trainer.method, trainer.data.dev, trainer.score, trainer.machine, trials=trainer.trials)
            per_evaluation = time.perf_counter() - began
    initial_steps, steps = lengths
    return Plan(
        initial_steps,
        steps,
        trainer.data.budget,
        (seconds[0], seconds[1]),
        evaluations,
        per_evaluation,
        peak_memory(trainer.machine.device),
        refreshes,
        per_refresh,
        at_most=trainer.settings.until == "converged" or trainer.settings.minutes is not None,
        minutes=trainer.settings.minutes,
    )


def _fitting(trainer: Trainer, seconds: Sequence[float]) -> tuple[int, int]:
    """Steps of both phases that fit into `training.minutes`; at least one each. seconds: per step."""
    if trainer.settings.minutes is None:
        return trainer.lengths
    left, lengths = seconds_to_train(trainer), []
    for length, each, share in zip(trainer.lengths, seconds, (0.5 if trainer.lengths[1] else 1.0, 1.0), strict=True):
        steps = length if each <= 0 else min(length, max(1, int(share * left / each)))
        lengths.append(steps)
        left -= steps * each
    return lengths[0], lengths[1]


def _seconds_per_step(trainer: Trainer) -> float:
    """Seconds per step of the phase that was entered: the median of a few."""
    phase = trainer.phase()
    times = []
    for step in range(1 + TIMED):
        began = time.perf_counter()
        phase.run([step + 1])
        times.append(time.perf_counter() - began)
    return sorted(times[1:])[TIMED // 2]


def peak_memory(device: torch.device | None = None) -> float:
    """Peak memory of this process so far, in GB: of the GPU if `device` is one. 0 where the system does not say."""
    if device is not None and device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e9
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def format_duration(seconds: float) -> str:
    """A duration in the unit a person would use: "20 seconds", "10 minutes", "2 hours"."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.3g} hours"
