"""One run of a bench: its whole configuration, the data it depends on, and the name that follows from both."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from drift.errors import FileError


def data_root() -> Path:
    """`$DRIFT_DATA`, where `agnews/train.jsonl.gz`, `planetoid/Cora` and the others are."""
    if not (root := os.environ.get("DRIFT_DATA")):
        raise FileError("DRIFT_DATA is not set; set it to the folder of the datasets, `drift datasets` says which")
    return Path(root).resolve()


@dataclass(frozen=True, eq=False)
class Job:
    """What one cell of a table needs by one method: a run of one seed, or of several that train together.

    group: the kind of model a table is made for, such as frozen. row, cell: where in that table the scores go. config:
    all of the run's settings. folders: the data that decide the result. rules: of weak labels, what the file with them
    holds. left_out: the profile does not run it.
    """

    group: str
    row: str
    cell: str
    kind: str
    config: Mapping[str, Any]
    folders: tuple[Path, ...]
    rules: Mapping[str, Any] | None = None
    left_out: bool = False

    @cached_property
    def key(self) -> str:
        """A name that other settings or other data change; where the data are does not matter."""
        content = [self.config, self.rules, [fingerprint(folder) for folder in self.folders]]
        root = json.dumps(str(data_root()))[1:-1]  # as it is written in there
        text = json.dumps(content, sort_keys=True).replace(root, "")
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        return f"{self.cell} {self.row} ({self.kind}, {self.seeds_text})"

    @property
    def seeds_text(self) -> str:
        first = self.config["training"]["seed"]
        return f"seed {first}" if self.config["seeds"] == 1 else f"{self.config['seeds']} seeds"


def fingerprint(folder: Path) -> str:
    """A name for all files in a folder, by what is in them; one that is not there has a name too."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return _digest(tuple((file, file.stat().st_size, file.stat().st_mtime_ns) for file in files), folder)


@cache
def _digest(files: tuple[tuple[Path, int, int], ...], folder: Path) -> str:
    """files: with size and time, so that one that has changed is read again."""
    digest = hashlib.sha256()
    for file, size, _ in files:
        digest.update(f"{file.relative_to(folder)} {size} ".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()
