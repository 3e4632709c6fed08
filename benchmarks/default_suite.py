"""Tables of texts as users have them: real datasets, thinned to skewed classes, with few labels and no dev set."""

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

SIZES = {"train": 2500, "test": 1000, "dev": 500}  # texts of a dataset before it is thinned
LEAST = 40  # training texts of a class; rarer classes are left out


@dataclass(frozen=True)
class Cell:
    """One setting: a dataset, thinned so that class sizes range from 1 to 1/skew (0: as they are), and its labels.

    how: "per class" or "random": how labelled rows are chosen. labels: per class; random draws have as many in all.
    """

    dataset: str
    skew: int
    how: str
    labels: int


CELLS = [
    *(Cell(name, 1, "per class", labels) for name in ("agnews", "yelp", "amazon", "imdb") for labels in (10, 30)),
    *(Cell(name, 10, "per class", labels) for name in ("agnews", "yelp", "amazon", "imdb") for labels in (5, 10)),
    *(Cell(name, 10, "random", 10) for name in ("agnews", "yelp", "amazon", "imdb")),
    *(Cell("mitr", 0, how, 10) for how in ("per class", "random")),
    *(Cell(name, 1, "per class", 5) for name in ("agnews", "yelp", "amazon")),
    *(Cell(name, 3, "per class", 10) for name in ("agnews", "yelp", "amazon")),
    *(Cell(name, 10, "per class", 30) for name in ("agnews", "yelp", "amazon")),
]


@dataclass(frozen=True)
class Draw:
    """The tables of one draw. train: text, label (blank for most rows). gold: of all its rows. shares: true ones.

    dev: gold labels that plain runs do not get.
    """

    train: pd.DataFrame
    test: pd.DataFrame
    dev: pd.DataFrame
    gold: list[str]

    @property
    def shares(self) -> dict[str, float]:
        counts = pd.Series(self.gold).value_counts()
        return {name: float(count / counts.sum()) for name, count in counts.items()}


def draw(cell: Cell, number: int) -> Draw:
    """The tables of a draw: the same for the same number, with other rows, labels and order of classes for each."""
    rng = np.random.default_rng([number, cell.skew, cell.labels])
    train, test = (texts_of(cell.dataset, part) for part in ("train", "test"))
    classes = rng.permutation(sorted(set(train["label"])))
    train, test = _thinned(train, classes, cell.skew, rng), _thinned(test, classes, cell.skew, rng)
    in_all = cell.labels * len(classes)
    chosen = labeled_rows(train["label"].to_numpy(), classes, cell.how, cell.labels, in_all, rng)
    labels = np.full(len(train), "", dtype=object)
    labels[chosen] = train["label"].to_numpy()[chosen]
    dev = _thinned(texts_of(cell.dataset, "dev"), classes, cell.skew, rng)
    return Draw(pd.DataFrame({"text": train["text"], "label": labels}), test, dev, list(train["label"]))


@cache
def texts_of(dataset: str, part: str) -> pd.DataFrame:
    """Up to `SIZES` texts with their labels. Queries of mitr have the type of their first slot as label."""
    with gzip.open(Path(os.environ["DRIFT_DATA"], dataset, f"{part}.jsonl.gz"), "rt") as file:
        rows = [row for row in map(_example, map(json.loads, file)) if row is not None]
    order = np.random.default_rng(0).permutation(len(rows))[: SIZES[part]]
    table = pd.DataFrame([rows[row] for row in order], columns=["text", "label"])
    counts = table["label"].value_counts() if part == "train" else texts_of(dataset, "train")["label"].value_counts()
    return table[table["label"].map(counts).fillna(0) >= LEAST].reset_index(drop=True)


def _example(row: dict) -> tuple[str, str] | None:
    if "tokens" not in row:
        return (row["text"], row["label"]) if row["label"] else None
    tags = [tag.split("-")[-1] for tag in row["labels"] if tag != "O"]
    return (" ".join(row["tokens"]), tags[0]) if tags else None


def _thinned(table: pd.DataFrame, classes: np.ndarray, skew: int, rng: np.random.Generator) -> pd.DataFrame:
    """Rows such that class sizes fall geometrically from the first class to 1/skew of it in the last."""
    if not skew:
        return table
    weights = {name: skew ** (-place / (len(classes) - 1)) for place, name in enumerate(classes)}
    labels = table["label"].to_numpy()
    largest = min((labels == name).sum() / weight for name, weight in weights.items())
    kept = [
        rng.choice(np.flatnonzero(labels == name), max(1, int(largest * weight)), replace=False)
        for name, weight in weights.items()
    ]
    return table.iloc[np.sort(np.concatenate(kept))].reset_index(drop=True)


def labeled_rows(
    labels: np.ndarray, classes: np.ndarray, how: str, per_class: int, in_all: int, rng: np.random.Generator
) -> np.ndarray:
    """Rows whose labels are given: `per_class` of every class or, if `how` is random, `in_all` rows."""
    if how == "per class":
        return np.concatenate(
            [rng.choice(np.flatnonzero(labels == name), per_class, replace=False) for name in classes]
        )
    while True:  # a classifier needs two classes
        rows = rng.choice(len(labels), in_all, replace=False)
        if len(set(labels[rows])) > 1:
            return rows


def jobs(draws: int) -> Iterator[tuple[Cell, int]]:
    """All cells of the first draw, then of the second, and so on: results are comparable whenever they stop."""
    for number in range(draws):
        for cell in CELLS:
            yield cell, number
