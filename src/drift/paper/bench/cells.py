"""One run of a bench: its configuration, the data it depends on, and a key computed from both."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from drift.errors import FileError
from drift.paper.bench.drawing import Draw, GraphDraw
from drift.tasks import TASKS, Kind


def data_root() -> Path:
    """The folder `$DRIFT_DATA`, which holds `agnews/train.jsonl.gz`, `planetoid/Cora` and the other datasets."""
    if not (root := os.environ.get("DRIFT_DATA")):
        raise FileError("DRIFT_DATA is not set; set it to the folder of the datasets; `drift datasets` lists them")
    return Path(root).resolve()


@dataclass(frozen=True, eq=False)
class Job:
    """A run for one cell of a table and one method: of one seed, or of several seeds that are trained together.

    group: the models of the table, such as frozen; there is one table per group.
    row, cell: where the scores go in that table.
    kind: name of the kind of model.
    config: all settings of the run.
    folders: folders with the data of the run.
    rules: content of the rule file, if the weak labels come from rules.
    left_out: the profile does not run this job.
    draw: what is drawn for the run, in place of the dataset's tables or the graph's dev nodes.
    trials: of the search of settings on dev; 0: there is none.
    """

    group: str
    row: str
    cell: str
    kind: str
    config: Mapping[str, Any]
    folders: tuple[Path, ...]
    rules: Mapping[str, Any] | None = None
    left_out: bool = False
    draw: Draw | GraphDraw | None = None
    trials: int = 0

    @cached_property
    def key(self) -> str:
        """A hash of the settings and of the content of the data. The location of the data does not change it."""
        content: list[Any] = [self.config, self.rules, [fingerprint(folder) for folder in self.folders]]
        if self.draw is not None:
            content.append([self.draw.seed, self.draw.pool, self.draw.dev_per_class])
        if self.trials:
            content.append({"trials": self.trials})
        root = json.dumps(str(data_root()))[1:-1]  # escaped as in `text`
        text = json.dumps(content, sort_keys=True).replace(root, "")
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def model_kind(self) -> Kind:
        """The kind of model that is trained."""
        return TASKS[self.config["task"]].kinds[self.kind]

    @property
    def position(self) -> tuple[str, str, str]:
        """Group, row and cell: where the scores go."""
        return self.group, self.row, self.cell

    @property
    def title(self) -> str:
        """A name for messages."""
        return f"{self.cell} {self.row} ({self.kind}, {self.seeds_text})"

    @property
    def seeds_text(self) -> str:
        """The seed, or the number of seeds."""
        first = self.config["training"]["seed"]
        return f"seed {first}" if self.config["seeds"] == 1 else f"{self.config['seeds']} seeds"


def fingerprint(folder: Path) -> str:
    """A hash of the names and contents of all files in a folder. A folder that does not exist counts as empty."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return _digest(tuple((file, file.stat().st_size, file.stat().st_mtime_ns) for file in files), folder)


@cache
def _digest(files: tuple[tuple[Path, int, int], ...], folder: Path) -> str:
    """files: with size and modification time, so that a changed file is read again despite the cache."""
    digest = hashlib.sha256()
    for file, size, _ in files:
        digest.update(f"{file.relative_to(folder)} {size} ".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()
