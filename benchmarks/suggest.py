"""Labels that `drift suggest` saves against random rows: accuracy of `drift fit` with 10 to 100 labels.

    DRIFT_DATA=... python benchmarks/suggest.py run [--draws 10]
    python benchmarks/suggest.py table

A draw begins with 10 random labels, the same for both ways. Then rows are labelled in rounds, chosen at random or by
`drift suggest` with the run before. `run` adds one line per draw, dataset and way to docs/results/suggest.jsonl and
skips those that exist. `table` updates the tables in docs/results/suggest.md and the figure beside it.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

import drift
from cached_texts import texts_of
from recorded import RESULTS, add_line, read_lines, replace_tables, table

LINES, PAGE, FIGURE = RESULTS / "suggest.jsonl", RESULTS / "suggest.md", RESULTS / "suggest.png"
DATASETS = {"agnews": "AG News", "amazon": "Amazon", "yelp": "Yelp"}
POOL, TEST, HEADS = 1500, 1000, 3
SIZES = (10, 20, 50, 100)
WAYS = {"random": "random", "suggest": "drift suggest"}


def run(draws: int) -> None:
    done = {(line["draw"], line["dataset"]) for line in read_lines(LINES)}
    for draw in range(draws):
        for dataset in DATASETS:
            if (draw, dataset) not in done:
                for line in _curves_of(draw, dataset):
                    add_line(LINES, line)
                    print(line, flush=True)


def _curves_of(draw: int, dataset: str) -> list[dict[str, Any]]:
    """Both curves of a draw, which begin with the same run."""
    texts, gold = texts_of(dataset, "train", POOL)
    test_texts, test_gold = texts_of(dataset, "test", TEST)
    rng = np.random.default_rng([draw, len(dataset)])
    order = rng.permutation(len(texts))
    while len({gold[row] for row in order[: SIZES[0]]}) < 2:  # a classifier needs two classes
        order = rng.permutation(len(texts))

    def fitted(rows: list[int], how: str) -> tuple[Any, pd.DataFrame, float]:
        labels = [gold[row] if row in known else None for known in [set(rows)] for row in range(len(texts))]
        pool = pd.DataFrame({"text": texts, "label": labels})
        run = drift.fit(pool, text="text", label="label", labels_are=how, seed=draw, seeds=HEADS, quiet=True)
        right = [one == other for one, other in zip(run.predict(test_texts), test_gold, strict=True)]
        return run, pool, float(np.mean(right))

    first = [int(row) for row in order[: SIZES[0]]]
    start = fitted(first, "random")
    lines = []
    for way in WAYS:
        rows, (run, pool, accuracy) = list(first), start
        line: dict[str, Any] = {"draw": draw, "dataset": dataset, "way": way, "accuracy": [accuracy]}
        line["largest_class"] = []
        for size, following in pairwise(SIZES):
            if way == "random":
                chosen = [int(row) for row in order[size:following]]
            else:
                found = drift.suggest(run, pool, following - size, text="text", label="label", seed=draw)
                chosen = [each.row - 1 for each in found]
            rows += chosen
            line["largest_class"].append(max(Counter(gold[row] for row in chosen).values()) / len(chosen))
            run, pool, accuracy = fitted(rows, "random" if way == "random" else "per-class")
            line["accuracy"].append(accuracy)
        lines.append(line)
    return lines


def tables() -> None:
    lines = read_lines(LINES)
    replace_tables(
        PAGE,
        table(["data", "rows", "draws", *(f"{size} labels" for size in SIZES)], _score_rows(lines)),
        table(["data", "random rows", "suggested rows for the same accuracy"], _saving_rows(lines)),
    )
    _draw_figure(lines)


def _curves(lines: list[dict[str, Any]], dataset: str, way: str) -> np.ndarray:
    """Accuracy by draw and number of labels, of the draws that both ways have."""
    by = {(line["draw"], line["way"]): line["accuracy"] for line in lines if line["dataset"] == dataset}
    draws = [draw for draw in sorted({draw for draw, _ in by}) if all((draw, each) in by for each in WAYS)]
    return np.array([by[draw, way] for draw in draws])


def _score_rows(lines: list[dict[str, Any]]) -> Iterator[list[str]]:
    for dataset, title in DATASETS.items():
        for way, name in WAYS.items():
            scores = 100 * _curves(lines, dataset, way)
            cells = [f"{column.mean():.1f} ± {column.std(ddof=1):.1f}" for column in scores.T]
            yield [title, name, str(len(scores)), *cells]


def _saving_rows(lines: list[dict[str, Any]]) -> Iterator[list[str]]:
    for dataset, title in DATASETS.items():
        random, chosen = (_curves(lines, dataset, way).mean(0) for way in WAYS)
        best = np.maximum.accumulate(chosen)  # so that it can be inverted
        for size, accuracy in zip(SIZES[1:], random[1:], strict=True):
            if accuracy > best[-1]:
                yield [title, str(size), f"more than {SIZES[-1]}"]
            else:
                needed = np.exp(np.interp(accuracy, best, np.log(SIZES)))
                yield [title, str(size), f"{needed:.0f}"]


def _draw_figure(lines: list[dict[str, Any]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(DATASETS), figsize=(10, 3.2), constrained_layout=True)
    for axis, (dataset, title) in zip(axes, DATASETS.items(), strict=True):
        for way, name in WAYS.items():
            scores = 100 * _curves(lines, dataset, way)
            spread = scores.std(0, ddof=1) / np.sqrt(len(scores))
            axis.errorbar(SIZES, scores.mean(0), spread, marker="o", capsize=3, label=name)
        axis.set(title=title, xlabel="labels", ylabel="test accuracy, %", xscale="log", xticks=SIZES)
        axis.set_xticklabels(map(str, SIZES))
        axis.minorticks_off()
    axes[0].legend()
    figure.savefig(FIGURE, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("run", "table"))
    parser.add_argument("--draws", type=int, default=10)
    options = parser.parse_args()
    if options.verb == "run":
        run(options.draws)
    else:
        tables()


if __name__ == "__main__":
    main()
