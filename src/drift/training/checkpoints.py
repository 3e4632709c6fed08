"""Checkpoints that survive a crash at any moment: whole or not there, checked when read, the last and the best kept.

A checkpoint is a folder `step-000000100` with the tensors in safetensors and everything else in JSON, a checksum of
both included. Nothing in it is pickled.
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

from drift.data.files import whole_folder
from drift.errors import FileError, StateError
from drift.training.packing import pack, unpack

FORMAT = "drift-checkpoint/1"
TENSORS, CONTENT = "state.safetensors", "state.json"


@dataclass(frozen=True)
class Checkpoint:
    """What was read back: the step it was taken after, and the state."""

    step: int
    state: Any


class Checkpoints:
    """The checkpoints of one run.

    folder: where they are; made when first needed. keep: how many of the newest to keep, beside the best.
    fingerprint: what the run is (its resolved configuration, say); a checkpoint of another one is refused.
    """

    def __init__(self, folder: Path, *, keep: int = 2, fingerprint: str = "") -> None:
        self.folder, self.keep, self.fingerprint = folder, keep, fingerprint

    def save(self, step: int, state: Any, *, best: int | None = None) -> Path:
        """Write the state after `step`; then drop what is neither among the newest nor the step called `best`."""
        packed, tensors = pack(state)
        target = self.folder / f"step-{step:09d}"
        try:
            with whole_folder(target) as aside:
                save_file(tensors, aside / TENSORS)
                content = {
                    "format": FORMAT,
                    "fingerprint": self.fingerprint,
                    "step": step,
                    "sha256": _checksum(aside / TENSORS, packed),
                    "state": packed,
                }
                (aside / CONTENT).write_text(json.dumps(content), encoding="utf-8")
        except (OSError, SafetensorError) as error:
            newest = next(self._newest_first(), None)
            kept = f"{newest.name} is kept" if newest else "there is no earlier one"
            raise FileError(f"checkpoint {target.name} could not be written ({error}); {kept}") from error
        for folder in list(self._newest_first())[self.keep :]:
            if best is None or folder.name != f"step-{best:09d}":
                shutil.rmtree(folder)
        return target

    def newest(self) -> Checkpoint | None:
        """The newest whole checkpoint; damaged ones are passed over with a warning. None where there is none at all."""
        self._sweep()
        damaged: list[str] = []
        for folder in self._newest_first():
            try:
                found = self.read(folder)
            except FileError as error:
                damaged.append(str(error))
                continue
            for message in damaged:
                warnings.warn(f"{message}; going on from {folder.name}", stacklevel=2)
            return found
        if damaged:
            raise FileError(f"no whole checkpoint: {'; '.join(damaged)}; remove {self.folder} to start anew")
        return None

    def read(self, folder: Path) -> Checkpoint:
        """One checkpoint, checked: FileError if it is damaged, StateError if it is another run's."""
        try:
            content = json.loads((folder / CONTENT).read_text(encoding="utf-8"))
            if content["format"] != FORMAT:
                raise FileError(f"{folder} is {content['format']!r}, not {FORMAT}")
            if content["sha256"] != _checksum(folder / TENSORS, content["state"]):
                raise FileError(f"{folder} is damaged: it does not have the checksum it was written with")
            state = unpack(content["state"], load_file(folder / TENSORS))
        except FileError:
            raise
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise FileError(f"{folder} is damaged ({type(error).__name__}: {error})") from error
        if content["fingerprint"] != self.fingerprint:
            raise StateError(
                f"{folder} is of a run with other settings; resume with the same ones, or use a new folder"
            )
        return Checkpoint(content["step"], state)

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
