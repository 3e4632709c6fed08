"""Class names on a table of your own, with all its labels known and all of them hidden.

    python benchmarks/own_names.py TABLE --name NAME --classes NAMES|FILE [--rename FILE] [--draws 3]

TABLE is any file with texts and labels; a draw takes up to 3,000 rows to train, without their labels, and up to 2,000
to test. FILE with classes is as for `drift fit --classes`; --rename is a YAML file {label: name of the class}. Scores
are added to docs/results/own_names.jsonl; draws that exist are skipped. `benchmarks/names.py render` shows them in
docs/results/names.md.
"""

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from recorded import RESULTS, add_line, read_lines, table

LINES = RESULTS / "own_names.jsonl"
TRAIN, TEST = 3000, 2000
WARNING = "warning: "


def measure(rows: pd.DataFrame, classes: Any, number: int) -> dict[str, Any]:
    """Scores of a run from class names alone, and what it warns of."""
    import drift
    from drift.tasks.text.labeling import label_by_names

    shuffled = rows.iloc[np.random.default_rng(number).permutation(len(rows))].reset_index(drop=True)
    size = min(TRAIN, len(rows) // 2)
    train, test = shuffled[:size], shuffled[size : size + TEST]
    named = label_by_names(train, classes, text="text", gold="label")
    run = drift.fit(train.assign(label=None), test=test, text="text", label="label", classes=classes, quiet=True)
    scores = run.metrics["test"]
    return {
        "draw": number,
        "classes": len(run.classes),
        "rows": size,
        "labeled": named.accuracy.count / named.accuracy.of,
        "majority": scores["baselines"]["majority class"]["accuracy"],
        "start": scores["start_model"],
        "result": scores["model"],
        "warnings": [note.removeprefix(WARNING) for note in named.notes if note.startswith(WARNING)],
    }


def section() -> list[str]:
    """The table for the page on class names."""
    cells = defaultdict(list)
    for line in read_lines(LINES):
        cells[line["table"], line["source"]].append(line)
    rows = [
        [
            *(*cell, lines[0]["classes"], len(lines)),
            *(percent([line[name] for line in lines]) for name in ("majority", "labeled")),
            *(percent([line[name]["accuracy"] for line in lines]) for name in ("start", "result")),
            percent([line["result"]["macro_f1"] for line in lines]),
            f"{sum(bool(line['warnings']) for line in lines)} of {len(lines)}",
        ]
        for cell, lines in cells.items()
    ]
    headings = ["texts", "source", "classes", "draws", "majority class", "labelled", "start", "result", "macro-F1"]
    return [*table([*headings, "warned"], rows), ""] if rows else []


def percent(values: list[float]) -> str:
    """Mean ± standard deviation."""
    spread = f" ± {100 * np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
    return f"{100 * np.mean(values):.1f}{spread}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--name", required=True, help="of the texts, for the table of results")
    parser.add_argument("--classes", required=True)
    parser.add_argument("--rename", type=Path)
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    rows = pd.read_csv(options.table)[["text", "label"]].astype(str)
    if options.rename:
        names = {str(label): str(name) for label, name in yaml.safe_load(options.rename.read_text()).items()}
        rows["label"] = rows["label"].map(names)
        rows = rows.dropna().reset_index(drop=True)
    source = "descriptions" if options.classes.endswith((".yaml", ".yml")) else "names"
    done = {(line["table"], line["source"], line["draw"]) for line in read_lines(LINES)}
    for number in range(options.draws):
        if (options.name, source, number) not in done:
            line = {"table": options.name, "source": source, **measure(rows, options.classes, number)}
            add_line(LINES, line)
            print(line, flush=True)


if __name__ == "__main__":
    main()
