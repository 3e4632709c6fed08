"""Two moons: DRIFT and the forms of self-training for all settings that the paper leaves open.

    python benchmarks/moons.py study   DRIFT and its detached form, 100 trials each: docs/results/two-moons.jsonl
    python benchmarks/moons.py forms   all forms of self-training, 100 trials each: docs/results/two-moons-forms.jsonl
    python benchmarks/moons.py table   update docs/results/two-moons.md, and write docs/results/two-moons-forms.md
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

from drift.paper.demos.moons import STUDIED_METHODS, MoonsConfig, compare, run
from drift.paper.self_training import DETACHED
from drift.runs.comparing.statistics import TTest, paired_t
from drift.tasks.scoring import mean_and_spread
from recorded import RESULTS, add_line, read_lines, replace_tables, table

ROWS, PAGE, SPEED = (RESULTS / name for name in ("two-moons.jsonl", "two-moons.md", "two-moons-speed.json"))
FORM_ROWS, FORM_PAGE = (RESULTS / f"two-moons-forms.{ending}" for ending in ("jsonl", "md"))
FORM_TEXT = [
    "# Results: two moons, forms of self-training",
    "",
    "Written by `python benchmarks/moons.py table` after `forms`. Test accuracy in % after 150 epochs, 100 trials,",
    "mean ± standard deviation. In brackets: DRIFT minus the form on the same trials, ± standard error, and p of a",
    "paired t-test, not corrected. Batches of 250, α = τ = 0.5; hard labels have neither.",
    "",
]
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
        results = compare(config, range(max(TRIALS)), (DETACHED, "DRIFT"))
        theirs, ours = results[DETACHED].accuracy, results["DRIFT"].accuracy
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


def forms() -> None:
    """Every form on the four noises, at the batch size of the demonstration; one line per form."""
    done = [(row["config"], row["method"]) for row in read_lines(FORM_ROWS)]
    for noise in (0.1, 0.05, 0.2, 0.3):
        config = MoonsConfig(noise=noise)
        for name in STUDIED_METHODS:
            if (asdict(config), name) not in done:
                accuracy = run(config, range(max(TRIALS)), name).accuracy
                line = {"config": asdict(config), "method": name, "start": accuracy[:, 0].tolist()}
                add_line(FORM_ROWS, line | {"accuracy": accuracy[:, -1].tolist()})
                print(noise, name, mean_and_spread(accuracy[:, -1]), file=sys.stderr)


def forms_table() -> list[str]:
    """A row per form: its accuracy, and DRIFT minus it on the same trials, by noise."""
    by_noise: dict[float, dict[str, list[float]]] = {}
    for line in read_lines(FORM_ROWS):
        by_noise.setdefault(line["config"]["noise"], {})[line["method"]] = line["accuracy"]
    rows = []
    for name in STUDIED_METHODS:
        cells = []
        for scores in by_noise.values():
            test = paired_t(scores["DRIFT"], scores[name]) if {name, "DRIFT"} <= set(scores) else None
            gap = f" ({test.gap()}, p {test.p_text()})" if test and name != "DRIFT" else ""
            cells.append(f"{mean_and_spread(scores[name])}{gap}" if name in scores else "")
        rows.append([name, *cells])
    return table(["form", *(f"noise {noise}" for noise in by_noise)], rows)


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
    headings = ["noise", "batch", "α", "start", "trials", DETACHED, "DRIFT", "Δ", "p", ""]
    replace_tables(PAGE, table(headings, rows))
    if FORM_ROWS.exists():
        FORM_PAGE.write_text("\n".join([*FORM_TEXT, *forms_table()]) + "\n", encoding="utf-8")


def speed(trials: int, epochs: int, repeats: int) -> None:
    results = []
    for batch_size in (50, 250):
        config = MoonsConfig(epochs=epochs, batch_size=batch_size)
        run(config, range(trials), "DRIFT")  # warm up
        stacked, single = [], []
        for _ in range(repeats):  # interleaved, so that other load on the machine affects both
            began = time.perf_counter()
            run(config, range(trials), "DRIFT")
            between = time.perf_counter()
            for seed in range(trials):
                run(config, [seed], "DRIFT", stacked=False)
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
    parser.add_argument("command", choices=("study", "forms", "table", "speed"))
    parser.add_argument("--trials", type=int, default=100, help="speed: number of trials")
    parser.add_argument("--epochs", type=int, default=20, help="speed: epochs per trial")
    parser.add_argument("--repeats", type=int, default=3, help="speed: repeats")
    options = parser.parse_args()
    if options.command == "speed":
        speed(options.trials, options.epochs, options.repeats)
    else:
        {"study": study, "forms": forms, "table": write_table}[options.command]()
