"""Runs of `drift fit` on graphs that are no part of this project and on which no default was chosen.

    drift fit --task nodes --graph GRAPH.npz --labels-per-class 10 --seeds 3 -o RUN      # nothing else
    python benchmarks/kept_apart_graphs.py add RUN --name "co-purchases" --degree 20.9 --features "767, 35 % are 1"

adds the scores of a finished run to docs/results/graph_kept_apart.jsonl, from its record. `benchmarks/graph_defaults.py
table` shows them.
"""

import argparse
import json
from pathlib import Path

from drift.tasks.scoring import mean_and_spread
from recorded import RESULTS, add_line, read_lines, table

LINES = RESULTS / "graph_kept_apart.jsonl"


def add(run: Path, name: str, degree: float, features: str) -> None:
    record = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    test = record["test"]
    line = {
        "graph": name,
        "nodes": record["training_rows"],
        "degree": degree,
        "features": features,
        "classes": len(record["classes"]),
        "labels": record["label_budget"]["train"],
        "majority": test["baselines"]["majority class"]["accuracy"],
        "start": [score["accuracy"] for score in test["start"]],
        "scores": [score["accuracy"] for score in test["scores"]],
        "ends": record["phases"],
    }
    add_line(LINES, line)


def section() -> list[str]:
    """The table of accuracies, mean ± standard deviation over seeds."""
    rows = []
    for line in read_lines(LINES):
        ends = ", ".join(f"{end['phase']} {end['steps']}" for end in line["ends"])
        shape = [f"{line['nodes']:,}", line["degree"], line["features"], line["classes"], line["labels"]]
        scores = [f"{100 * line['majority']:.1f}", mean_and_spread(line["start"]), mean_and_spread(line["scores"])]
        rows.append([line["graph"], *shape, len(line["scores"]), *scores, ends])
    shape = ["nodes", "mean degree", "features", "classes", "labels in all", "seeds"]
    return table(["graph", *shape, "majority class", "start", "DRIFT", "steps"], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["add", "show"])
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--name", default="")
    parser.add_argument("--degree", type=float, help="mean degree")
    parser.add_argument("--features", default="", help="in words")
    arguments = parser.parse_args()
    if arguments.command == "add":
        add(arguments.run, arguments.name, arguments.degree, arguments.features)
    print("\n".join(section()))
