"""Checkpoints that survive a crash at any moment: whole or not there, checked when read, the last ones kept.

A checkpoint is a folder `step-000000100` with the tensors in safetensors and everything else in JSON, a checksum of
both included. Nothing in it is pickled. What is each process's own (random states; all of a sharded model) is in a pair
of files for each: no process gathers the whole.
"""

import hashlib
import json
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from drift.data.files import atomic_folder
from drift.errors import FileError, StateError
from drift.training.devices import SingleProcess
from drift.training.packing import pack, unpack

FORMAT = "drift-checkpoint/2"
TENSORS, CONTENT = "state.safetensors", "state.json"


@dataclass(frozen=True)
class Checkpoint:
    """What was read back: the step it was taken after, the state, and this process's own part."""

    step: int
    state: Any
    own: Any = None


class Checkpoints:
    """The checkpoints of one run.

    folder: where they are; made when first needed. keep: how many of the newest to keep.
    fingerprint: what the run is (its resolved configuration, say); a checkpoint of another one is refused.
    """

    def __init__(
        self, folder: Path, *, keep: int = 2, fingerprint: str = "", machine: SingleProcess | None = None
    ) -> None:
        self.folder, self.keep, self.fingerprint = folder, keep, fingerprint
        self.machine = machine or SingleProcess()

    def save(self, step: int, state: Any, own: Any = None) -> Path:
        """Write the state after `step`; then drop what is not among the newest.

        state: the first process's is written. own: each process's is.
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
            self.machine.gather(None)  # nobody goes on before it is there
        except (OSError, SafetensorError) as error:
            newest = next(self._newest_first(), None)
            kept = f"{newest.name} is kept" if newest else "there is no earlier one"
            raise FileError(f"checkpoint {target.name} could not be written ({error}); {kept}") from error
        return target

    def newest(self) -> Checkpoint | None:
        """The newest whole checkpoint; damaged ones are passed over with a warning. None where there is none at all."""
        if self.machine.process == 0:
            self._sweep()
        self.machine.gather(None)
        damaged: list[str] = []
        for folder in self._newest_first():
            found, fault = None, ""
            try:
                found = self.read(folder)
            except FileError as error:
                fault = str(error)
            faults = [each for each in self.machine.gather(fault) if each]
            if found is None or faults:  # all processes go on from the same one
                damaged.extend(faults)
                continue
            for message in damaged:
                warnings.warn(f"{message}; going on from {folder.name}", stacklevel=2)
            return found
        if damaged:
            raise FileError(f"no whole checkpoint: {'; '.join(damaged)}; remove {self.folder} to start anew")
        return None

    def read(self, folder: Path) -> Checkpoint:
        """One checkpoint, checked: FileError if it is damaged, StateError if it is another run's."""
        step, state = self._read(folder, "")
        _, own = self._read(folder, f"process-{self.machine.process}-")
        return Checkpoint(step, state, own)

    def _write_own(self, aside: Path, step: int, own: Any) -> None:
        """Every process's own part; an error of one is an error of all, so that none waits for it in vain."""
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
        """Remove what a crash in the middle of writing left behind: names that begin with a dot."""
        for leftover in self.folder.glob(".step-*"):
            shutil.rmtree(leftover)


def _checksum(tensors: Path, packed: Any) -> str:
    with tensors.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    digest.update(json.dumps(packed).encode())
    return digest.hexdigest()
