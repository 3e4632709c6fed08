"""Two moons at length: where DRIFT and Self-training differ, over the settings the paper leaves open.

- `python benchmarks/moons.py study`: 100 trials a configuration into docs/results/two-moons.jsonl; goes on if stopped
- `python benchmarks/moons.py table`: what is there so far, as docs/results/two-moons.md
- `python benchmarks/moons.py speed`: all trials at once against one after another, as docs/results/two-moons-speed.json
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from drift.paper.demos.moons import MoonsConfig, compare, run
from drift.runs.comparing.statistics import TTest, paired_t

RESULTS = Path(__file__).parents[1] / "docs" / "results"
ROWS, PAGE, SPEED = (RESULTS / name for name in ("two-moons.jsonl", "two-moons.md", "two-moons-speed.json"))
TRIALS = (10, 100)  # the paper's, and enough to see half a point


def configurations() -> Iterator[MoonsConfig]:
    """Noise and batch size, which the paper leaves open; then α, which decides how large the interaction is."""
    for batch_size in (50, 250, 1000):
        for noise in (0.05, 0.1, 0.2, 0.3):
            yield MoonsConfig(noise=noise, batch_size=batch_size)
    for alpha in (0.0, 0.7, 0.9, 0.95, 0.99):
        yield MoonsConfig(batch_size=250, alpha=alpha)


def study() -> None:
    done = [row["config"] for row in _rows()]
    for config in configurations():
        if asdict(config) in done:
            continue
        began = time.perf_counter()
        results = compare(config, range(max(TRIALS)))
        theirs, ours = results["Self-training"].accuracy, results["DRIFT"].accuracy
        row = {
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
        with ROWS.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), file=sys.stderr)


def table() -> None:
    lines = [
        "# Two moons: what was measured",
        "",
        "Made by `python benchmarks/moons.py study` and `python benchmarks/moons.py table`. Test accuracy in % after",
        "150 epochs, mean ± standard deviation over trials; Δ is DRIFT minus Self-training on the same trials, ± its",
        "standard error, with the two-sided p of a paired t-test. Win, tie and loss are DRIFT's, at p < 0.05, not",
        "corrected for the number of rows.",
        "",
        "| noise | batch | α | start | trials | Self-training | DRIFT | Δ | p | |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in _rows():
        config = row["config"]
        for trials, cell in row["trials"].items():
            st, dr, test = cell["self_training"], cell["drift"], cell["test"]
            verdict = test.pop("verdict")
            cells = [
                config["noise"],
                config["batch_size"],
                config["alpha"],
                f"{100 * row['start']:.1f}",
                trials,
                *(f"{100 * mean:.2f} ± {100 * spread:.2f}" for mean, spread in (st, dr)),
                TTest(**test).gap(),
                TTest(**test).p_text(),
                verdict,
            ]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    PAGE.write_text("\n".join(lines) + "\n")
    print(PAGE)


def speed(trials: int, epochs: int, repeats: int) -> None:
    results = []
    for batch_size in (50, 250):
        config = MoonsConfig(epochs=epochs, batch_size=batch_size)
        run(config, range(trials), "differentiable")  # warm up
        stacked, single = [], []
        for _ in range(repeats):  # interleaved, so that a busy moment hits both
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


def _rows() -> list[dict]:
    return [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("study", "table", "speed"))
    parser.add_argument("--trials", type=int, default=100, help="speed: how many trials")
    parser.add_argument("--epochs", type=int, default=20, help="speed: how many epochs each")
    parser.add_argument("--repeats", type=int, default=3, help="speed: how often each way is timed")
    options = parser.parse_args()
    if options.what == "speed":
        speed(options.trials, options.epochs, options.repeats)
    else:
        {"study": study, "table": table}[options.what]()
