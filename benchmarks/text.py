"""Text classification on real data: start, Self-training and DRIFT on the same splits.

    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/text.py run frozen|finetuned|textcnn [--cells agnews-30]
    python benchmarks/text.py table

`run` adds one line per cell and method (fine-tuned: also per seed) to docs/results/text.jsonl and skips those that
exist. `table` updates the table in docs/results/text.md. All choices are made on dev; test is scored once per run.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

from drift.runs.comparing.statistics import paired_t
from drift.runs.fit import fit
from drift.tasks.scoring import mean_and_spread
from recorded import RESULTS, add_line, read_lines, replace_tables, table

LINES, PAGE = RESULTS / "text.jsonl", RESULTS / "text.md"
COMPARED_METHODS = {"supervised": "start", "self-training": "Self-training", "drift": "DRIFT"}

FROZEN = [
    "agnews-10",
    *(f"{name}-{labels}" for name in ("agnews", "imdb", "yelp", "amazon") for labels in (30, 200)),
    *(f"{name}-weak" for name in ("agnews", "imdb", "yelp")),
]
CELLS = {"frozen": FROZEN, "finetuned": ["agnews-30", "agnews-weak", "imdb-weak"], "textcnn": ["agnews-200"]}
SEEDS = {"frozen": (0,), "finetuned": (0, 1, 2), "textcnn": (0, 1, 2)}  # a frozen run has ten seeds
TRAIN_ROWS = {
    "agnews": 15000,
    "imdb": 4000,
    "yelp": 4000,
    "amazon": 4000,
}  # of a permutation with seed 0; only for frozen
DEV_ROWS = {"frozen": 500, "finetuned": 300, "textcnn": 300}
TEST_ROWS = {"frozen": 4000, "finetuned": 2500, "textcnn": 4000}
HEADINGS = [
    *("model", "data", "labels to train + dev", "test rows", "seeds", "start", "Self-training", "DRIFT"),
    *("DRIFT - start", "DRIFT - Self-training", "p"),
]


def run(kind: str, cell: str, method: str, seed: int) -> dict[str, Any]:
    """One line of results. The split of a seed is the same for every method."""
    name, _, setting = cell.rpartition("-")
    folder = Path(os.environ["DRIFT_DATA"]) / name
    weak = setting == "weak"
    began = time.monotonic()
    done = fit(
        folder / "train.jsonl.gz",
        dev=folder / "dev.jsonl.gz",
        test=folder / "test.jsonl.gz",
        text="text",
        label="label",
        weak="weak" if weak else None,
        labels_per_class=None if weak else int(setting),
        model={"textcnn": "textcnn", "finetuned": "paraphrase-MiniLM-L3-v2"}.get(kind),
        finetune=kind == "finetuned",
        method=method,
        seed=seed,
        preset=None if kind == "frozen" else name,
        profile="laptop",
        settings={
            "data": {
                **({"train_rows": TRAIN_ROWS[name]} if kind == "frozen" else {}),
                "dev_rows": DEV_ROWS[kind],
                "test_rows": TEST_ROWS[kind] if name == "agnews" else 2000,
            },
            **({"model": {"vectors": str(vectors())}} if kind == "textcnn" else {}),
        },
        onnx=False,
        quiet=False,
    )
    record = done.record
    return {
        "kind": kind,
        "cell": cell,
        "method": method,
        "seed": seed,
        "accuracy": [trial["accuracy"] for trial in record.test.scores],
        "test_rows": record.test.rows,
        "training_rows": record.training_rows,
        "budget": record.label_budget.model_dump(),
        "seconds": round(time.monotonic() - began, 1),
    }


def vectors() -> Path:
    return next((Path(os.environ["DRIFT_DATA"]) / "vectors").glob("*.npy"))


def run_all(kind: str, cells: list[str]) -> None:
    done = {(line["kind"], line["cell"], line["method"], line["seed"]) for line in read_lines(LINES)}
    for cell in cells:
        for seed in SEEDS[kind]:
            for method in COMPARED_METHODS:
                if (kind, cell, method, seed) in done:
                    continue
                line = run(kind, cell, method, seed)
                add_line(LINES, line)
                print(kind, cell, method, seed, mean_or_one(line["accuracy"]), f"{line['seconds']} s", flush=True)


def mean_or_one(scores: list[float]) -> str:
    return mean_and_spread(scores) if len(scores) > 1 else f"{100 * scores[0]:.2f}"


def write_table() -> None:
    """Mean ± standard deviation, and DRIFT against both others, paired by seed."""
    by_cell: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    last_lines: dict[tuple[str, str], dict[str, Any]] = {}
    for line in read_lines(LINES):
        key = line["kind"], line["cell"]
        scores = by_cell.setdefault(key, {}).setdefault(line["method"], {})
        scores.update({line["seed"] + trial: score for trial, score in enumerate(line["accuracy"])})
        last_lines[key] = line
    rows: list[list[Any]] = []
    for (kind, cell), methods in by_cell.items():
        if set(methods) != set(COMPARED_METHODS):
            continue
        seeds = sorted(set.intersection(*(set(scores) for scores in methods.values())))
        if len(seeds) < 2:
            continue
        start, plain, ours = ([methods[method][seed] for seed in seeds] for method in COMPARED_METHODS)
        over_start, over_plain = paired_t(ours, start), paired_t(ours, plain)
        budget, test_rows = last_lines[kind, cell]["budget"], last_lines[kind, cell]["test_rows"]
        rows.append(
            [
                kind,
                cell,
                f"{budget['train']} + {budget['dev']}",
                test_rows,
                len(seeds),
                *map(mean_and_spread, (start, plain, ours)),
                over_start.gap(),
                over_plain.gap(),
                over_plain.p_text(),
            ]
        )
    replace_tables(PAGE, table(HEADINGS, rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("kind", choices=list(CELLS))
    runs.add_argument("--cells", default="", help="comma-separated (default: all)")
    commands.add_parser("table")
    options = parser.parse_args()
    if options.command == "table":
        write_table()
        return
    run_all(options.kind, options.cells.split(",") if options.cells else CELLS[options.kind])


if __name__ == "__main__":
    main()
