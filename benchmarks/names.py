"""Classifiers from class names alone, and with a few labels beside them.

    DRIFT_DATA=... python benchmarks/names.py run --draws 10     # adds to docs/results/names.jsonl, resumable
    DRIFT_DATA=... python benchmarks/names.py votes --draws 10   # adds to docs/results/names_votes.jsonl: no training
    python benchmarks/names.py render                            # writes docs/results/names.md and names.png

Every run has plain settings. Each draw takes other texts from the same sample of a dataset, without their labels.
"""

import argparse
import gzip
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from own_names import percent, section
from recorded import RESULTS, add_line, read_lines, table

LINES, VOTES, PAGE, FIGURE = (RESULTS / f"names{end}" for end in (".jsonl", "_votes.jsonl", ".md", ".png"))
SAMPLE = {"agnews": (6000, 2000)}  # texts to draw from and test texts; others:
OTHERS = (2500, 1000)
POOL = {"agnews": 4000}  # texts of a draw; others:
OTHER_POOL = 2000
REVIEWS = {
    "negative": "a negative review by a disappointed customer",
    "positive": "a positive review by a satisfied customer",
}
DESCRIPTIONS = {
    "agnews": {
        "World": "world news: politics, governments, war and international affairs",
        "Sports": "sports: games, matches, teams, players and athletes",
        "Business": "business: companies, markets, the economy and finance",
        "Sci/Tech": "science and technology: computers, software, the internet, space and research",
    },
    "amazon": REVIEWS,
    "yelp": REVIEWS,
    "imdb": REVIEWS,
}
LABELS = (1, 3, 5, 10)
SIMPLE = {  # see ABOUT; results in %
    ("agnews", "names"): 87.4,
    ("agnews", "descriptions"): 87.7,
    ("amazon", "names"): 92.5,
    ("yelp", "names"): 90.9,
    ("imdb", "names"): 84.7,
}
ABOUT = (
    "*Least gain*: of the result over its start, in the worst draw. It is 0 where the start is the result, because the",
    "mixture of the next section was used; see [decision 90](../decisions/0090-class-names-as-a-source.md).",
    "",
    "*Simple recipe*: cosines to the embedded name (or description), centred over the texts, the most certain half of",
    "each class as labels, a logistic start, and the game with even shares; measured once with the same encoder, 128",
    "tokens, 8,000 texts of AG News and 3,000 of the others, before `--classes` was written.",
    "",
    "Published, from names alone, with other encoders, all training texts and the whole test sets: X-Class AG News",
    "85.7, Yelp 90.0 (Wang and others, 2021); LOTClass AG News 86.4, IMDB 86.5, with up to three names per class (Meng",
    "and others, 2020).",
)


@dataclass(frozen=True)
class Cell:
    """One setting. source: "names", "descriptions" or "none". labels: per class. skew: ratio of class sizes."""

    dataset: str
    source: str
    labels: int = 0
    skew: int = 1


CELLS = [
    *(
        Cell(name, source, skew=skew)
        for skew in (1, 10)
        for source in ("names", "descriptions")
        for name in DESCRIPTIONS
    ),
    *(Cell(name, source, labels) for name in DESCRIPTIONS for labels in LABELS for source in ("names", "none")),
]


def measure(cell: Cell, number: int) -> dict[str, Any]:
    """Scores of one run, and of the labels that the names give."""
    import drift
    from drift.weak.class_names import class_phrases

    pool, test = draw(cell, number)
    truth = pool["label"].to_numpy()
    train = pool.assign(label=labels_of(truth, cell.labels, number) if cell.labels else None)
    described = DESCRIPTIONS[cell.dataset]
    classes = {"names": list(described), "descriptions": described, "none": None}[cell.source]
    run = drift.fit(train, test=test, text="text", label="label", classes=classes, quiet=True)
    scores = run.metrics["test"]
    line = {**asdict(cell), "draw": number, "start": scores["start_model"], "result": scores["model"]}
    line["choice"] = run.metrics["choice"]
    if classes is not None:
        line |= votes(pool, class_phrases(classes))
    return line


