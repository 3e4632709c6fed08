"""How well `drift curve` foresees accuracy: from 200 labels to 400 and 800, on three datasets.

    DRIFT_DATA=... python benchmarks/curve.py run
    python benchmarks/curve.py table

`run` adds one line per dataset and draw of labels to docs/results/curve.jsonl and skips those that exist. `table`
updates the table in docs/results/check.md. What is foreseen is compared with a classifier that is trained on so many
labels and scored on test rows.
"""

import argparse
from typing import Any

import numpy as np

from cached_texts import embedded
from drift.quality.crossfit import chosen_strength, fitted, folds_of
from drift.quality.curves import learning_curve
from recorded import RESULTS, add_line, read_lines, replace_tables, table

LINES, PAGE = RESULTS / "curve.jsonl", RESULTS / "check.md"
DATASETS = {"agnews": "AG News", "amazon": "Amazon", "yelp": "Yelp"}
TRAIN, TEST, DRAWS, LABELS = 2500, 1000, 5, 200


def run() -> None:
    done = {(line["dataset"], line["draw"]) for line in read_lines(LINES)}
    for dataset in DATASETS:
        train, test = embedded(dataset, "train", TRAIN), embedded(dataset, "test", TEST)
        for draw in range(DRAWS):
            if (dataset, draw) in done:
                continue
            order = np.random.default_rng(draw).permutation(TRAIN)
            x, y = train.vectors[order], train.codes[order]
            drawn = learning_curve(x[:LABELS], y[:LABELS], len(train.classes), name=dataset, seed=draw)
            line: dict[str, Any] = {"dataset": dataset, "draw": draw, "foreseen": [], "measured": []}
            for point in drawn.points:
                if not point.measured:
                    line["foreseen"].append([point.labels, point.accuracy, point.low, point.high])
                    line["measured"].append(_accuracy(x[: point.labels], y[: point.labels], test))
            add_line(LINES, line)
            print(line, flush=True)


def _accuracy(vectors: np.ndarray, codes: np.ndarray, test: Any) -> float:
    classes = len(test.classes)
    strength = chosen_strength(vectors, codes, folds_of(vectors, codes, 5, 0), classes, seed=0)
    return float((fitted(vectors, codes, test.vectors, classes, strength).argmax(1) == test.codes).mean())


def tables() -> None:
    rows, lines = [], read_lines(LINES)
    for dataset, title in DATASETS.items():
        cell = [line for line in lines if line["dataset"] == dataset]
        for place in range(len(cell[0]["foreseen"]) if cell else 0):
            foreseen = np.array([line["foreseen"][place] for line in cell])
            measured = np.array([line["measured"][place] for line in cell])
            inside = ((foreseen[:, 2] <= measured) & (measured <= foreseen[:, 3])).sum()
            cells = [f"{100 * values.mean():.1f}" for values in (foreseen[:, 1], measured)]
            miss = f"{100 * np.abs(foreseen[:, 1] - measured).mean():.1f}"
            rows.append([title, f"{foreseen[0, 0]:.0f}", *cells, miss, f"{inside} of {len(cell)}"])
    headings = ["data", "labels", "foreseen", "measured on test", "mean difference", "within the 90 % interval"]
    replace_tables(PAGE, table(headings, rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("run", "table"))
    run() if parser.parse_args().verb == "run" else tables()


if __name__ == "__main__":
    main()
