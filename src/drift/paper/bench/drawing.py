"""What a run draws from a dataset: texts of a pool that all seeds share, and a small dev set of texts or nodes.

A pool makes redrawn seeds affordable. Each seed sees another three quarters of the same training texts and another half
of the same dev texts, so that a fixed encoder embeds every text once for all seeds. Augmented forms of all texts of the
pool are made once, too, and written to a column. All seeds are tested on the same texts.
"""

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.augmentation import AugmentationSettings, replaced_words
from drift.data.files import atomic_file
from drift.data.graphs import Graph, read_graph
from drift.data.labels import sample_per_class
from drift.errors import DataError

AUGMENTED = "augmented"  # the column with augmented forms of the pool's texts
SHARE = 0.75  # of the training texts of a pool that a seed sees
DEV_POOL, TEST_ROWS = 1000, 2000  # texts in a pool besides those for training
DEV_ROWS = 500  # that a seed sees
FILES = ("train", "dev", "test")

Row = dict[str, Any]


@dataclass(frozen=True)
class Draw:
    """What is drawn for a run.

    folder: with the tables of the dataset. seed: of the run. pool: training rows of the pool; None: tables are read as
    they are. dev_per_class: dev rows per class; None: all that there would be.
    """

    folder: Path
    seed: int
    pool: int | None = None
    dev_per_class: int | None = None

    def tables(self, out: Path) -> dict[str, str]:
        """The files to read in place of those of the dataset. They are written to a folder in `out`, once."""
        name = f"{self.folder.name}-{self.pool or 'all'}-seed-{self.seed}"
        files = {part: self.folder / f"{part}.jsonl.gz" for part in FILES}
        if self.pool is not None:
            files |= {part: out / name / f"{part}.jsonl.gz" for part in FILES}
            if not all(file.exists() for file in files.values()):
                for part, rows in self._of_pool(out).items():
                    _write(files[part], rows)
        if self.dev_per_class is not None:
            rows, small = _read(files["dev"]), out / name / f"dev-{self.dev_per_class}.jsonl.gz"
            if not small.exists():
                _write(small, [rows[row] for row in self._small(rows, self.dev_per_class)])
            files["dev"] = small
        return {part: str(file) for part, file in files.items()}

    def _of_pool(self, out: Path) -> dict[str, list[Row]]:
        """The rows of this seed, by part."""
        pooled = {part: _read(file) for part, file in self._pool_files(out).items()}
        sizes = {"train": round(SHARE * len(pooled["train"])), "dev": DEV_ROWS, "test": TEST_ROWS}
        # The same test rows for all seeds, in the same order.
        seeds = {"train": (self.seed, 1), "dev": (self.seed, 2)}
        return {part: _some(rows, sizes[part], seeds[part]) if part in seeds else rows for part, rows in pooled.items()}

    def _pool_files(self, out: Path) -> dict[str, Path]:
        """The tables of the pool, which are written if they do not exist."""
        assert self.pool is not None
        sizes = {"train": self.pool, "dev": DEV_POOL, "test": TEST_ROWS}
        files = {part: out / f"{self.folder.name}-{self.pool}" / f"{part}.jsonl.gz" for part in FILES}
        for number, (part, file) in enumerate(files.items()):
            if file.exists():
                continue
            rows = _some(_read(self.folder / f"{part}.jsonl.gz"), sizes[part], (number,))
            if part == "train":
                views = replaced_words([row["text"] for row in rows], _replaced_share(), seed=0)
                rows = [{**row, AUGMENTED: view} for row, view in zip(rows, views, strict=True)]
            _write(file, rows)
        return files

    def _small(self, rows: Sequence[Row], per_class: int) -> Sequence[int]:
        classes = sorted({row["label"] for row in rows} - {None})
        codes = np.array([-1 if row["label"] is None else classes.index(row["label"]) for row in rows])
        counts = np.bincount(codes[codes >= 0], minlength=1)
        if counts.min() < per_class:
            raise DataError(f"dev of {self.folder.name} has {counts.min()} rows of a class, and {per_class} are needed")
        return [int(row) for row in sample_per_class(codes, per_class, seed=self.seed)]


@dataclass(frozen=True)
class GraphDraw:
    """A graph with another dev set. name: of the graph. seed: of the draw. dev_per_class: dev nodes per class, or 0."""

    name: str
    seed: int
    dev_per_class: int
    pool: None = None

    def graph(self) -> Graph:
        """The graph, whose dev nodes are some of the official ones."""
        graph = read_graph(self.name)
        dev = graph.splits["dev"][:0]
        if self.dev_per_class:
            rows = graph.splits["dev"]
            dev = rows[sample_per_class(graph.labels[rows], self.dev_per_class, seed=self.seed)]
        return replace(graph, splits={**graph.splits, "dev": dev})


def _replaced_share() -> float:
    return float(AugmentationSettings.model_fields["replace"].default)


def _some(rows: list[Row], count: int, seed: tuple[int, ...]) -> list[Row]:
    """So many random rows, in their order; all if there are fewer."""
    return [rows[row] for row in np.sort(np.random.default_rng(seed).permutation(len(rows))[:count])]


def _read(file: Path) -> list[Row]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _write(file: Path, rows: Sequence[Row]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    with atomic_file(file) as aside:
        aside.write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))
