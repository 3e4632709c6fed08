"""Labels that `drift suggest` saves against random rows, with 10 to 100 labels.

    DRIFT_DATA=... python benchmarks/suggest.py linear [--draws 10]
    DRIFT_DATA=... python benchmarks/suggest.py game [--draws 10]
    python benchmarks/suggest.py table

A draw begins with 10 random labels, the same for all ways. Then rows are labelled in rounds: at random, by the margin
alone, or as `drift suggest` chooses them. `linear` trains a logistic regression in each round, `game` runs
`drift fit`, which takes longer, without the margin. Both add lines to docs/results/suggest.jsonl and skip draws that
exist. `table` updates the tables in docs/results/suggest.md and the figure beside it.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

import drift
from cached_texts import Part, embedded, texts_of
from drift.quality.crossfit import fitted
from drift.quality.selection import doubt, spread_rows
from recorded import RESULTS, add_line, read_lines, replace_tables, table

LINES, PAGE, FIGURE = RESULTS / "suggest.jsonl", RESULTS / "suggest.md", RESULTS / "suggest.png"
DATASETS = {"agnews": "AG News", "amazon": "Amazon", "yelp": "Yelp"}
POOL, TEST, HEADS = 1500, 1000, 3
SIZES = (10, 20, 50, 100)
WAYS = {"random": "random", "margin": "smallest margin", "suggest": "drift suggest"}
GAME_WAYS = ("random", "suggest")
STRENGTH = 0.01  # of the logistic regression, on standardised vectors: the default of `fitted`


def run(learner: str, draws: int) -> None:
    lines = [line for line in read_lines(LINES) if line["learner"] == learner]
    done = {(line["draw"], line["dataset"], line["way"]) for line in lines}
    ways = WAYS if learner == "linear" else GAME_WAYS
    for draw in range(draws):
        for dataset in DATASETS:
            for way in (way for way in ways if (draw, dataset, way) not in done):
                line = (_linear if learner == "linear" else _game)(draw, dataset, way)
                line = {"learner": learner, "draw": draw, "dataset": dataset, "way": way, **line}
                add_line(LINES, line)
                print(line, flush=True)


def _first_rows(gold: Sequence[Any], draw: int, dataset: str) -> np.ndarray:
    """An order of the rows, the first of which have two classes or more."""
    rng = np.random.default_rng([draw, len(dataset)])
    order = rng.permutation(len(gold))
    while len({gold[row] for row in order[: SIZES[0]]}) < 2:  # a classifier needs two classes
        order = rng.permutation(len(gold))
    return order


def _linear(draw: int, dataset: str, way: str) -> dict[str, Any]:
    train, test = _embedded(dataset, "train", POOL), _embedded(dataset, "test", TEST)
    order, classes = _first_rows(train.codes.tolist(), draw, dataset), len(train.classes)
    rows, accuracy, largest = order[: SIZES[0]], [], []
    for size, following in zip(SIZES, (*SIZES[1:], None), strict=True):
        both = np.concatenate([test.vectors, train.vectors])
        predicted = fitted(train.vectors[rows], train.codes[rows], both, classes, STRENGTH)
        accuracy.append(float((predicted[:TEST].argmax(1) == test.codes).mean()))
        if following is None:
            break
        free = np.setdiff1d(np.arange(POOL), rows)
        doubts = doubt(predicted[TEST:][free])
        if way == "random":
            chosen = order[size:following]
        elif way == "margin":
            chosen = free[np.argsort(-doubts, kind="stable")[: following - size]]
        else:
            chosen = free[spread_rows(train.vectors[free], doubts, following - size, seed=draw)]
        largest.append(float(np.bincount(train.codes[chosen]).max() / len(chosen)))
        rows = np.concatenate([rows, chosen])
    return {"accuracy": accuracy, "largest_class": largest}


def _game(draw: int, dataset: str, way: str) -> dict[str, Any]:
    texts, gold = texts_of(dataset, "train", POOL)
    test_texts, test_gold = texts_of(dataset, "test", TEST)
    order = _first_rows(gold, draw, dataset)

    def trained(rows: list[int], how: str) -> tuple[Any, pd.DataFrame, float]:
        known = set(rows)
        labels = [gold[row] if row in known else None for row in range(len(texts))]
        pool = pd.DataFrame({"text": texts, "label": labels})
        run = drift.fit(pool, text="text", label="label", labels_are=how, seed=draw, seeds=HEADS, quiet=True)
        right = [one == other for one, other in zip(run.predict(test_texts), test_gold, strict=True)]
        return run, pool, float(np.mean(right))

    rows = [int(row) for row in order[: SIZES[0]]]
    run, pool, score = trained(rows, "random")
    accuracy, largest = [score], []
    for size, following in pairwise(SIZES):
        chosen = [int(row) for row in order[size:following]]
        if way == "suggest":
            found = drift.suggest(run, pool, following - size, text="text", label="label", seed=draw)
            chosen = [each.row - 1 for each in found]
        rows += chosen
        largest.append(max(Counter(gold[row] for row in chosen).values()) / len(chosen))
        run, pool, score = trained(rows, "random" if way == "random" else "suggested")
        accuracy.append(score)
    return {"accuracy": accuracy, "largest_class": largest}


@cache
def _embedded(dataset: str, part: str, rows: int) -> Part:
    return embedded(dataset, part, rows)


def tables() -> None:
    lines = read_lines(LINES)
    headings = ["data", "rows", "draws", *(f"{size} labels" for size in SIZES), "largest class"]
    saved = table(["data", "random rows", "suggested rows for the same accuracy"], _saving_rows(lines))
    linear, game = (table(headings, _score_rows(lines, learner)) for learner in ("linear", "game"))
    replace_tables(PAGE, linear, saved, game)
    _draw_figure(lines)


def _curves(lines: list[dict[str, Any]], learner: str, dataset: str, way: str, what: str = "accuracy") -> np.ndarray:
    """Accuracy by draw and number of labels, of the draws that the ways have in common."""
    own = [line for line in lines if (line["learner"], line["dataset"]) == (learner, dataset)]
    by = {(line["draw"], line["way"]): line[what] for line in own}
    ways = {each for _, each in by}
    draws = [draw for draw in sorted({draw for draw, _ in by}) if all((draw, each) in by for each in ways)]
    return np.array([by[draw, way] for draw in draws if (draw, way) in by])


def _score_rows(lines: list[dict[str, Any]], learner: str) -> Iterator[list[str]]:
    for dataset, title in DATASETS.items():
        for way, name in WAYS.items():
            scores = 100 * _curves(lines, learner, dataset, way)
            if len(scores):
                spread = [f" ± {column.std(ddof=1):.1f}" if len(scores) > 1 else "" for column in scores.T]
                cells = [f"{column.mean():.1f}{each}" for column, each in zip(scores.T, spread, strict=True)]
                largest = 100 * _curves(lines, learner, dataset, way, "largest_class").mean()
                yield [title, name, str(len(scores)), *cells, f"{largest:.0f} %"]


def _saving_rows(lines: list[dict[str, Any]]) -> Iterator[list[str]]:
    for dataset, title in DATASETS.items():
        random, chosen = (_curves(lines, "linear", dataset, way).mean(0) for way in ("random", "suggest"))
        best = np.maximum.accumulate(chosen)  # so that it can be inverted
        for size, accuracy in zip(SIZES[1:], random[1:], strict=True):
            if accuracy > best[-1]:
                yield [title, str(size), f"more than {SIZES[-1]}"]
            else:
                yield [title, str(size), f"{np.exp(np.interp(accuracy, best, np.log(SIZES))):.0f}"]


def _draw_figure(lines: list[dict[str, Any]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(DATASETS), figsize=(10, 3.2), constrained_layout=True)
    for axis, (dataset, title) in zip(axes, DATASETS.items(), strict=True):
        for way, name in WAYS.items():
            scores = 100 * _curves(lines, "linear", dataset, way)
            error = scores.std(0, ddof=1) / np.sqrt(len(scores))
            axis.errorbar(SIZES, scores.mean(0), error, marker="o", capsize=3, label=name)
        axis.set(title=title, xlabel="labels", ylabel="test accuracy, %", xscale="log")
        axis.set_xticks(SIZES, map(str, SIZES))
        axis.minorticks_off()
    axes[0].legend()
    figure.savefig(FIGURE, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("linear", "game", "table"))
    parser.add_argument("--draws", type=int, default=10)
    options = parser.parse_args()
    if options.verb == "table":
        tables()
    else:
        run(options.verb, options.draws)


if __name__ == "__main__":
    main()
