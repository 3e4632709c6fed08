"""Plain `drift fit` on a table of your own, with all its labels known and most of them hidden.

    python benchmarks/kept_apart.py run TABLE [--name NAME] [--text text] [--label label] [--draws 5]
    python benchmarks/kept_apart.py show

judges the defaults on data that nobody chose them on: TABLE is any file that `drift fit` reads, with a label in every
row. Each draw takes up to 2,500 rows to train and up to 1,000 to test, with the classes as common as they are; classes
with fewer than 40 rows in training are left out. Labels are kept for 5 or 10 rows per class, or for 20 random rows (for
5 times as many as there are classes, if these are more than 4).
Scores are added to docs/results/kept_apart.jsonl; scores that exist are not computed again. `benchmarks/default.py
render` shows them in docs/results/default.md.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from default_suite import LEAST, SIZES, Draw, labeled_rows
from recorded import RESULTS, add_line, read_lines, table

LINES = RESULTS / "kept_apart.jsonl"
COLUMNS = ["start", "drift fit", "true shares", "logistic regression", "SelfTrainingClassifier", "LabelSpreading"]
CHOICES = [("per class", 5), ("per class", 10), ("random", 5)]
LEAST_RANDOM = 20


def draw(rows: pd.DataFrame, how: str, labels: int, number: int) -> Draw:
    """One draw: other rows to train and test, and other labels, for each number."""
    rng = np.random.default_rng([number, labels])
    shuffled = rows.iloc[rng.permutation(len(rows))].reset_index(drop=True)
    size = min(SIZES["train"], len(rows) * 3 // 4)
    train, test = shuffled[:size], shuffled[size : size + SIZES["test"]]
    counts = train["label"].value_counts()
    train, test = (part[part["label"].map(counts).fillna(0) >= LEAST].reset_index(drop=True) for part in (train, test))
    gold = train["label"].to_numpy()
    classes = np.array(sorted(set(gold)))
    chosen = labeled_rows(gold, classes, how, labels, max(LEAST_RANDOM, labels * len(classes)), rng)
    visible = np.full(len(train), "", dtype=object)
    visible[chosen] = gold[chosen]
    return Draw(pd.DataFrame({"text": train["text"], "label": visible}), test, test[:0], list(gold))


def run(rows: pd.DataFrame, name: str, numbers: range, true_shares: bool) -> None:
    """Measure what is missing: all choices of labels of the first draw, then of the second."""
    from default import all_scores

    done = {(line["table"], line["how"], line["labels"], line["draw"]) for line in read_lines(LINES)}
    for number in numbers:
        for how, labels in CHOICES:
            if (name, how, labels, number) in done:
                continue
            tables = draw(rows, how, labels, number)
            scores = all_scores(tables, true_shares=true_shares, with_dev=False)
            line = {"table": name, "how": how, "labels": labels, "draw": number, "classes": len(tables.shares)}
            line["given"] = int((tables.train["label"] != "").sum())
            add_line(LINES, {**line, "largest": round(max(tables.shares.values()), 4), "scores": scores})
            print(name, labels, how, number, {k: round(100 * v["accuracy"], 1) for k, v in scores.items()}, flush=True)


def section() -> list[str]:
    """The tables of accuracy and macro-F1, and how often a result is below its start."""
    cells = defaultdict(list)
    for line in read_lines(LINES):
        cells[line["table"], line["how"], line["labels"]].append(line)
    text = []
    for measure, title in (("accuracy", "Accuracy"), ("macro_f1", "Macro-F1")):
        rows = []
        for (name, how, labels), lines in sorted(cells.items()):
            scores = [_mean([line["scores"].get(column, {}).get(measure) for line in lines]) for column in COLUMNS]
            largest = f"{100 * np.mean([line['largest'] for line in lines]):.0f} %"
            found = [line["classes"] for line in lines]
            several = how == "per class" or len({*found}) > 1
            given = f"{labels if several else lines[0]['given']} {how}"
            classes = str(min(found)) if min(found) == max(found) else f"{min(found)} to {max(found)}"
            rows.append([name, classes, largest, given, len(lines), *scores])
        text += [f"{title}:", "", *table(["table", "classes", "largest", "labels", "draws", *COLUMNS], rows), ""]
    gains = {
        other: [line["scores"]["drift fit"]["accuracy"] - line["scores"][other]["accuracy"] for _, line in _all(cells)]
        for other in ("start", "SelfTrainingClassifier")
    }
    if not cells:
        return []
    return [
        *text,
        f"Of {len(gains['start'])} single draws, {_below(gains['start'])} are more than 1 point of accuracy below their"
        f" start and {_below(gains['SelfTrainingClassifier'])} below SelfTrainingClassifier.",
    ]


def _all(cells: dict[Any, list[dict[str, Any]]]) -> Iterator[tuple[Any, dict[str, Any]]]:
    return ((cell, line) for cell, lines in cells.items() for line in lines)


def _below(gains: list[float]) -> int:
    return sum(gain < -0.01 for gain in gains)


def _mean(values: list[float | None]) -> str:
    """Mean and deviation in %; empty if a draw was run without this column."""
    if None in values:
        return ""
    values = [100 * value for value in values]
    return f"{np.mean(values):.1f}" + (f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else "")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "show"])
    parser.add_argument("table", type=Path, nargs="?")
    parser.add_argument("--name", help="name of the table on the page (default: of the file)")
    parser.add_argument("--text", default="text", help="column with the texts")
    parser.add_argument("--label", default="label", help="column with the labels")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--true-shares", action="store_true", help="repeat each run with the true class shares")
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    arguments = parser.parse_args()
    if arguments.command == "show":
        print("\n".join(section()))
    else:
        if arguments.table is None:
            parser.error("name the table to read")
        rows = pd.read_csv(arguments.table, dtype=str, keep_default_na=False)
        missing = {arguments.text, arguments.label} - set(rows.columns)
        if missing:
            parser.error(f"{arguments.table} has no column {missing.pop()!r}; its columns: {', '.join(rows.columns)}")
        rows = rows.rename(columns={arguments.text: "text", arguments.label: "label"})[["text", "label"]]
        numbers = range(arguments.first, arguments.first + arguments.draws)
        run(rows[rows["label"] != ""], arguments.name or arguments.table.stem, numbers, arguments.true_shares)