def votes(pool: pd.DataFrame, phrases: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """Accuracy of the class names before any training: of all texts, and of those that get a label."""
    from drift.models.embedding import Embedder
    from drift.weak.names import balanced, class_vectors, name_votes

    embedder = Embedder("default", max_length=256, pool="auto", precision="auto")
    classes = sorted(phrases)
    vectors = class_vectors({name: phrases[name] for name in classes}, lambda lines: embedder.rows(list(lines)))
    x = embedder.rows(list(pool["text"]))
    truth = pool["label"].to_numpy()
    found = name_votes(x, vectors, classes)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    similarity = unit @ vectors.T
    right = np.array(classes)[found.likely] == truth

    def accuracy(score: np.ndarray) -> float:
        return float((np.array(classes)[score.argmax(-1)] == truth).mean())

    return {
        "cosine": accuracy(similarity),
        "centred": accuracy(similarity - similarity.mean(0)),
        "balanced": accuracy(balanced(similarity)),
        "nearest": float(right.mean()),
        "labeled": float(right[found.votes.any(-1)].mean()),
        "mixture": found.mixture,
    }


@cache
def texts_of(dataset: str, part: str, columns: tuple[str, ...] = ("text", "label")) -> pd.DataFrame:
    """A sample of the labelled texts of a dataset."""
    with gzip.open(Path(os.environ["DRIFT_DATA"], dataset, f"{part}.jsonl.gz"), "rt") as file:
        rows = [[row.get(name) for name in columns] for row in map(json.loads, file) if row["label"]]
    size = SAMPLE.get(dataset, OTHERS)[part == "test"]
    order = np.random.default_rng(0).permutation(len(rows))[:size]
    return pd.DataFrame([rows[row] for row in order], columns=list(columns))


def draw(cell: Cell, number: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Texts of a draw, and test texts; thinned alike if classes are skewed, in another order of classes each draw."""
    rng = np.random.default_rng([number, cell.skew])
    train, test = (texts_of(cell.dataset, part) for part in ("train", "test"))
    if cell.skew > 1:
        classes = rng.permutation(sorted(set(train["label"])))
        return thinned(train, classes, cell.skew, rng), thinned(test, classes, cell.skew, rng)
    rows = rng.choice(len(train), POOL.get(cell.dataset, OTHER_POOL), replace=False)
    return train.iloc[np.sort(rows)].reset_index(drop=True), test


def thinned(rows: pd.DataFrame, classes: np.ndarray, skew: int, rng: np.random.Generator) -> pd.DataFrame:
    """Rows such that class sizes fall geometrically from the first class to 1/skew of it in the last."""
    weights = {name: skew ** (-place / (len(classes) - 1)) for place, name in enumerate(classes)}
    labels = rows["label"].to_numpy()
    largest = min((labels == name).sum() / weight for name, weight in weights.items())
    kept = [
        rng.choice(np.flatnonzero(labels == name), max(1, int(largest * weight)), replace=False)
        for name, weight in weights.items()
    ]
    return rows.iloc[np.sort(np.concatenate(kept))].reset_index(drop=True)


def labels_of(truth: np.ndarray, per_class: int, number: int) -> list[str | None]:
    """Labels of a few random rows of each class, None for the others."""
    rng = np.random.default_rng([number, per_class, 1])
    known: list[str | None] = [None] * len(truth)
    for name in np.unique(truth):
        for row in rng.choice(np.flatnonzero(truth == name), per_class, replace=False):
            known[row] = str(name)
    return known


def jobs(draws: int) -> Iterator[tuple[Cell, int]]:
    """All cells of the first draw, then of the second: results are comparable whenever they stop."""
    for number in range(draws):
        for cell in CELLS:
            yield cell, number


def run(draws: int, only: str, datasets: str) -> None:
    """Measure what is missing, one line per draw of a cell."""
    fields = ("dataset", "source", "labels", "skew", "draw")
    done = {tuple(line[name] for name in fields) for line in read_lines(LINES)}
    for cell, number in jobs(draws):
        kind = "skew" if cell.skew > 1 else "labels" if cell.labels else cell.source
        wanted = (not only or kind in only.split(",")) and (not datasets or cell.dataset in datasets.split(","))
        if not wanted or (*asdict(cell).values(), number) in done:
            continue
        line = measure(cell, number)
        add_line(LINES, line)
        scores = {name: f"{100 * line[name]['accuracy']:.1f}" for name in ("start", "result")}
        print(*asdict(cell).values(), number, scores, line.get("nearest"), flush=True)


def run_votes(draws: int) -> None:
    """How good the labels from class names are, before any training."""
    from drift.weak.class_names import class_phrases

    done = {(line["dataset"], line["source"], line["skew"], line["draw"]) for line in read_lines(VOTES)}
    for number in range(draws):
        for dataset, described in DESCRIPTIONS.items():
            for source, skew in (("names", 1), ("names", 10), ("descriptions", 1), ("descriptions", 10)):
                if (dataset, source, skew, number) in done:
                    continue
                pool, _ = draw(Cell(dataset, source, skew=skew), number)
                phrases = class_phrases(described if source == "descriptions" else list(described))
                line = {"dataset": dataset, "source": source, "skew": skew, "draw": number, **votes(pool, phrases)}
                add_line(VOTES, line)
                print(*line.values(), flush=True)


def render() -> None:
    """Write the tables."""
    cells = defaultdict(list)
    for line in read_lines(LINES):
        cells[line["dataset"], line["source"], line["labels"], line["skew"]].append(line)
    text = [
        "# Class names in place of labels",
        "",
        "Made by `python benchmarks/names.py run` and `render`; one line per draw in names.jsonl. Plain `drift fit",
        "--classes`, encoder bge-small-en-v1.5, fixed, 256 tokens. A draw is 4,000 of 6,000 AG News texts, or 2,000 of",
        "2,500 texts of the other datasets, without labels; 2,000 and 1,000 test texts. Accuracy in %, mean ± standard",
        "deviation over draws. *Nearest*: the class that the names give to all texts of the draw; *labelled*: those of",
        "them that are certain enough for a label. Names are those of the datasets; descriptions are one line each.",
        "",
        "## No label",
        "",
    ]
    steps = ["nearest", "labelled", "start", "result", "least gain"]
    headings = ["dataset", "skew", "source", "draws", *steps, "simple recipe"]
    rows = [
        [
            *(dataset, skew, source, len(lines)),
            *(percent([line[name] for line in lines]) for name in ("nearest", "labeled")),
            *(percent([line[name]["accuracy"] for line in lines]) for name in ("start", "result")),
            f"{100 * min(line['result']['accuracy'] - line['start']['accuracy'] for line in lines):+.1f}",
            SIMPLE.get((dataset, source), "") if skew == 1 else "",
        ]
        for (dataset, source, labels, skew), lines in sorted(cells.items(), key=str)
        if not labels
    ]
    text += [*table(headings, rows), "", *ABOUT, ""]
    text += _votes_table()
    text += _few_labels(cells)
    text += _other_texts()
    PAGE.write_text("\n".join(text), encoding="utf-8")
    print(f"wrote {PAGE}")


def _few_labels(cells: dict[Any, list[dict[str, Any]]]) -> list[str]:
    """Names and a few labels per class beside labels alone, as a table and a figure. Draws that both ways have."""
    rows, curves = [], defaultdict(list)
    for dataset in DESCRIPTIONS:
        for labels in LABELS:
            alone, both = (cells.get((dataset, source, labels, 1), []) for source in ("none", "names"))
            draws = min(len(alone), len(both))
            if not draws:
                continue
            scores = [[line["result"]["accuracy"] for line in lines[:draws]] for lines in (alone, both)]
            only = {line["draw"]: line["result"]["accuracy"] for line in cells[dataset, "names", 0, 1]}
            same = [only[line["draw"]] for line in both[:draws]]
            gain = min(new - old for old, new in zip(same, scores[1], strict=True))
            rows.append([dataset, labels, draws, *map(percent, (scores[0], same, scores[1])), f"{100 * gain:+.1f}"])
            curves[dataset].append((labels, *scores))
    if not rows:
        return []
    names_only = {name: [line["result"]["accuracy"] for line in cells[name, "names", 0, 1]] for name in DESCRIPTIONS}
    _draw_figure(curves, names_only)
    headings = [
        "dataset",
        "labels per class",
        "draws",
        "labels alone",
        "names alone",
        "labels and names",
        "least gain",
    ]
    return [
        "## A few labels per class, with and without class names",
        "",
        "Labels of random rows of each class. *Least gain*: over names alone, in the worst draw. All draws have the",
        "same test texts, 2,000 of AG News and 1,000 of the others: one point is 10 of 1,000.",
        "With names, the start is the result, as without labels; see [decision",
        "141](../decisions/0141-gold-labels-beside-weak-ones.md). *Names alone*: of the same draws.",
        "",
        *table(headings, rows),
        "",
        "![Accuracy against labels per class](names.png)",
        "",
    ]


def _other_texts() -> list[str]:
    """Names on texts that nothing was chosen on."""
    return [
        "## Other texts",
        "",
        "Made by `benchmarks/own_names.py TABLE` on texts that no setting of `--classes` was chosen on: up to 3,000",
        "texts without labels and up to 2,000 test texts. *Labelled*: accuracy of the labels that names gave, before",
        "training. *Warned*: draws in which names were reported as unfit. Names of the questions: abbreviation,",
        "entity, description, human, location, number; of the tweets: anger, joy, optimism, sadness. Flight requests",
        "have the 14 intents with 15 texts or more, and three quarters of them are of one.",
        "",
        *section(),
    ]


def _draw_figure(curves: dict[str, list[Any]], names_only: dict[str, list[float]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(curves), figsize=(3.2 * len(curves), 3.2), constrained_layout=True)
    for axis, (dataset, points) in zip(np.atleast_1d(axes), curves.items(), strict=True):
        for place, name in ((1, "labels alone"), (2, "labels and names")):
            at = [(0, names_only[dataset])] * (place == 2 and bool(names_only[dataset]))
            at += [(point[0], point[place]) for point in points]
            means = [100 * np.mean(scores) for _, scores in at]
            spread = [100 * np.std(scores, ddof=1) if len(scores) > 1 else 0 for _, scores in at]
            axis.errorbar([labels for labels, _ in at], means, spread, marker="o", capsize=3, label=name)
        axis.set(title=dataset, xlabel="labels per class", ylabel="test accuracy, %", xticks=(0, *LABELS))
    np.atleast_1d(axes)[0].legend()
    figure.savefig(FIGURE, dpi=110)
    plt.close(figure)


def _votes_table() -> list[str]:
    """The labels from class names before any training."""
    cells = defaultdict(list)
    for line in read_lines(VOTES):
        cells[line["dataset"], line["skew"], line["source"]].append(line)
    steps = ("cosine", "centred", "balanced", "nearest", "labeled")
    headings = ["dataset", "skew", "source", "draws", *steps[:3], "with the mixture", "labelled half", "mixture used"]
    rows = [
        [
            *(*cell, len(lines)),
            *(percent([line[step] for line in lines]) for step in steps),
            f"{sum(line['mixture'] for line in lines)} of {len(lines)}",
        ]
        for cell, lines in sorted(cells.items())
    ]
    return [
        "## The names themselves",
        "",
        "Before any training (`names.py votes`): the nearest class by plain cosine, after centring over all texts,",
        "after centring that does not assume equally common classes, and with the mixture, which is what runs use.",
        "Skew 10: the rarest class has a tenth of the texts of the commonest, in another order of classes each draw.",
        "",
        *table(headings, rows),
        "",
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "votes", "render"])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--only", default="", help="names, descriptions, skew or labels, with commas")
    parser.add_argument("--datasets", default="", help="with commas; default: all")
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(arguments.draws, arguments.only, arguments.datasets)
    else:
        run_votes(arguments.draws) if arguments.command == "votes" else render()
