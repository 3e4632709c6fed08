"""Node classification: the public split of Cora, and the choice of settings. `drift bench graphs` is the paper's table.

    DRIFT_DATA=... python benchmarks/nodes.py public     Cora's public split: GCN and GRAND, with and without its loss
    DRIFT_DATA=... python benchmarks/nodes.py start      width and steps of the GCN that DRIFT starts from
    DRIFT_DATA=... python benchmarks/nodes.py study      α and τ of DRIFT+GCN, on dev only
    DRIFT_DATA=... python benchmarks/nodes.py tuned      every cell of the table, with α chosen on dev
    DRIFT_DATA=... python benchmarks/nodes.py drawn      random dev and test nodes instead of the public ones
    python benchmarks/nodes.py table                     update the tables in docs/results/nodes.md

Ten seeds at once. Lines are added to docs/results/nodes_*.jsonl; those that exist are not run again. The 500 nodes of
dev are used for selection; the 1,000 nodes of test are scored once per run.
"""

import argparse
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from drift.data.graphs import read_graph
from drift.paper.bench.catalogue import paper_figure
from drift.runs.comparing.statistics import paired_t
from drift.runs.fit import fit
from drift.tasks.scoring import mean_and_spread
from recorded import RESULTS, add_line, read_lines, replace_tables, table

PARTS = ("public", "start", "study", "tuned", "drawn")
PUBLIC, START, STUDY, CHOSEN, DRAWN = (RESULTS / f"nodes_{part}.jsonl" for part in PARTS)
ROWS: dict[str, tuple[str, str, dict[str, Any]]] = {  # model, method and other settings
    "GCN": ("gcn", "supervised", {}),
    "Self-training+GCN": ("gcn", "self-training", {}),
    "DRIFT+GCN": ("gcn", "drift", {}),
    "GRAND": ("grand", "supervised", {}),
    "GRAND, in the original order": ("grand", "supervised", {"model": {"reordered": False}, "seeds": 3}),
    "Self-training+GRAND": ("grand", "self-training", {}),
    "DRIFT+GRAND, its own loss on": ("grand", "drift", {"method": {"own_loss": True}}),
    "DRIFT+GRAND, its own loss off": ("grand", "drift", {"method": {"own_loss": False}}),
}
ALPHAS, TAUS = (0.5, 0.9, 0.99), (0.25, 0.5, 0.8)
COMPARED_METHODS = ("self-training", "drift")
TUNED = [(0.5, 1.0), (0.7, 1.0), (0.9, 1.0), (0.7, 3.0), (0.9, 3.0)]  # α, and the weight of the unlabelled term
TUNED_PUBMED = [(0.9, 1.0)]  # runs take minutes there; 3 was no better at 50 labels per class
CELLS = [f"{graph}-{labels}" for graph in ("Cora", "CiteSeer", "PubMed") for labels in (10, 20, 50, 100)]
STARTS = {
    "as in the original work": {"model": {"hidden": 16}, "training": {"initial_steps": 200}},
    "64 units": {"model": {"hidden": 64}, "training": {"initial_steps": 200}},
    "800 steps": {"model": {"hidden": 16}, "training": {"initial_steps": 800}},
}
START_CELLS = ("CiteSeer-10", "PubMed-100")
STUDY_CELLS = ("Cora-10", "Cora-50", "CiteSeer-10", "CiteSeer-50")


def run(cell: str, model: str, method: str, settings: dict[str, Any], *, drawn: bool = False) -> dict[str, Any]:
    """Scores of ten seeds.

    cell: a graph, and labels per class or `public` for the public split. settings: override the preset.
    drawn: dev and test nodes are drawn at random, once for all seeds.
    """
    graph, _, labels = cell.rpartition("-")
    began = time.monotonic()
    done = fit(
        replace(read_graph(graph), splits={}) if drawn else graph,
        task="nodes",
        labels_per_class=None if labels == "public" else int(labels),
        model=model,
        method=method,
        preset=graph.lower(),
        settings=settings,
        quiet=False,
    )
    scores = {part: [trial["accuracy"] for trial in done.record.scores_on(part).scores] for part in ("dev", "test")}
    return {"cell": cell, **scores, "seconds": round(time.monotonic() - began, 1)}


def public() -> None:
    done = {line["row"] for line in read_lines(PUBLIC)}
    for row, chosen in ROWS.items():
        if row not in done:
            add(PUBLIC, run("Cora-public", *chosen) | {"row": row})


def start() -> None:
    done = {(line["cell"], line["start"]) for line in read_lines(START)}
    for cell, (name, settings) in product(START_CELLS, STARTS.items()):
        if (cell, name) not in done:
            add(START, run(cell, "gcn", "supervised", settings) | {"start": name})


def drawn() -> None:
    done = {(line["cell"], line["method"]) for line in read_lines(DRAWN)}
    for cell, method in product(CELLS, ("supervised", *COMPARED_METHODS)):
        if (cell, method) not in done:
            add(DRAWN, run(cell, "gcn", method, {}, drawn=True) | {"method": method})


