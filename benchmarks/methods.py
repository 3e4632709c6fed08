"""Every method on real data, compared with the supervised start, and the cost of its steps.

    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/methods.py run [--methods uda,graphvat]
    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/methods.py speed
    python benchmarks/methods.py table

Methods for texts are trained on AG News with 30 labels per class, or with rules if they are made for weak labels;
methods for graphs on Cora with 20 labels per class; methods for words on Wikigold with weak tags. Three seeds, the
laptop presets, all choices made on dev. `run` adds one line per method and cell to docs/results/methods.jsonl and skips
those that exist. `speed` times steps of a fine-tuned paraphrase-MiniLM-L3-v2, or of a GCN, against supervised steps,
interleaved. `table` updates the tables in docs/results/methods.md.
"""

import argparse
import os
import statistics
import time
from itertools import product
from pathlib import Path
from typing import Any

from drift.methods import METHODS
from drift.methods.method import GRAPH
from drift.runs.comparing.statistics import paired_t
from drift.runs.fit import fit, plan
from drift.tasks.scoring import mean_and_spread
from recorded import RESULTS, add_line, read_lines, replace_tables, table

LINES, SPEED, PAGE = RESULTS / "methods.jsonl", RESULTS / "methods_speed.jsonl", RESULTS / "methods.md"
FROM_RULES = ("westclass", "bond")
START = "supervised"
ON_TEXT = ("drift", "self-training", "hard-self-training", "train-on-dev", "mean-teacher", "uast", "vampire")
CELLS: dict[str, tuple[str, ...]] = {
    "agnews-30": (START, *ON_TEXT, "uda", "mixtext", "cosine"),
    "agnews-weak": (START, "drift", "self-training", *FROM_RULES, "cosine"),
    "cora-20": (START, "drift", "self-training", "mean-teacher", "graphvat", "graphmix"),
    "wikigold": (START, "drift", "self-training", "uast", "bond"),
}
SEEDS, TIMED = 3, 3
FEWER = {"uast": {"sample": 64, "chosen": 32, "passes": 2}}  # its passes over all rows are not timed


def options(cell: str) -> dict[str, Any]:
    """Arguments of `drift.fit` for a cell."""
    name, _, setting = cell.partition("-")
    if name == "cora":
        return {"train": "Cora", "task": "nodes", "labels_per_class": int(setting), "preset": "cora"}
    folder = Path(os.environ["DRIFT_DATA"]) / name
    parts = {"train": folder / "train.jsonl.gz", "dev": folder / "dev.jsonl.gz", "test": folder / "test.jsonl.gz"}
    if name == "wikigold":
        model = "granite-embedding-30m-english"
        return {**parts, "task": "tokens", "weak": "weak", "model": model, "finetune": False, "preset": name}
    labels = {"weak": "weak"} if setting == "weak" else {"labels_per_class": int(setting)}
    return {**parts, **labels, "finetune": False, "text": "text", "label": "label", "preset": name}


def run(cell: str, method: str) -> dict[str, Any]:
    """One line of results."""
    chosen = options(cell)
    rows = {"train_rows": 15000, "dev_rows": 500, "test_rows": 4000} if cell.startswith("agnews") else {}
    single = METHODS[method].model is not None  # it has its own model, and runs have one seed
    if single:
        chosen |= {"finetune": None}
    train, began = chosen.pop("train"), time.monotonic()
    runs = [
        fit(train, **chosen, method=method, seed=seed, seeds=SEEDS, settings={"data": rows}, quiet=False)
        for seed in range(SEEDS if single else 1)
    ]
    measure = "f1" if cell == "wikigold" else "accuracy"
    scores: dict[str, list[float]] = {"dev": [], "test": []}
    for done, part in product(runs, scores):
        if (held_out := done.record.scores_on(part)) is not None:
            scores[part] += [trial[measure] for trial in held_out.scores]
    return {"cell": cell, "method": method, **scores, "seconds": round(time.monotonic() - began, 1)}


def run_all(methods: list[str]) -> None:
    done = {(line["cell"], line["method"]) for line in read_lines(LINES)}
    for cell, all_methods in CELLS.items():
        for method in all_methods:
            if (cell, method) not in done and (not methods or method in methods):
                line = run(cell, method)
                add_line(LINES, line)
                print(cell, method, mean_and_spread(line["test"]), f"{line['seconds']} s", flush=True)


def seconds_of_steps(method: str) -> tuple[float, float]:
    """Seconds of a supervised step and of a step of the method, with as many labelled as unlabelled rows."""
    on_graph = GRAPH in METHODS[method].needs
    chosen = options("cora-20" if on_graph else "agnews-30")
    training: dict[str, Any] = {"threads": 1}
    if not on_graph:
        chosen |= {"model": "paraphrase-MiniLM-L3-v2", "finetune": True, "test": None}
        training |= {"batch_size": 16, "unlabeled_batch_size": 16}
    data = {} if on_graph else {"train_rows": 500, "dev_rows": 50}
    timed = plan(
        chosen.pop("train"),
        **chosen,
        method=method,
        seeds=SEEDS,
        settings={"training": training, "data": data, "method": FEWER.get(method, {})},
        quiet=True,
    )
    return timed.seconds_per_step


def speed() -> None:
    """Time of a step of each method relative to a supervised step, in interleaved repeats."""
    timed = [name for name, method in METHODS.items() if method.has_second_phase and name != "westclass"]
    ratios: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(TIMED):
        for name in timed:
            start, step = seconds_of_steps(name)
            ratios[name].append(step / start)
    SPEED.unlink(missing_ok=True)
    for name, measured in ratios.items():
        line = {"method": name, "arithmetic": METHODS[name].relative_cost, "measured": sorted(measured)}
        add_line(SPEED, line)
        print(name, f"{line['arithmetic']:.2f}", f"{statistics.median(measured):.2f}", flush=True)


def write_tables() -> None:
    by_cell = {(line["cell"], line["method"]): line for line in read_lines(LINES)}
    rows = []
    for cell, method in [(cell, method) for cell, methods in CELLS.items() for method in methods]:
        if (cell, method) not in by_cell:
            continue
        line, start = by_cell[cell, method], by_cell.get((cell, START))
        difference = paired_t(line["test"], start["test"]) if start is not None and method != START else None
        tested = ["-", "-"] if difference is None else [difference.gap(), difference.p_text()]
        rows.append([cell, method, mean_and_spread(line["test"]), *tested, line["seconds"]])
    speeds = []
    for line in read_lines(SPEED):
        least, *_, most = line["measured"]
        middle = statistics.median(line["measured"])
        speeds.append([line["method"], f"{line['arithmetic']:.2f}", f"{middle:.2f} ({least:.2f} to {most:.2f})"])
    replace_tables(
        PAGE,
        table(["data", "method", "test", "over the start", "p", "seconds"], rows),
        table(["method", "arithmetic", "measured"], speeds),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--methods", default="", help="comma-separated (default: all)")
    commands.add_parser("speed")
    commands.add_parser("table")
    chosen = parser.parse_args()
    if chosen.command == "run":
        run_all(chosen.methods.split(",") if chosen.methods else [])
    elif chosen.command == "speed":
        speed()
    else:
        write_tables()


if __name__ == "__main__":
    main()
