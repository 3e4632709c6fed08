"""Two moons: DRIFT and Self-training for all settings that the paper leaves open.

    python benchmarks/moons.py study   100 trials per configuration, added to docs/results/two-moons.jsonl
    python benchmarks/moons.py table   update the table in docs/results/two-moons.md
    python benchmarks/moons.py speed   stacked trials against single ones: docs/results/two-moons-speed.json

An interrupted study continues where it stopped.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from drift.paper.demos.moons import MoonsConfig, compare, run
from drift.runs.comparing.statistics import TTest, paired_t
from recorded import RESULTS, add_line, read_lines, replace_tables, table

ROWS, PAGE, SPEED = (RESULTS / name for name in ("two-moons.jsonl", "two-moons.md", "two-moons-speed.json"))
TRIALS = (10, 100)  # as in the paper, and enough to detect half a point


def configurations() -> Iterator[MoonsConfig]:
    """Noise and batch size, which the paper does not give; then α, which scales the interaction."""
    for batch_size in (50, 250, 1000):
        for noise in (0.05, 0.1, 0.2, 0.3):
            yield MoonsConfig(noise=noise, batch_size=batch_size)
    for alpha in (0.0, 0.7, 0.9, 0.95, 0.99):
        yield MoonsConfig(batch_size=250, alpha=alpha)


def study() -> None:
    done = [row["config"] for row in read_lines(ROWS)]
    for config in configurations():
        if asdict(config) in done:
            continue
        began = time.perf_counter()
        results = compare(config, range(max(TRIALS)))
        theirs, ours = results["Self-training"].accuracy, results["DRIFT"].accuracy
        row: dict[str, Any] = {
            "config": asdict(config),
            "seconds": time.perf_counter() - began,
            "start": theirs[:, 0].mean(),
            "trials": {},
        }
        for trials in TRIALS:
            a, b = theirs[:trials, -1], ours[:trials, -1]
            row["trials"][trials] = {
                "self_training": [a.mean(), a.std(ddof=1)],
                "drift": [b.mean(), b.std(ddof=1)],
                "test": asdict(paired_t(b, a)) | {"verdict": paired_t(b, a).verdict()},
            }
        add_line(ROWS, row)
        print(json.dumps(row), file=sys.stderr)


def write_table() -> None:
    rows = []
    for row in read_lines(ROWS):
        config = row["config"]
        for trials, cell in row["trials"].items():
            verdict, test = cell["test"].pop("verdict"), TTest(**cell["test"])
            rows.append(
                [
                    config["noise"],
                    config["batch_size"],
                    config["alpha"],
                    f"{100 * row['start']:.1f}",
                    trials,
                    *(f"{100 * mean:.2f} ± {100 * std:.2f}" for mean, std in (cell["self_training"], cell["drift"])),
                    test.gap(),
                    test.p_text(),
                    verdict,
                ]
            )
    headings = ["noise", "batch", "α", "start", "trials", "Self-training", "DRIFT", "Δ", "p", ""]
    replace_tables(PAGE, table(headings, rows))


def speed(trials: int, epochs: int, repeats: int) -> None:
    results = []
    for batch_size in (50, 250):
        config = MoonsConfig(epochs=epochs, batch_size=batch_size)
        run(config, range(trials), "differentiable")  # warm up
        stacked, single = [], []
        for _ in range(repeats):  # interleaved, so that other load on the machine affects both
            began = time.perf_counter()
            run(config, range(trials), "differentiable")
            between = time.perf_counter()
            for seed in range(trials):
                run(config, [seed], "differentiable", stacked=False)
            stacked.append(between - began)
            single.append(time.perf_counter() - between)
        ratios = [b / a for a, b in zip(stacked, single, strict=True)]
        results.append(
            {
                "batch_size": batch_size,
                "trials": trials,
                "epochs": epochs,
                "at_once_s": statistics.median(stacked),
                "one_after_another_s": statistics.median(single),
                "speedup": statistics.median(ratios),
                "speedups": ratios,
            }
        )
    SPEED.write_text(json.dumps(results, indent=1) + "\n")
    print(SPEED.read_text())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("study", "table", "speed"))
    parser.add_argument("--trials", type=int, default=100, help="speed: number of trials")
    parser.add_argument("--epochs", type=int, default=20, help="speed: epochs per trial")
    parser.add_argument("--repeats", type=int, default=3, help="speed: repeats")
    options = parser.parse_args()
    if options.command == "speed":
        speed(options.trials, options.epochs, options.repeats)
    else:
        {"study": study, "table": write_table}[options.command]()
