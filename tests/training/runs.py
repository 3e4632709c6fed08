"""Small runs that tests share: three clouds of points, few labels, a network of one hidden layer."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from drift.data.examples import Batch, Labeled, Unlabeled, Vectors
from drift.methods import METHODS
from drift.models.mlp import mlp
from drift.tasks.scoring import classification_scores
from drift.training.callbacks import Callback, TrainingState
from drift.training.data import TrainingData
from drift.training.devices import SingleProcess
from drift.training.packing import pack
from drift.training.run_folder import RunFolder
from drift.training.settings import TrainingSettings
from drift.training.trainer import Trainer

CLASSES, FEATURES = 3, 4
SETTINGS: dict[str, Any] = dict(
    initial_steps=8,
    steps=12,
    batch_size=8,
    unlabeled_batch_size=16,
    learning_rate=0.02,
    evaluate_every=5,
    trace_every=4,
    checkpoint_every=7,
    trackers=(),
)


def clouds(rows: int = 240) -> tuple[Tensor, Tensor]:
    """Points around a centre a class, near enough to be mistaken for one another, and their classes."""
    draw = torch.Generator().manual_seed(5)
    centres = torch.randn(CLASSES, FEATURES, generator=draw)
    y = torch.randint(0, CLASSES, (rows,), generator=draw)
    return centres[y] + 0.8 * torch.randn(rows, FEATURES, generator=draw), y


def small_data(*, dev: bool = True, weak: bool = False, gold: bool = False, double: bool = False) -> TrainingData:
    """24 labelled rows, 116 without labels, 100 to choose by. weak: every row is in the second phase."""
    x, y = clouds()
    examples, rows = Vectors(x.double() if double else x), torch.arange(len(x))
    unlabeled = rows[:140] if weak else rows[24:140]
    return TrainingData(
        Labeled(examples, rows[:24], y[:24]),
        Unlabeled(examples, unlabeled, y[unlabeled] if gold else None),
        Labeled(examples, rows[140:], y[140:]) if dev else None,
        weak=weak,
    )


def small_student(*, dropout: float = 0.0, seed: int = 0) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return mlp(FEATURES, CLASSES, (8,), dropout=dropout)


def small_run(
    folder: Path | None = None,
    *,
    student: nn.Module | None = None,
    data: TrainingData | None = None,
    method: str = "drift",
    kind: type[Trainer] = Trainer,
    seeds: tuple[int, ...] | None = None,
    machine: SingleProcess | None = None,
    callbacks: Sequence[Callback] = (),
    played: dict[str, Any] | None = None,
    prepared_in: float = 0.0,
    **settings: Any,
) -> Trainer:
    """A trainer, ready to run; with a folder that exists already, ready to resume. played: the method's settings."""
    resolved = TrainingSettings(**{**SETTINGS, **settings})
    machine = machine or SingleProcess()
    place = None if folder is None else RunFolder(folder)
    if place is not None:
        if machine.process == 0:
            place.begin({"training": resolved.model_dump(), "method": method}, resume=place.path.exists())
        machine.gather(None)
    return kind(
        small_student() if student is None else student,
        data or small_data(),
        resolved,
        METHODS[method],
        METHODS[method].settings_type(**(played or {})),
        classification_scores,
        seeds=seeds,
        machine=machine,
        folder=place,
        callbacks=callbacks,
        prepared_in=prepared_in,
    )


def weights(module: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def dev_looks(entries: list[dict[str, Any]], phase: str) -> list[dict[str, Any]]:
    return [entry for entry in entries if entry["phase"] == phase and "dev" in entry]


class Seen(Trainer):
    """A run that keeps every batch, and the student after every step of the second phase."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.batches: tuple[list[Batch], list[Batch]] = ([], [])
        self.students: dict[int, Tensor] = {}
        run = self

        class Recorder(Callback):
            def on_backward_end(self, state: TrainingState) -> None:
                run.batches[state.playing].extend(state.batches)

            def on_step_end(self, state: TrainingState) -> None:
                if state.playing:
                    run.students[state.step] = weights(state.method.student)

        self.callbacks.insert(0, Recorder())


class Stopped(Trainer):
    """A run that is asked to stop after so many steps, as by Ctrl-C."""

    after = 0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        run = self

        class AskToStop(Callback):
            def on_step_end(self, state: TrainingState) -> None:
                if state.total_steps == run.after and run.machine.process == 0:
                    run.checkpointer.interrupt.asked = True

        super().__init__(*arguments, **{**options, "callbacks": [*options.get("callbacks", ()), AskToStop()]})


def stopped_after(steps: int) -> type[Trainer]:
    return type("Stopped", (Stopped,), {"after": steps})


def final_state(run: Trainer) -> dict[str, Any]:
    """What a run came to: everything but the time it took."""
    return {
        "student": dict(run.method.student.state_dict()),
        "method": run.method.state_dict(),
        "optimizer": run.optimizer.state_dict(),
        "selection": run.selection.state_dict(),
        "trace": run.trace.entries,
    }


def same_bits(one: Any, other: Any) -> bool:
    (tree, tensors), (other_tree, other_tensors) = pack(one), pack(other)
    return json.dumps(tree) == json.dumps(other_tree) and all(
        torch.equal(tensor, other_tensors[name]) for name, tensor in tensors.items()
    )
