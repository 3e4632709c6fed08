"""What a run would do, before it does it: steps, labels, and time and memory measured on a few of its steps."""

import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from drift.data.budget import LabelBudget
from drift.training.evaluation import evaluate
from drift.training.seeding import seeded
from drift.training.trainer import Trainer

TIMED = 3  # steps of each phase, after one that is not counted


@dataclass(frozen=True)
class Plan:
    """Steps of both phases, seconds a step, seconds a look at dev, the estimate of it all, and the peak of memory."""

    initial_steps: int
    steps: int
    budget: LabelBudget
    seconds_a_step: tuple[float, float]
    looks: int
    seconds_a_look: float
    memory: float  # gigabytes
    refreshes: int = 0  # of what the method knows of all unlabelled rows
    seconds_a_refresh: float = 0.0
    notes: Sequence[str] = ()  # what a user should know of the data

    @property
    def seconds(self) -> float:
        first, second = self.seconds_a_step
        looking = self.looks * self.seconds_a_look + self.refreshes * self.seconds_a_refresh
        return self.initial_steps * first + self.steps * second + looking

    def lines(self) -> list[str]:
        first, second = self.seconds_a_step
        return [
            f"{self.initial_steps} steps to find the start, {first:.3g} s each",
            f"{self.steps} steps after that, {second:.3g} s each",
            f"{self.looks} looks at dev, {self.seconds_a_look:.3g} s each"
            if self.looks
            else "no dev set: no looks at it",
            *(
                [f"{self.refreshes} looks at all unlabelled rows, {self.seconds_a_refresh:.3g} s each"]
                if self.refreshes
                else []
            ),
            f"about {format_duration(self.seconds)} of training, and {self.memory:.1f} GB of memory at the peak so far",
            f"label budget: {self.budget}",
            *self.notes,
        ]


def make_plan(trainer: Trainer) -> Plan:
    """Take a few steps of both phases and a look at dev; the trainer is of no use afterwards."""
    seconds, a_refresh = [], 0.0
    every = trainer.method.refresh_every
    refreshes = -(-trainer.lengths[1] // every) if every else 0
    with seeded(trainer.settings.seed):
        for at, length in enumerate(trainer.lengths):
            trainer.enter(at)
            if at and refreshes:
                began = time.perf_counter()
                trainer.refresh()
                a_refresh = time.perf_counter() - began
            seconds.append(_timed(trainer) if length else 0.0)
        looks, a_look = 0, 0.0
        if trainer.data.dev is not None:
            looks = sum(-(-length // trainer.settings.evaluate_every) for length in trainer.lengths) + 1
            began = time.perf_counter()
            evaluate(trainer.method, trainer.data.dev, trainer.score, trainer.machine, trials=trainer.trials)
            a_look = time.perf_counter() - began
    initial_steps, steps = trainer.lengths
    return Plan(
        initial_steps,
        steps,
        trainer.data.budget,
        (seconds[0], seconds[1]),
        looks,
        a_look,
        _peak(trainer),
        refreshes,
        a_refresh,
    )


def _timed(trainer: Trainer) -> float:
    """Seconds a step of the phase that was entered, the median of a few."""
    phase = trainer.phase()
    times = []
    for step in range(1 + TIMED):
        began = time.perf_counter()
        phase.run([step + 1])
        times.append(time.perf_counter() - began)
    return sorted(times[1:])[TIMED // 2]


def _peak(trainer: Trainer) -> float:
    if trainer.machine.device.type == "cuda":
        return torch.cuda.max_memory_allocated(trainer.machine.device) / 1e9
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def format_duration(seconds: float) -> str:
    """A duration in the unit one would use."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.3g} hours"
