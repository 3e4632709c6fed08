"""`DriftClassifier` on tables of your own with skewed classes: all labels are known and most of them are hidden.

    python benchmarks/kept_apart_vectors.py TABLE.csv ... [--label label] [--draws 3]

judges the defaults on data that nobody chose them on. All columns but the label are numbers. Each draw takes up to
2,500 rows and keeps labels for 10 or 20 random rows, with every class present, or for 5 rows per class; the others are
predicted. Scores are added to docs/results/skewed_vectors.jsonl; scores that exist are not computed again. `python
benchmarks/vectors.py --render` shows them in docs/results/vectors.md.
"""

import argparse
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import f1_score

from default_suite import labeled_rows
from drift import DriftClassifier
from drift.data.labels import UNLABELED
from recorded import RESULTS, add_line, read_lines, table
from vectors import METHODS, OURS, START

LINES = RESULTS / "skewed_vectors.jsonl"
MOST_ROWS = 2500
CHOICES = [("random", 10), ("random", 20), ("per class", 5)]
PEERS = ["LogisticRegression, scaled", "SelfTraining (logistic), scaled"]
COLUMNS = ["commonest class", START, OURS, *PEERS]


def measure(rows: np.ndarray, codes: np.ndarray, how: str, labels: int, draw: int) -> dict[str, Any]:
    """Accuracy and macro-F1 of every method on the unlabelled rows of one draw."""
    rng = np.random.default_rng([draw, labels])
    chosen = rng.permutation(len(codes))[:MOST_ROWS]
    X, y = rows[chosen], codes[chosen]
    classes = np.unique(codes)
    given = labeled_rows(y, classes, how, labels, labels, rng)
    while len(np.unique(y[given])) < len(classes):
        given = labeled_rows(y, classes, how, labels, labels, rng)
    few = np.full(len(y), UNLABELED)
    few[given] = y[given]
    pool = few == UNLABELED
    ours = DriftClassifier(random_state=draw).fit(X, few)
    models = {
        START: DriftClassifier(random_state=draw, steps=0).fit(X, few),
        OURS: ours,
        **{name: METHODS[name](draw).fit(X, few) for name in PEERS},
    }
    answers = {name: model.predict(X[pool]) for name, model in models.items()}
    answers["commonest class"] = np.full(pool.sum(), np.bincount(y).argmax())
    scores = {
        name: {
            "accuracy": float((predicted == y[pool]).mean()),
            "macro_f1": float(f1_score(y[pool], predicted, average="macro")),
        }
        for name, predicted in answers.items()
    }
    counts = np.bincount(y[given], minlength=len(classes)).tolist()
    return {"rarest": float(np.bincount(y).min() / len(y)), "counts": counts, "kept": ours.kept_, "scores": scores}


def run(file: Path, label: str, draws: int) -> None:
    """Measure what is missing of one table."""
    frame = pd.read_csv(file)
    if label not in frame:
        raise SystemExit(f"{file} has no column {label!r}; its columns: {', '.join(frame.columns)}")
    codes = pd.factorize(frame[label], sort=True)[0]
    rows = frame.drop(columns=label).to_numpy(dtype=float)
    done = {(line["table"], line["how"], line["labels"], line["draw"]) for line in read_lines(LINES)}
    for draw in range(draws):
        for how, labels in CHOICES:
            if (file.stem, how, labels, draw) not in done:
                place = {"table": file.stem, "how": how, "labels": labels, "draw": draw}
                line = {**place, **measure(rows, codes, how, labels, draw)}
                add_line(LINES, line)
                print(
                    place,
                    line["counts"],
                    line["kept"],
                    {k: round(100 * v["accuracy"], 1) for k, v in line["scores"].items()},
                )


def section() -> list[str]:
    """The table of accuracy / macro-F1, empty without scores."""
    cells = defaultdict(list)
    for line in read_lines(LINES):
        cells[line["table"], line["how"], line["labels"]].append(line)
    rows = [
        [name, f"{100 * np.mean([line['rarest'] for line in lines]):.0f} %", f"{labels} {how}", len(lines)]
        + [" / ".join(_mean(lines, column, measure) for measure in ("accuracy", "macro_f1")) for column in COLUMNS]
        for (name, how, labels), lines in sorted(cells.items())
    ]
    gains = [100 * (line["scores"][OURS]["accuracy"] - line["scores"][START]["accuracy"]) for line in read_lines(LINES)]
    if not rows:
        return []
    return [
        *table(["table", "rarest class", "labels", "draws", *COLUMNS], rows),
        "",
        f"Against its own start: {np.mean(gains):+.2f} points of accuracy on average, {min(gains):+.1f} in the worst of"
        f" {len(gains)} draws; {sum(gain < -1 for gain in gains)} are more than 1 point below.",
    ]


def _mean(lines: list[dict[str, Any]], column: str, measure: str) -> str:
    return f"{100 * np.mean([line['scores'][column][measure] for line in lines]):.1f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--label", default="label", help="column with the labels")
    parser.add_argument("--draws", type=int, default=3)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")  # of classes of unknown share, and of convergence
    for file in arguments.tables:
        run(file, arguments.label, arguments.draws)
