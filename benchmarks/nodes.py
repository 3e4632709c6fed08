"""Node classification beside the paper's table, which `drift bench graphs` makes: the public split, and what was tried.

    DRIFT_DATA=... python benchmarks/nodes.py public     Cora's public split: GCN and GRAND, and GRAND's own loss
    DRIFT_DATA=... python benchmarks/nodes.py start      width and steps of the GCN that DRIFT starts from
    DRIFT_DATA=... python benchmarks/nodes.py study      α and τ of DRIFT+GCN, on dev alone
    DRIFT_DATA=... python benchmarks/nodes.py tuned      every cell of the table, with α chosen on dev
    DRIFT_DATA=... python benchmarks/nodes.py drawn      other dev and test nodes than the public ones
    python benchmarks/nodes.py table

Ten seeds at once. Lines are added to docs/results/nodes_*.jsonl, and those that are there are not run again; `table`
writes docs/results/nodes.md. Dev, 500 nodes, chooses; test, 1,000, is scored once a run.
"""

import argparse
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from drift.data.graphs import read_graph
from drift.paper.bench.paper import paper_figure
from drift.runs.comparing.statistics import paired_t
from drift.runs.fit import fit
from drift.runs.result import Run
from drift.tasks.scoring import mean_and_spread
from recorded import RESULTS, add_line, read_lines

