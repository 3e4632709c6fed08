"""The trace of a run: its history as JSON lines, and the prediction of every row at chosen steps."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.files import atomic_file
from drift.training.callbacks import Callback, TrainingState, mean_scores


class Trace(Callback):
    """An append-only file of JSON lines, one per entry. Without a path, entries are kept in memory only.

    by_seed: the student is several stacked trials; dev scores are also written per trial.
    """

    def __init__(self, path: Path | None = None, *, by_seed: bool = False) -> None:
        self.path, self.by_seed = path, by_seed
        self.entries: list[dict[str, Any]] = []
        self._file = path.open("ab") if path else None

    def write(self, entry: Mapping[str, Any]) -> None:
        """Append an entry."""
        self.entries.append(dict(entry))
        if self._file:
            self._file.write(json.dumps(entry).encode() + b"\n")
            self._file.flush()

    def on_log(self, state: TrainingState, entry: Mapping[str, Any]) -> None:
        self.write(entry)

    def on_evaluate(self, state: TrainingState, scores: Sequence[Mapping[str, float]]) -> None:
        mean = mean_scores(scores)
        entry: dict[str, Any] = {"phase": state.phase, "step": state.step, "dev": mean}
        if self.by_seed:
            entry["dev_by_seed"] = {name: [trial[name] for trial in scores] for name in mean}
        self.write(entry)

    def on_run_end(self, state: TrainingState) -> None:
        self.close()

    def mark(self) -> int:
        """Flush the file to disk and return its length, for `rewind`."""
        if not self._file:
            return len(self.entries)
        os.fsync(self._file.fileno())
        return self._file.tell()

    def rewind(self, mark: int) -> None:
        """Drop the entries written after `mark`: their steps will be taken again."""
        if not self._file or not self.path:
            del self.entries[mark:]
            return
        self._file.truncate(min(mark, self.path.stat().st_size))
        self._file.seek(0, os.SEEK_END)
        self.entries = read_trace(self.path)

    def close(self) -> None:
        """Close the file; whatever was written is complete."""
        if self._file:
            self._file.close()


def read_trace(path: Path) -> list[dict[str, Any]]:
    """All complete entries of a trace; a line that a crash cut short is skipped."""
    entries = []
    for line in path.read_bytes().split(b"\n"):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):  # too deep to be an entry of ours
            continue
        if isinstance(entry, dict):
            entries.append(entry)
    return entries


def write_predictions(
    folder: Path, step: int, rows: np.ndarray, probabilities: np.ndarray, gold: np.ndarray | None = None
) -> Path:
    """Write `step-000100.npz` with `rows` (n,), `probabilities` (..., n, C), and `gold` (..., n), -1 where unknown."""
    path = folder / f"step-{step:06d}.npz"
    arrays = {"rows": rows, "probabilities": probabilities.astype(np.float32)}
    if gold is not None:
        arrays["gold"] = gold
    with atomic_file(path) as aside, aside.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    return path
