"""Node classification as in the paper's appendix: every cell, ten seeds at once, beside the paper's figures.

    DRIFT_DATA=... python benchmarks/nodes.py run gcn|grand [--cells Cora-10,CiteSeer-20] [--profiles paper,laptop]
    python benchmarks/nodes.py study
    python benchmarks/nodes.py table

A cell is a graph and a number of labels a class, or `public` for the graph's own split. `run` adds a line a cell,
setting and method to docs/results/nodes.jsonl and skips those that are there; `study` tries α and τ on dev and writes
docs/results/nodes_study.jsonl; `table` writes docs/results/nodes.md. Dev, 500 nodes, chooses; test, 1,000, is scored
once a run.
"""

import argparse
import time
from itertools import product
from pathlib import Path
from typing import Any

from drift.experiments.statistics import mean_and_spread, paired_t
from drift.runs.fit import fit
from drift.runs.result import Run
from recorded import RESULTS, add_line, read_lines

LINES, STUDY, TABLE = RESULTS / "nodes.jsonl", RESULTS / "nodes_study.jsonl", RESULTS / "nodes.md"
GRAPHS, LABELS = ("Cora", "CiteSeer", "PubMed"), (10, 20, 50, 100)
CELLS = {
    "gcn": [f"{graph}-{labels}" for graph in GRAPHS for labels in LABELS],
    "grand": ["Cora-public", *(f"{graph}-{labels}" for graph in ("Cora", "CiteSeer") for labels in (10, 20))],
}
METHODS = ("supervised", "self-training", "drift")
# Table 5 of the paper: test accuracy in %, by graph and labels a class.
PAPER: dict[str, dict[str, tuple[float, ...]]] = {
    "gcn": {
        "supervised": (74.5, 77.4, 81.6, 85.1, 67.1, 69.5, 71.9, 74.9, 71.0, 75.1, 81.8, 84.8),
        "self-training": (74.4, 79.1, 83.5, 85.1, 70.5, 73.1, 75.1, 76.2, 71.8, 75.2, 82.5, 84.6),
        "drift": (80.4, 81.8, 84.6, 85.6, 74.4, 75.4, 75.9, 77.4, 72.8, 78.1, 83.3, 85.3),
    },
    "grand": {
        "supervised": (76.5, 84.3, 86.5, 87.2, 62.8, 73.3, 75.0, 77.8, 77.4, 78.5, 83.9, 86.2),
        "drift": (82.1, 85.4, 87.3, 87.9, 74.1, 76.0, 75.7, 78.5, 79.2, 79.3, 85.2, 86.8),
    },
}
STUDIED = {"alpha": (0.5, 0.9, 0.99), "tau": (0.25, 0.5, 0.8)}
STUDY_CELLS = ("Cora-10", "Cora-50", "CiteSeer-20", "PubMed-20")


def run(model: str, cell: str, method: str, profile: str, settings: dict[str, Any]) -> dict[str, Any]:
    """One line of results: ten seeds."""
    graph, _, labels = cell.rpartition("-")
    began = time.monotonic()
    done = fit(
        graph,
        task="nodes",
        labels_per_class=None if labels == "public" else int(labels),
        model=model,
        method=method,
        preset=graph.lower(),
        profile=profile,
        settings=settings,
        quiet=False,
    )
    assert isinstance(done, Run)
    metrics = done.metrics
    return {
        "model": model,
        "cell": cell,
        "method": method,
        **{part: [trial["accuracy"] for trial in metrics[part]["scores"]] for part in ("dev", "test")},
        "budget": metrics["label_budget"],
        "seconds": round(time.monotonic() - began, 1),
    }


def run_all(model: str, cells: list[str], profiles: list[str]) -> None:
    done = {(line["model"], line["cell"], line["profile"], line["method"]) for line in read_lines(LINES)}
    for cell, profile, method in product(cells, profiles, METHODS):
        if (model, cell, profile, method) not in done:
            add(LINES, run(model, cell, method, profile, {}) | {"profile": profile})


def study() -> None:
    done = {(line["cell"], line["alpha"], line["tau"]) for line in read_lines(STUDY)}
    for cell, alpha, tau in product(STUDY_CELLS, *STUDIED.values()):
        if (cell, alpha, tau) not in done:
            line = run("gcn", cell, "drift", "laptop", {"method": {"alpha": alpha, "tau": tau}})
            line.pop("test")  # what is chosen by it is chosen on dev alone
            add(STUDY, line | {"alpha": alpha, "tau": tau})


def add(file: Path, line: dict[str, Any]) -> None:
    add_line(file, line)
    told = {name: value for name, value in line.items() if name not in ("dev", "test", "budget")}
    print(told, *(mean_and_spread(line[part]) for part in ("dev", "test") if part in line), flush=True)


def paper_figure(model: str, method: str, cell: str) -> str:
    graph, _, labels = cell.rpartition("-")
    if labels == "public" or method not in PAPER[model]:
        return "-"
    return str(PAPER[model][method][len(LABELS) * GRAPHS.index(graph) + LABELS.index(int(labels))])


def write_table() -> None:
    found: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for line in read_lines(LINES):
        found.setdefault((line["model"], line["profile"], line["cell"]), {})[line["method"]] = line["test"]
    rows = [
        "# Node classification, beside the paper's figures",
        "",
        "Test accuracy in %, mean ± standard deviation of ten seeds, each with its own labelled nodes; in brackets the",
        "paper's table 5. Differences are paired, seed by seed, with their standard error and the p-value of a t-test.",
        "`paper` has the paper's α and τ, `laptop` what dev chose. Outside dev and test, two classes of Cora have",
        "fewer than 100 nodes: all are taken. `python benchmarks/nodes.py run gcn|grand`, then `table`.",
        "",
        "| model | setting | data | start | Self-training | DRIFT | DRIFT - Self-training | p |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (model, profile, cell), methods in found.items():
        if set(methods) == set(METHODS):
            shown = [f"{mean_and_spread(methods[m])} ({paper_figure(model, m, cell)})" for m in METHODS]
            over = paired_t(methods["drift"], methods["self-training"])
            rows.append(f"| {model} | {profile} | {cell} | {' | '.join(shown)} | {over.gap()} | {over.p_text()} |")
    TABLE.write_text("\n".join(rows) + "\n", encoding="utf-8")
    print("\n".join(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("model", choices=list(CELLS))
    runs.add_argument("--cells", default="", help="comma-separated; all of them if left out")
    runs.add_argument("--profiles", default="paper,laptop")
    commands.add_parser("study")
    commands.add_parser("table")
    options = parser.parse_args()
    if options.command == "table":
        write_table()
    elif options.command == "study":
        study()
    else:
        cells = options.cells.split(",") if options.cells else CELLS[options.model]
        run_all(options.model, cells, options.profiles.split(","))


if __name__ == "__main__":
    main()