PARTS = ("public", "start", "study", "tuned", "drawn")
PUBLIC, START, STUDY, CHOSEN, DRAWN = (RESULTS / f"nodes_{part}.jsonl" for part in PARTS)
TABLE = RESULTS / "nodes.md"
ROWS: dict[str, tuple[str, str, dict[str, Any]]] = {  # model, method and what else is set
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
TUNED_PUBMED = [(0.9, 1.0)]  # a run takes minutes there; 3 was no better at 50 labels a class
CELLS = [f"{graph}-{labels}" for graph in ("Cora", "CiteSeer", "PubMed") for labels in (10, 20, 50, 100)]
STARTS = {
    "as in the original work": {"model": {"hidden": 16}, "training": {"initial_steps": 200}},
    "64 units": {"model": {"hidden": 64}, "training": {"initial_steps": 200}},
    "800 steps": {"model": {"hidden": 16}, "training": {"initial_steps": 800}},
}
START_CELLS = ("CiteSeer-10", "PubMed-100")
STUDY_CELLS = ("Cora-10", "Cora-50", "CiteSeer-10", "CiteSeer-50")


def run(cell: str, model: str, method: str, settings: dict[str, Any], *, drawn: bool = False) -> dict[str, Any]:
    """Scores of ten seeds. cell: a graph and labels a class, or `public` for the graph's own split.

    drawn: dev and test nodes are drawn at random, once for all seeds, and not the public ones.
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
    assert isinstance(done, Run)
    scores = {part: [trial["accuracy"] for trial in done.metrics[part]["scores"]] for part in ("dev", "test")}
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
            line.pop("test")  # what is chosen by it is chosen on dev alone
            add(STUDY, line | {"alpha": alpha, "tau": tau})


def tuned() -> None:
    done = {(line["cell"], line["method"], line["alpha"], line["weight"]) for line in read_lines(CHOSEN)}
    for cell, method in product(CELLS, COMPARED_METHODS):
        for alpha, weight in TUNED_PUBMED if cell.startswith("PubMed") else TUNED:
            if (cell, method, alpha, weight) not in done:
                line = run(cell, "gcn", method, {"method": {"alpha": alpha, "tau": 0.25, "unlabeled_weight": weight}})
                add(CHOSEN, line | {"method": method, "alpha": alpha, "weight": weight})


def chosen(cell: str, method: str) -> dict[str, Any] | None:
    """The line of the setting whose mean dev score is best."""
    lines = [line for line in read_lines(CHOSEN) if (line["cell"], line["method"]) == (cell, method)]
    return max(lines, key=lambda line: sum(line["dev"]), default=None)


def add(file: Path, line: dict[str, Any]) -> None:
    add_line(file, line)
    told = {name: value for name, value in line.items() if name not in ("dev", "test")}
    print(told, *(mean_and_spread(line[part]) for part in ("dev", "test") if part in line), flush=True)


def _pairs(settings: list[tuple[float, float]]) -> str:
    return ", ".join(f"{alpha} and {weight:g}" for alpha, weight in settings)


def write_table() -> None:
    rows = [
        "# Nodes: the public split, and what was tried on dev",
        "",
        "Accuracy in %, mean ± standard deviation of ten seeds, three in the original order. The paper's table 5 is in",
        "[bench](bench/README.md).",
        "",
        "Cora's public split (`python benchmarks/nodes.py public`):",
        "",
        "| | dev | test | seconds |",
        "|---|---|---|---|",
    ]
    lines = {line["row"]: line for line in read_lines(PUBLIC)}
    for row in ROWS:
        if row in lines:
            scores = " | ".join(mean_and_spread(lines[row][part]) for part in ("dev", "test"))
            rows.append(f"| {row} | {scores} | {lines[row]['seconds']} |")
    rows += [
        "",
        "The GCN alone, dev and test (`python benchmarks/nodes.py start`):",
        "",
        f"| | {' | '.join(f'{name}, dev | test' for name in STARTS)} | the paper's GCN |",
        "|---" * (2 + 2 * len(STARTS)) + "|",
    ]
    starts = {(line["cell"], line["start"]): line for line in read_lines(START)}
    for cell in START_CELLS:
        found = [starts[cell, name] for name in STARTS if (cell, name) in starts]
        scores = [mean_and_spread(line[part]) for line in found for part in ("dev", "test")]
        if len(found) == len(STARTS):
            rows.append(f"| {cell} | {' | '.join(scores)} | {paper_figure('graphs', 'GCN', cell.lower())} |")
    rows += [
        "",
        "α and τ of DRIFT+GCN, on dev alone (`python benchmarks/nodes.py study`); the paper has α = 0.99, τ = 0.25 to",
        "0.29:",
        "",
        f"| | {' | '.join(f'α {alpha}, τ {tau}' for alpha, tau in product(ALPHAS, TAUS))} |",
        "|---" * (1 + len(ALPHAS) * len(TAUS)) + "|",
    ]
    found = {(line["cell"], line["alpha"], line["tau"]): mean_and_spread(line["dev"]) for line in read_lines(STUDY)}
    for cell in STUDY_CELLS:
        scores = " | ".join(found.get((cell, *pair), "-") for pair in product(ALPHAS, TAUS))
        rows.append(f"| {cell} | {scores} |")
    rows += [
        "",
        "α and the weight λ of the unlabelled term for either method, the best mean on dev, cell by cell, τ = 0.25",
        f"(`python benchmarks/nodes.py tuned`). Tried: {_pairs(TUNED)}; on PubMed {_pairs(TUNED_PUBMED)}:",
        "",
        "| | Self-training | α, λ | DRIFT | α, λ | the paper's DRIFT | DRIFT - Self-training | p |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for cell in CELLS:
        both = [line for method in COMPARED_METHODS if (line := chosen(cell, method)) is not None]
        if len(both) == len(COMPARED_METHODS):
            shown = " | ".join(
                f"{mean_and_spread(line['test'])} | {line['alpha']}, {line['weight']:g}" for line in both
            )
            over = paired_t(both[1]["test"], both[0]["test"])
            paper = paper_figure("graphs", "DRIFT+GCN", cell.lower())
            rows.append(f"| {cell} | {shown} | {paper} | {over.gap()} | {over.p_text()} |")
    rows += [
        "",
        "Dev and test drawn at random, 500 and 1,000 nodes, once for all seeds (`python benchmarks/nodes.py drawn`);",
        "the paper does not say which nodes its own are:",
        "",
        "| | GCN | the paper's | Self-training | the paper's | DRIFT | the paper's |",
        "|---|---|---|---|---|---|---|",
    ]
    scored = {(line["cell"], line["method"]): mean_and_spread(line["test"]) for line in read_lines(DRAWN)}
    titles = {"supervised": "GCN", "self-training": "Self-training", "drift": "DRIFT+GCN"}
    for cell in [cell for cell in CELLS if (cell, "drift") in scored]:
        pairs = [
            f"{scored.get((cell, method), '-')} | {paper_figure('graphs', title, cell.lower())}"
            for method, title in titles.items()
        ]
        rows.append(f"| {cell} | {' | '.join(pairs)} |")
    TABLE.write_text("\n".join(rows) + "\n", encoding="utf-8")
    print("\n".join(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = {"public": public, "start": start, "study": study, "tuned": tuned, "drawn": drawn, "table": write_table}
    parser.add_argument("command", choices=list(commands))
    commands[parser.parse_args().command]()


if __name__ == "__main__":
    main()