def study() -> None:
    done = {(line["cell"], line["alpha"], line["tau"]) for line in read_lines(STUDY)}
    for cell, alpha, tau in product(STUDY_CELLS, ALPHAS, TAUS):
        if (cell, alpha, tau) not in done:
            line = run(cell, "gcn", "drift", {"method": {"alpha": alpha, "tau": tau}})
            line.pop("test")  # settings are chosen on dev only
            add(STUDY, line | {"alpha": alpha, "tau": tau})


def tuned() -> None:
    done = {(line["cell"], line["method"], line["alpha"], line["weight"]) for line in read_lines(CHOSEN)}
    for cell, method in product(CELLS, COMPARED_METHODS):
        for alpha, weight in TUNED_PUBMED if cell.startswith("PubMed") else TUNED:
            if (cell, method, alpha, weight) not in done:
                line = run(cell, "gcn", method, {"method": {"alpha": alpha, "tau": 0.25, "unlabeled_weight": weight}})
                add(CHOSEN, line | {"method": method, "alpha": alpha, "weight": weight})


def chosen(cell: str, method: str) -> dict[str, Any] | None:
    """The line of the settings with the best mean dev score."""
    lines = [line for line in read_lines(CHOSEN) if (line["cell"], line["method"]) == (cell, method)]
    return max(lines, key=lambda line: sum(line["dev"]), default=None)


def add(file: Path, line: dict[str, Any]) -> None:
    add_line(file, line)
    settings = {name: value for name, value in line.items() if name not in ("dev", "test")}
    print(settings, *(mean_and_spread(line[part]) for part in ("dev", "test") if part in line), flush=True)


def write_tables() -> None:
    tables = [public_table(), start_table(), study_table(), tuned_table(), drawn_table()]
    replace_tables(RESULTS / "nodes.md", *tables)


def public_table() -> list[str]:
    lines = {line["row"]: line for line in read_lines(PUBLIC)}
    rows = [
        [row, *(mean_and_spread(lines[row][part]) for part in ("dev", "test")), lines[row]["seconds"]]
        for row in ROWS
        if row in lines
    ]
    return table(["", "dev", "test", "seconds"], rows)


def start_table() -> list[str]:
    lines = {(line["cell"], line["start"]): line for line in read_lines(START)}
    rows = []
    for cell in START_CELLS:
        if all((cell, name) in lines for name in STARTS):
            scores = [mean_and_spread(lines[cell, name][part]) for name in STARTS for part in ("dev", "test")]
            rows.append([cell, *scores, paper_figure("graphs", "GCN", cell.lower())])
    titles = [title for name in STARTS for title in (f"{name}, dev", "test")]
    return table(["", *titles, "the paper's GCN"], rows)


def study_table() -> list[str]:
    scores = {(line["cell"], line["alpha"], line["tau"]): mean_and_spread(line["dev"]) for line in read_lines(STUDY)}
    pairs = list(product(ALPHAS, TAUS))
    rows = [[cell, *(scores.get((cell, *pair), "-") for pair in pairs)] for cell in STUDY_CELLS]
    return table(["", *(f"α {alpha}, τ {tau}" for alpha, tau in pairs)], rows)


def tuned_table() -> list[str]:
    rows = []
    for cell in CELLS:
        both = [line for method in COMPARED_METHODS if (line := chosen(cell, method)) is not None]
        if len(both) == len(COMPARED_METHODS):
            scores = [
                text
                for line in both
                for text in (mean_and_spread(line["test"]), f"{line['alpha']}, {line['weight']:g}")
            ]
            difference = paired_t(both[1]["test"], both[0]["test"])
            paper = paper_figure("graphs", "DRIFT+GCN", cell.lower())
            rows.append([cell, *scores, paper, difference.gap(), difference.p_text()])
    titles = ["Self-training", "α, λ", "DRIFT", "α, λ", "the paper's DRIFT", "DRIFT - Self-training", "p"]
    return table(["", *titles], rows)


def drawn_table() -> list[str]:
    scores = {(line["cell"], line["method"]): mean_and_spread(line["test"]) for line in read_lines(DRAWN)}
    titles = {"supervised": "GCN", "self-training": "Self-training", "drift": "DRIFT+GCN"}
    rows = []
    for cell in [cell for cell in CELLS if (cell, "drift") in scores]:
        pairs = [
            (scores.get((cell, method), "-"), paper_figure("graphs", title, cell.lower()))
            for method, title in titles.items()
        ]
        rows.append([cell, *(score for pair in pairs for score in pair)])
    return table(["", "GCN", "the paper's", "Self-training", "the paper's", "DRIFT", "the paper's"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = {"public": public, "start": start, "study": study, "tuned": tuned, "drawn": drawn, "table": write_tables}
    parser.add_argument("command", choices=list(commands))
    commands[parser.parse_args().command]()


if __name__ == "__main__":
    main()
