"""Whole runs, alone or over processes; started by launchers from test_devices.py, not a test itself.

    torchrun --nproc-per-node 2 tests/training/spread_training.py FOLDER CASE...

writes the final weights of both players to FOLDER/result.safetensors and leaves the runs of resumed cases beside it.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import Tensor

from drift.data.examples import Labeled, Unlabeled, Vectors
from drift.errors import Interrupted, StateError
from drift.training.callbacks import Callback, TrainingState
from drift.training.data import TrainingData
from drift.training.devices import Accelerated, SingleProcess, leave
from drift.training.trainer import Trainer
from tests.training.runs import clouds, small_run, small_student, stopped_after


class LastProcessStops(Callback):
    """Ends the game after 5 steps; only the last process asks for it."""

    def on_step_end(self, state: TrainingState) -> None:
        last = int(os.environ.get("RANK", "0")) == int(os.environ.get("WORLD_SIZE", "1")) - 1
        state.stop = state.stop or (last and state.playing and state.step == 5)


# Batches that divide neither by two processes nor by two pieces.
PLAIN: dict[str, Any] = dict(optimizer="sgd", learning_rate=0.2, batch_size=9, unlabeled_batch_size=17)
EXACT: dict[str, Any] = dict(accumulation=2, exact_accumulation=True)
CASES: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "clipped": {**PLAIN, "clip": 0.05},
    "exact": {**PLAIN, **EXACT},
    # Micro-batches of two processes are not those of one, and class masses would differ.
    "unbalanced": {**PLAIN, "played": {"class_mass": False}},
    "unbalanced-pieces": {**PLAIN, "played": {"class_mass": False}, "accumulation": 2},
    "self-training": {**PLAIN, "method": "self-training"},
    "shared": {**PLAIN, "clip": 0.05, "played": {"coupling": "shared"}},
    "shared-exact": {**PLAIN, "clip": 0.05, "played": {"coupling": "shared"}, **EXACT},
    "shared-unbalanced": {**PLAIN, "played": {"coupling": "shared", "class_mass": False}},
    "shared-pieces": {**PLAIN, "played": {"coupling": "shared", "class_mass": False}, "accumulation": 2},
    "bond": {**PLAIN, "method": "bond"},
    # Pairs are of other rows in two processes than in one.
    "cosine": {**PLAIN, "method": "cosine", "played": {"contrastive_weight": 0.0}},
    "mean-teacher": {**PLAIN, "method": "mean-teacher", "learning_rate": 0.02},
    "uda": {**PLAIN, "method": "uda"},
    "stopped": {**PLAIN, "callbacks": (LastProcessStops(),)},
    # Ends early in both phases, at steps that the weights and the trace depend on.
    "converged": {**PLAIN, "until": "converged", "initial_steps": 90, "steps": 90, "window": 5, "tolerance": 0.05},
    "uda-annealed": {**PLAIN, "method": "uda", "played": {"annealing": "linear"}},
}
RESUMED: dict[str, Any] = dict(optimizer="adamw", schedule="cosine", warmup_steps=2, clip=1.0)
STOPS = {"start": 5, "game": 13}  # steps after which a run is stopped, in either phase


def data() -> TrainingData:
    """A dev set of three batches: one process has a batch more to score than the other."""
    x, y = clouds(500)
    examples, rows = Vectors(x.double(), lengths=np.arange(500) % 7), torch.arange(500)
    return TrainingData(
        Labeled(examples, rows[:24], y[:24]), Unlabeled(examples, rows[24:200]), Labeled(examples, rows[200:], y[200:])
    )


def trainer(machine: SingleProcess, folder: Path | None = None, *, dropout: float = 0.0, **options: Any) -> Trainer:
    return small_run(folder, student=small_student(dropout=dropout).double(), data=data(), machine=machine, **options)


def players(run: Trainer) -> dict[str, Tensor]:
    """The weights of both, whole, by their plain names."""
    assert run.method.teacher is not None
    pairs = (("student", run.method.student), ("teacher", run.method.teacher))
    return {
        f"{player}.{name}": value.detach().clone()
        for player, module in pairs
        for name, value in run.machine.whole_state(module).items()
    }


def train(case: str, machine: SingleProcess) -> dict[str, Tensor]:
    run = trainer(machine, **CASES[case])
    outcome = run.run()
    assert outcome.best is not None
    assert outcome.best_steps is not None
    numbers = [outcome.best[0]["accuracy"], float(outcome.best_steps[0])]
    numbers += [entry["loss"] for entry in outcome.entries if "loss" in entry]
    return {**players(run), "chosen and traced": torch.tensor(numbers, dtype=torch.float64)}


def resumed(folder: Path, machine: SingleProcess) -> dict[str, Tensor]:
    """The same run in one go, and stopped and taken up again in each phase."""
    whole = trainer(machine, folder / "whole", dropout=0.3, **RESUMED)
    whole.run()
    found = {f"whole/{name}": value for name, value in players(whole).items()}
    for phase, after in STOPS.items():
        stopped = trainer(machine, folder / phase, dropout=0.3, kind=stopped_after(after), **RESUMED)
        try:
            stopped.run()
        except Interrupted:
            again = trainer(machine, folder / phase, dropout=0.3, **RESUMED)
            again.run(resume=True)
            found |= {f"{phase}/{name}": value for name, value in players(again).items()}
    return found


def diverged(folder: Path, machine: SingleProcess) -> None:
    """A run that breaks on one row, which one process alone has."""
    x, y = clouds(24)
    x[5] = torch.nan
    rows = torch.arange(24)
    broken = TrainingData(Labeled(Vectors(x), rows, y))
    run = small_run(folder / "diverged", data=broken, machine=machine, batch_size=24)
    with suppress(StateError):
        run.run()


if __name__ == "__main__":
    torch.set_num_threads(1)
    machine, out = Accelerated(), Path(sys.argv[1])
    result = {"sharded": torch.tensor(machine.sharded), "processes": torch.tensor(machine.processes)}
    for case in sys.argv[2:]:
        if case == "diverged":
            diverged(out, machine)
            continue
        found = resumed(out, machine) if case == "resumed" else train(case, machine)
        result |= {f"{case}/{name}": value for name, value in found.items()}
    if machine.process == 0:
        save_file({name: value.contiguous() for name, value in result.items()}, out / "result.safetensors")
    dist.barrier()
    leave()
