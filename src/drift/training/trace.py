"""What happened, step by step, as JSON lines; and every row's prediction at chosen steps."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.files import atomic_file


class Trace:
    """An append-only file of JSON lines, one an entry. A trace without a path keeps entries in memory only."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.entries: list[dict[str, Any]] = []
        self._file = path.open("ab") if path else None

    def write(self, entry: dict[str, Any]) -> None:
        self.entries.append(entry)
        if self._file:
            self._file.write(json.dumps(entry).encode() + b"\n")
            self._file.flush()

    def mark(self) -> int:
        """How long the file is, safely on disk; `rewind` takes this."""
        if not self._file:
            return len(self.entries)
        os.fsync(self._file.fileno())
        return self._file.tell()

    def rewind(self, mark: int) -> None:
        """Forget what was written after `mark`: the steps it tells of will be taken again."""
        if not self._file or not self.path:
            del self.entries[mark:]
            return
        self._file.truncate(min(mark, self.path.stat().st_size))
        self._file.seek(0, os.SEEK_END)
        self.entries = read_trace(self.path)

    def close(self) -> None:
        if self._file:
            self._file.close()


def read_trace(path: Path) -> list[dict[str, Any]]:
    """Every whole entry of a trace; a line that a crash cut short is left out."""
    entries = []
    for line in path.read_bytes().split(b"\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            entries.append(entry)
    return entries


def write_predictions(
    folder: Path, step: int, rows: np.ndarray, probabilities: np.ndarray, gold: np.ndarray | None = None
) -> Path:
    """`step-000100.npz`: `rows` (n,), `probabilities` (..., n, C), and `gold` (..., n) if given, -1 where unknown."""
    path = folder / f"step-{step:06d}.npz"
    arrays = {"rows": rows, "probabilities": probabilities.astype(np.float32)}
    if gold is not None:
        arrays["gold"] = gold
    with atomic_file(path) as aside, aside.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    return path
