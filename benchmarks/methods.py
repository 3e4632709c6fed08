"""Every method on real data, beside the start it has to beat; and what its step costs.

    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/methods.py run [--methods uda,graphvat]
    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/methods.py speed
    python benchmarks/methods.py table

Methods for texts learn AG News from 30 labels a class, from rules where that is what they are for, methods for graphs
Cora from 20 a class, and those for words Wikigold from weak tags: three seeds, the laptop presets, everything chosen on
dev. `run` adds a line a method and cell to docs/results/methods.jsonl and skips those that are there. `speed` times
steps of a fine-tuned paraphrase-MiniLM-L3-v2, or of a GCN, against supervised ones, interleaved.
"""

import argparse
import os
import statistics
import time
from itertools import product
from pathlib import Path
from typing import Any

from drift.methods import METHODS
from drift.runs.comparing.statistics import paired_t
from drift.runs.fit import fit
from drift.runs.result import Run
from drift.tasks.scoring import mean_and_spread
from drift.training.plan import Plan
from recorded import RESULTS, add_line, read_lines

LINES, SPEED, TABLE = RESULTS / "methods.jsonl", RESULTS / "methods_speed.jsonl", RESULTS / "methods.md"
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
FEWER = {"uast": {"sample": 64, "chosen": 32, "passes": 2}}  # its looks at all rows are not what is timed


def options(cell: str) -> dict[str, Any]:
    """What `drift.fit` is called with."""
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
    chosen = options(cell)
    rows = {"train_rows": 15000, "dev_rows": 500, "test_rows": 4000} if cell.startswith("agnews") else {}
    alone = METHODS[method].model is not None  # a model of its own, one seed a run
    if alone:
        chosen |= {"finetune": None}
    train, began = chosen.pop("train"), time.monotonic()
    runs = [
        fit(train, **chosen, method=method, seed=seed, seeds=SEEDS, settings={"data": rows}, quiet=False)
        for seed in range(SEEDS if alone else 1)
    ]
    measure = "f1" if cell == "wikigold" else "accuracy"
    scores: dict[str, list[float]] = {"dev": [], "test": []}
    for done, part in product(runs, scores):
        assert isinstance(done, Run)
        scores[part] += [trial[measure] for trial in done.metrics.get(part, {}).get("scores", ())]
    return {"cell": cell, "method": method, **scores, "seconds": round(time.monotonic() - began, 1)}


def run_all(methods: list[str]) -> None:
    there = {(line["cell"], line["method"]) for line in read_lines(LINES)}
    for cell, all_methods in CELLS.items():
        for method in all_methods:
            if (cell, method) not in there and (not methods or method in methods):
                line = run(cell, method)
                add_line(LINES, line)
                print(cell, method, mean_and_spread(line["test"]), f"{line['seconds']} s", flush=True)


def seconds_of_steps(method: str) -> tuple[float, float]:
    """A step of the start and one of the method, on as many labelled rows as unlabelled ones."""
    on_graph = METHODS[method].tasks == ("nodes",)
    chosen = options("cora-20" if on_graph else "agnews-30")
    training: dict[str, Any] = {"threads": 1}
    if not on_graph:
        chosen |= {"model": "paraphrase-MiniLM-L3-v2", "finetune": True, "test": None}
        training |= {"batch_size": 16, "unlabeled_batch_size": 16}
    data = {} if on_graph else {"train_rows": 500, "dev_rows": 50}
    plan = fit(
        chosen.pop("train"),
        **chosen,
        method=method,
        seeds=SEEDS,
        settings={"training": training, "data": data, "method": FEWER.get(method, {})},
        dry_run=True,
        quiet=True,
    )
    assert isinstance(plan, Plan)
    return plan.seconds_a_step


def speed() -> None:
    """Ratios of a method's step to the start's, the median of interleaved tries."""
    timed = [name for name, kind in METHODS.items() if kind.has_second_phase and name != "westclass"]
    ratios: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(TIMED):
        for name in timed:
            start, step = seconds_of_steps(name)
            ratios[name].append(step / start)
    SPEED.unlink(missing_ok=True)
    for name, found in ratios.items():
        line = {"method": name, "arithmetic": METHODS[name].relative_cost, "measured": sorted(found)}
        add_line(SPEED, line)
        print(name, f"{line['arithmetic']:.2f}", f"{statistics.median(found):.2f}", flush=True)


def write_table() -> None:
    found = {(line["cell"], line["method"]): line for line in read_lines(LINES)}
    rows = [
        "# Every method on real data",
        "",
        f"Test scores in %, mean ± standard deviation of {SEEDS} seeds: accuracy, on Wikigold F1 of entities. AG News",
        "is 15,000 texts with a head on all-MiniLM-L6-v2, from 30 labels a class or from rules (weak); Cora a GCN from",
        "20 labels a class; Wikigold a head on granite-embedding-30m-english from weak tags. Dev chooses; train-on-dev",
        "learns from its labels instead. Differences to the supervised start are paired, with standard errors.",
        "`python benchmarks/methods.py run`, then `table`.",
        "",
        "| data | method | test | over the start | p | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for cell, method in [(cell, method) for cell, methods in CELLS.items() for method in methods]:
        if (cell, method) not in found:
            continue
        line, start = found[cell, method], found.get((cell, START))
        over = paired_t(line["test"], start["test"]) if start is not None and method != START else None
        told = "- | -" if over is None else f"{over.gap()} | {over.p_text()}"
        rows.append(f"| {cell} | {method} | {mean_and_spread(line['test'])} | {told} | {line['seconds']} |")
    rows += [
        "",
        "Below the start there are two. WeSTClass begins from texts of its own, made of ten words a class; the labels",
        "of the rules are worth more than those words. VAMPIRE is a model of bags of words, without an encoder. On",
        "Wikigold a head on fixed vectors is about as good after its start as it gets: no method leaves its spread.",
        "",
        "What a step costs, in supervised steps on as many labelled rows as there are unlabelled: the arithmetic that",
        "the method cannot do without, and what was measured (`python benchmarks/methods.py speed`): the median, and",
        f"in brackets the least and the most, of {TIMED} tries.",
        "",
        "| method | arithmetic | measured |",
        "|---|---|---|",
    ]
    for line in read_lines(SPEED):
        least, *_, most = line["measured"]
        middle = statistics.median(line["measured"])
        rows.append(f"| {line['method']} | {line['arithmetic']:.2f} | {middle:.2f} ({least:.2f} to {most:.2f}) |")
    TABLE.write_text("\n".join(rows) + "\n", encoding="utf-8")
    print("\n".join(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--methods", default="", help="comma-separated; all of them if left out")
    commands.add_parser("speed")
    commands.add_parser("table")
    chosen = parser.parse_args()
    if chosen.command == "run":
        run_all(chosen.methods.split(",") if chosen.methods else [])
    elif chosen.command == "speed":
        speed()
    else:
        write_table()


if __name__ == "__main__":
    main()
