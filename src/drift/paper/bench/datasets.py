"""The paper's datasets (its tables 6 and 7) compared with what is on disk."""

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.labels import UNLABELED
from drift.data.planetoid import FOLDERS, read_planetoid
from drift.errors import DriftError
from drift.paper.bench.catalogue import paper_numbers
from drift.paper.presets import description_of
from drift.report.page import Table

PARTS = ("train", "dev", "test")
OUTSIDE = "O"
WORDS = "tokens"  # the column that only rows with one tag per word have
GRAPH_PARTS = ("nodes", "edges", "classes", "features")
ABSENT, UNREADABLE = "not found", "cannot be read"


@dataclass
class FolderCounts:
    """What the folder of a dataset holds.

    rows: number of rows by part. classes: names of the classes. The other fields count labels of train, one per text or
    word: labels: all. weak: with a weak label. judged: with a weak and a gold label. right: of those, equal.
    """

    rows: dict[str, int] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)
    labels: int = 0
    weak: int = 0
    judged: int = 0
    right: int = 0

    def weak_text(self) -> str:
        """Coverage and accuracy of the weak labels."""
        if not self.weak:
            return "none"
        right = f"{100 * self.right / self.judged:.0f} % right" if self.judged else "no gold"
        return f"{100 * self.weak / self.labels:.0f} %, {right}"


def dataset_tables() -> tuple[list[Table], list[str]]:
    """A table of texts and sentences, a table of graphs, and one message per dataset that cannot be read."""
    root = os.environ.get("DRIFT_DATA")
    where = f"found in {root}" if root else "DRIFT_DATA is not set; set it to the folder that holds the datasets"
    faults: list[str] = []
    texts = [_text_row(name, paper, root, faults) for name, paper in paper_numbers()["datasets"].items()]
    graphs = [_graph_row(name, paper, root, faults) for name, paper in paper_numbers()["graph_datasets"].items()]
    splits, pairs = ("train / dev / test: paper", "found"), [(f"{part}: paper", "found") for part in GRAPH_PARTS]
    tables = [
        Table(
            ["dataset", "description", *splits, "classes: paper", "found", "weak labels on train"],
            texts,
            f"Texts and sentences (the paper's table 7); {where}\n"
            "The paper counts O as a class of MIT-R. Weak labels of words are counted per word, including O",
        ),
        Table(
            ["dataset", "description", *(text for pair in pairs for text in pair)],
            graphs,
            f"Graphs (the paper's table 6); {where}\nedges: undirected, without duplicates and self-loops",
        ),
    ]
    return tables, faults


def count_folder(folder: Path) -> FolderCounts:
    """Count what is in `train.jsonl.gz`, `dev.jsonl.gz` and `test.jsonl.gz`; missing files are left out."""
    counts = FolderCounts()
    for part in PARTS:
        if (folder / f"{part}.jsonl.gz").exists():
            with gzip.open(folder / f"{part}.jsonl.gz", "rb") as lines:
                counts.rows[part] = _count_labels(lines, counts) if part == "train" else sum(1 for _ in lines)
    return counts


def _count_labels(lines: Iterable[bytes], counts: FolderCounts) -> int:
    """Add the labels of these rows to the counts; returns the number of rows."""
    rows = 0
    for line in lines:
        row = json.loads(line)
        rows += 1
        for gold, weak in _pairs(row):
            counts.labels += 1
            counts.weak += weak is not None
            counts.judged += weak is not None and gold is not None
            counts.right += weak is not None and weak == gold
            for label in (gold, weak):
                if label not in (None, OUTSIDE):
                    counts.classes.add(label[2:] if WORDS in row and label[:2] in ("B-", "I-") else label)
    return rows


def _pairs(row: dict[str, Any]) -> Iterator[tuple[str | None, str | None]]:
    """Gold and weak label of a text, or of each word."""
    if WORDS not in row:
        yield row.get("label"), row.get("weak")
        return
    nothing = [None] * len(row[WORDS])
    yield from zip(row.get("labels") or nothing, row.get("weak") or nothing, strict=True)


def _text_row(name: str, paper: dict[str, Any], root: str | None, faults: list[str]) -> list[str]:
    in_paper = " / ".join(paper[part] for part in PARTS)
    start, classes = [paper["title"], description_of(name), in_paper], str(paper["classes"])
    folder = Path(root or "") / name
    if not root or not folder.is_dir():
        return [*start, ABSENT, classes, "-", "-"]
    try:
        counts = count_folder(folder)
    except (OSError, EOFError, zlib.error, ValueError, AttributeError, TypeError) as error:
        faults.append(f"{folder} cannot be read ({' '.join(str(error).split())}); download its files again")
        return [*start, UNREADABLE, classes, "-", "-"]
    rows = " / ".join(f"{counts.rows[part]:,}" if part in counts.rows else ABSENT for part in PARTS)
    weak = "from a dictionary" if (folder / "dict_core.txt").exists() and not counts.weak else counts.weak_text()
    return [*start, rows, classes, str(len(counts.classes)), weak]


def _graph_row(name: str, paper: dict[str, Any], root: str | None, faults: list[str]) -> list[str]:
    counts = dict.fromkeys(GRAPH_PARTS, "-")
    if root and (Path(root) / "planetoid" / FOLDERS[name]).is_dir():
        try:
            counts = _graph_counts(name)
        except DriftError as error:
            faults.append(str(error))
            counts["nodes"] = UNREADABLE
    else:
        counts["nodes"] = ABSENT
    pairs = [(f"{paper[part]:,}", counts[part]) for part in GRAPH_PARTS]
    return [paper["title"], description_of(name), *(text for pair in pairs for text in pair)]


def _graph_counts(name: str) -> dict[str, str]:
    graph = read_planetoid(name)
    edges = np.unique(np.sort(graph.edges, axis=0), axis=1)
    numbers = (
        graph.features.shape[0],
        (edges[0] != edges[1]).sum(),
        len(np.unique(graph.labels[graph.labels != UNLABELED])),
        graph.features.shape[1],
    )
    return {part: f"{number:,}" for part, number in zip(GRAPH_PARTS, numbers, strict=True)}
