"""Checkpoints that survive a crash at any moment: complete or absent, verified when read; the newest are kept.

A checkpoint is a folder `step-000000100` with the tensors in safetensors and everything else in JSON, with a checksum
of both. Nothing in it is pickled. What belongs to one process (random states; all of a sharded model) is in a pair of
files per process: no process gathers the whole.
"""

import hashlib
import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from drift.data.files import atomic_folder
from drift.errors import FileError, Interrupted, StateError
from drift.training.callbacks import Callback, TrainingState
from drift.training.devices import SingleProcess
from drift.training.interrupt import Interrupt
from drift.training.packing import pack, unpack

FORMAT = "drift-checkpoint/2"
TENSORS, CONTENT = "state.safetensors", "state.json"
CHECKPOINTS = "checkpoints"  # folder inside a run's folder


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was read: its step, the state that processes share, and the state of this process."""

    step: int
    state: Any
    own: Any = None


class Checkpoints:
    """The checkpoints of one run.

    folder: where they are; created when first needed. keep: how many of the newest to keep.
    fingerprint: identifies the run, such as a hash of its configuration; checkpoints of other runs are refused.
    """

    def __init__(
        self, folder: Path, *, keep: int = 2, fingerprint: str = "", machine: SingleProcess | None = None
    ) -> None:
        self.folder, self.keep, self.fingerprint = folder, keep, fingerprint
        self.machine = machine or SingleProcess()

    def save(self, step: int, state: Any, own: Any = None) -> Path:
        """Write the state after `step`, then delete older checkpoints.

        state: shared by all processes; the first one writes it. own: the state of this process.
        """
        target = self.folder / f"step-{step:09d}"
        try:
            if self.machine.process == 0:
                with atomic_folder(target) as aside:
                    self.machine.gather(str(aside))
                    self._write(aside, "", step, state)
                    self._write_own(aside, step, own)
                for folder in list(self._newest_first())[self.keep :]:
                    shutil.rmtree(folder)
            else:
                self._write_own(Path(self.machine.gather(None)[0]), step, own)
            self.machine.gather(None)  # no process continues before it is complete
        except (OSError, SafetensorError) as error:
            newest = next(self._newest_first(), None)
            kept = f"{newest.name} is kept" if newest else "there is no earlier one"
            raise FileError(f"checkpoint {target.name} could not be written ({error}); {kept}") from error
        return target

    def newest(self) -> Checkpoint | None:
        """The newest complete checkpoint; damaged ones are skipped with a warning. None if there is none at all."""
        if self.machine.process == 0:
            self._sweep()
        self.machine.gather(None)
        damaged: list[str] = []
        for folder in self._newest_first():
            checkpoint, fault = None, ""
            try:
                checkpoint = self.read(folder)
            except FileError as error:
                fault = str(error)
            faults = [each for each in self.machine.gather(fault) if each]
            if checkpoint is None or faults:  # all processes continue from the same one
                damaged.extend(faults)
                continue
            for message in damaged:
                warnings.warn(f"{message}; continuing from {folder.name}", stacklevel=2)
            return checkpoint
        if damaged:
            raise FileError(f"no complete checkpoint: {'; '.join(damaged)}; delete {self.folder} to start again")
        return None

    def read(self, folder: Path) -> Checkpoint:
        """Read and verify a checkpoint: FileError if it is damaged, StateError if it belongs to another run."""
        step, state = self._read(folder, "")
        _, own = self._read(folder, f"process-{self.machine.process}-")
        return Checkpoint(step, state, own)

    def _write_own(self, aside: Path, step: int, own: Any) -> None:
        """Write the state of every process; an error of one is raised in all, so that none waits forever."""
        fault = ""
        try:
            self._write(aside, f"process-{self.machine.process}-", step, own)
        except (OSError, SafetensorError) as error:
            fault = str(error) or type(error).__name__
        if faults := [each for each in self.machine.gather(fault) if each]:
            raise OSError(faults[0])

    def _write(self, aside: Path, prefix: str, step: int, state: Any) -> None:
        packed, tensors = pack(state)
        save_file(tensors, aside / (prefix + TENSORS))
        content = {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "processes": self.machine.processes,
            "step": step,
            "sha256": _checksum(aside / (prefix + TENSORS), packed),
            "state": packed,
        }
        (aside / (prefix + CONTENT)).write_text(json.dumps(content), encoding="utf-8")

    def _read(self, folder: Path, prefix: str) -> tuple[int, Any]:
        try:
            content = json.loads((folder / (prefix + CONTENT)).read_text(encoding="utf-8"))
            if content["format"] != FORMAT:
                raise FileError(f"{folder} is {content['format']!r}, not {FORMAT}")
            if content["processes"] != self.machine.processes:
                raise StateError(
                    f"{folder} is of a run over {content['processes']} processes, this one has"
                    f" {self.machine.processes}; resume with as many, or use a new folder"
                )
            if content["sha256"] != _checksum(folder / (prefix + TENSORS), content["state"]):
                raise FileError(f"{folder} is damaged: it does not have the checksum it was written with")
            state = unpack(content["state"], load_file(folder / (prefix + TENSORS)))
        except (FileError, StateError):
            raise
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise FileError(f"{folder} is damaged ({type(error).__name__}: {error})") from error
        if content["fingerprint"] != self.fingerprint:
            raise StateError(
                f"{folder} is of a run with other settings; resume with the same ones, or use a new folder"
            )
        return content["step"], state

    def _newest_first(self) -> Iterator[Path]:
        yield from sorted(self.folder.glob("step-*"), reverse=True)

    def _sweep(self) -> None:
        """Delete what a crash during writing left behind: names that begin with a dot."""
        for leftover in self.folder.glob(".step-*"):
            shutil.rmtree(leftover)


class Checkpointer(Callback):
    """Saves a checkpoint after every `every` steps, at the end of a phase, and when the user asks the run to stop.

    checkpoints: where they go; None writes nothing. take: returns the shared and the own state of this process.
    resume: the command that continues the run, for the message of an interrupted one.
    """

    def __init__(
        self,
        checkpoints: Checkpoints | None,
        machine: SingleProcess,
        *,
        every: int,
        take: Callable[[], tuple[Any, Any]],
        resume: str | None,
    ) -> None:
        self.checkpoints, self.machine, self.every, self.take, self.resume = checkpoints, machine, every, take, resume
        self.interrupt = Interrupt()

    def newest(self) -> Checkpoint | None:
        """The checkpoint to continue from; None if there is none."""
        return None if self.checkpoints is None else self.checkpoints.newest()

    def save(self, state: TrainingState) -> None:
        """Write a checkpoint now."""
        if self.checkpoints is not None:
            self.checkpoints.save(state.total_steps, *self.take())

    def on_step_end(self, state: TrainingState) -> None:
        # The flags of all processes: either all of them save and stop, or none.
        interrupted, state.stop = self.machine.any(self.interrupt.asked, state.stop)
        if state.step % self.every == 0 or state.step == state.last_step or interrupted or state.stop:
            self.save(state)
        if interrupted:
            where = f"stopped in the {state.phase} phase, step {state.step} of {state.last_step}"
            if self.resume is None:
                raise Interrupted(f"{where}; nothing was saved, as the run has no folder")
            raise Interrupted(f"{where}, and saved; continue with {self.resume}")


def _checksum(tensors: Path, packed: Any) -> str:
    with tensors.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    digest.update(json.dumps(packed).encode())
    return digest.hexdigest()
