"""The paper's datasets (its tables 6 and 7), beside what is found on disk."""

import gzip
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from drift.data.labels import UNLABELED
from drift.data.planetoid import FOLDERS, read_planetoid
from drift.errors import DriftError
from drift.paper.bench.paper import paper_numbers
from drift.report.page import Table

PARTS = ("train", "dev", "test")
OUTSIDE = "O"
GRAPH_PARTS = ("nodes", "edges", "classes", "features")
ABSENT, UNREADABLE = "not found", "cannot be read"


@dataclass
class Found:
    """What a folder holds: rows by part, classes, and of single labels on train how many there are and are right.

    judged: labels with a weak label and a gold one.
    """

    rows: dict[str, int] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)
    labels: int = 0
    weak: int = 0
    judged: int = 0
    right: int = 0

    def weak_text(self) -> str:
        if not self.weak:
            return "none"
        right = f"{100 * self.right / self.judged:.0f} % right" if self.judged else "no gold"
        return f"{100 * self.weak / self.labels:.0f} %, {right}"


def dataset_tables() -> tuple[list[Table], list[str]]:
    """Texts and sentences, then graphs; and why some could not be read."""
    root = os.environ.get("DRIFT_DATA")
    where = f"found in {root}" if root else "DRIFT_DATA is not set, so nothing is found; set it to the folder with them"
    faults: list[str] = []
    texts = [_text_row(name, paper, root, faults) for name, paper in paper_numbers()["datasets"].items()]
    graphs = [_graph_row(name, paper, root, faults) for name, paper in paper_numbers()["graph_datasets"].items()]
    splits, pairs = ("train / dev / test: paper", "found"), [(f"{part}: paper", "found") for part in GRAPH_PARTS]
    tables = [
        Table(
            ["dataset", "what it is", *splits, "classes: paper", "found", "weak labels on train"],
            texts,
            f"Texts and sentences (the paper's table 7); {where}\n"
            "The paper counts O as a class of MIT-R; weak labels of words are counted word by word, O included",
        ),
        Table(
            ["dataset", "what it is", *(text for pair in pairs for text in pair)],
            graphs,
            f"Graphs (the paper's table 6); {where}\nedges: each counted once, without duplicates and loops",
        ),
    ]
    return tables, faults


def look(folder: Path) -> Found:
    """Count what is in `train.jsonl.gz` and its like; parts that are not there have no rows."""
    found = Found()
    for part in PARTS:
        if (folder / f"{part}.jsonl.gz").exists():
            with gzip.open(folder / f"{part}.jsonl.gz", "rb") as lines:
                found.rows[part] = _count_labels(lines, found) if part == "train" else sum(1 for _ in lines)
    return found


def _count_labels(lines: Any, found: Found) -> int:
    rows = 0
    for line in lines:
        row = json.loads(line)
        rows += 1
        for gold, weak in _pairs(row):
            found.labels += 1
            found.weak += weak is not None
            found.judged += weak is not None and gold is not None
            found.right += weak is not None and weak == gold
            for label in (gold, weak):
                if label not in (None, OUTSIDE):
                    found.classes.add(label[2:] if "tokens" in row and label[:2] in ("B-", "I-") else label)
    return rows


def _pairs(row: dict[str, Any]) -> Iterator[tuple[str | None, str | None]]:
    """Gold and weak label of a text, or of each word."""
    if "tokens" not in row:
        yield row.get("label"), row.get("weak")
        return
    nothing = [None] * len(row["tokens"])
    yield from zip(row.get("labels") or nothing, row.get("weak") or nothing, strict=True)


def _text_row(name: str, paper: dict[str, Any], root: str | None, faults: list[str]) -> list[str]:
    told = " / ".join(paper[part] for part in PARTS)
    start, classes = [paper["title"], _about(name), told], str(paper["classes"])
    folder = Path(root or "") / name
    if not root or not folder.is_dir():
        return [*start, ABSENT, classes, "-", "-"]
    try:
        found = look(folder)
    except (OSError, EOFError, zlib.error, ValueError, AttributeError, TypeError) as error:
        faults.append(f"{folder} cannot be read ({' '.join(str(error).split())}); get its files again")
        return [*start, UNREADABLE, classes, "-", "-"]
    rows = " / ".join(f"{found.rows[part]:,}" if part in found.rows else ABSENT for part in PARTS)
    weak = "by a dictionary" if (folder / "dict_core.txt").exists() and not found.weak else found.weak_text()
    return [*start, rows, classes, str(len(found.classes)), weak]


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
    return [paper["title"], _about(name), *(text for pair in pairs for text in pair)]


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


def _about(name: str) -> str:
    preset = yaml.safe_load((files("drift.paper.presets") / f"{name}.yaml").read_text("utf-8"))
    return str(preset["description"])
