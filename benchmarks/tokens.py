"""Token classification on real data: gold tags, weak tags, Self-training and DRIFT on the same splits.

    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/tokens.py run frozen|finetuned|balance [--cells wikigold,mitr]
    python benchmarks/tokens.py speed
    python benchmarks/tokens.py table

`run` adds one line per dataset and method (fine-tuned: also per seed) to docs/results/tokens.jsonl and skips those that
exist. `balance` is the ablation of class-mass balancing. `speed` compares a training step with one on texts. `table`
updates the tables in docs/results/tokens.md. All choices are made on dev; test is scored once per run.
"""

import argparse
import json
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from drift.runs.comparing.statistics import paired_t
from drift.runs.fit import fit
from drift.tasks.scoring import mean_and_spread
from recorded import RESULTS, add_line, read_lines, replace_tables, table

LINES, PAGE, SPEED = RESULTS / "tokens.jsonl", RESULTS / "tokens.md", RESULTS / "token_speed.json"
ENCODER = "granite-embedding-30m-english"  # cased
DATASETS = ("wikigold", "webpage", "mitr", "bc5cdr", "conll03")
CELLS = {"frozen": DATASETS, "finetuned": ("webpage", "wikigold"), "balance": ("wikigold", "mitr", "bc5cdr")}
SEEDS = {"frozen": (0,), "finetuned": (0, 1, 2), "balance": (0,)}  # a frozen run has ten seeds
COMPARED_METHODS = ("gold", "start", "self-training", "drift")
NO_GOLD = {"webpage"}
DEV_ROWS = {"bc5cdr": 1000, "conll03": 1000}  # a sample by seed, because dev is evaluated often
F1_HEADINGS = [
    *(
        "model",
        "data",
        "weak tags on train: P / R / F1",
        "words without one",
        "seeds",
        "gold",
        "start",
        "Self-training",
    ),
    *("DRIFT", "DRIFT - start", "DRIFT - Self-training", "p"),
]
BALANCES: dict[str, dict[str, Any]] = {  # by the name that lines have on record
    "off": {"class_mass": False},
    "all tags": {"class_mass": True, "unbalanced_class": None},
    "all but O": {"class_mass": True, "unbalanced_class": 0},
}


def run(kind: str, name: str, row: str, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """One line of results."""
    folder = Path(os.environ["DRIFT_DATA"]) / name
    began = time.monotonic()
    with TemporaryDirectory() as aside:
        weak = None if row == "gold" or name == "bc5cdr" else "weak"
        rules = bc5cdr_rules(folder, Path(aside)) if row != "gold" and name == "bc5cdr" else None
        done = fit(
            folder / "train.jsonl.gz",
            task="tokens",
            dev=folder / "dev.jsonl.gz",
            test=folder / "test.jsonl.gz",
            label="labels" if row == "gold" else None,
            weak=weak,
            rules=rules,
            model=ENCODER,
            finetune=kind == "finetuned",
            method={"gold": "supervised", "start": "supervised"}.get(row, row),
            seed=seed,
            preset=None if row == "gold" else name,
            settings={"data": {"dev_rows": DEV_ROWS.get(name)}, **settings},
            quiet=False,
        )
    metrics = done.metrics
    return {
        "kind": kind,
        "cell": name,
        "row": row,
        "seed": seed,
        **{part: metrics[part]["scores"] for part in ("dev", "test")},
        "entities": metrics["entities"],
        "words": {"train": metrics["training_rows"], **{part: metrics[part]["rows"] for part in ("dev", "test")}},
        "weak": {
            name: metrics["weak_labels"][name] for name in ("labeled", "by_type") if name in metrics["weak_labels"]
        }
        if metrics["weak"]
        else None,
        "uncovered": metrics.get("uncovered"),
        "seconds": round(time.monotonic() - began, 1),
    }


def bc5cdr_rules(folder: Path, aside: Path) -> Path:
    """One gazetteer rule: the published dictionary of core names."""
    rule = {"name": "core dictionary", "gazetteer": str(folder / "dict_core.txt"), "case": "smart"}
    file = aside / "rules.yaml"
    file.write_text(json.dumps({"task": "tokens", "types": ["Chemical", "Disease"], "rules": [rule]}), encoding="utf-8")
    return file  # JSON is YAML


def run_all(kind: str, cells: list[str], seeds: list[int]) -> None:
    done = {(line["kind"], line["cell"], line["row"], line["seed"]) for line in read_lines(LINES)}
    rows: list[tuple[str, dict[str, Any]]] = [(method, {}) for method in COMPARED_METHODS]
    if kind == "balance":
        rows = [(balance, {"method": settings}) for balance, settings in BALANCES.items()]
    for cell in cells:
        for seed in seeds:
            for row, settings in rows:
                if (kind, cell, row, seed) in done or (row == "gold" and cell in NO_GOLD):
                    continue
                line = run(kind, cell, "drift" if kind == "balance" else row, seed, settings) | {"row": row}
                line["kind"] = kind
                add_line(LINES, line)
                print(kind, cell, row, seed, spread(line["test"]), f"{line['seconds']} s", flush=True)


def spread(scores: list[dict[str, float]], name: str = "f1") -> str:
    values = [trial[name] for trial in scores]
    return mean_and_spread(values) if len(values) > 1 else f"{100 * values[0]:.2f}"


def write_tables() -> None:
    """Tables of all lines that were recorded."""
    by_cell: dict[tuple[str, str], dict[str, dict[str, list[dict[str, float]]]]] = {}
    weak_lines: dict[tuple[str, str], dict[str, Any]] = {}
    for line in read_lines(LINES):
        scores = by_cell.setdefault((line["kind"], line["cell"]), {}).setdefault(line["row"], {"dev": [], "test": []})
        for part in scores:
            scores[part] += line[part]
        if line["weak"]:
            weak_lines[line["kind"], line["cell"]] = line
    f1_rows, accuracy_rows, balance_rows = [], [], []
    for (kind, cell), rows in by_cell.items():
        if kind == "balance" or not {"start", "self-training", "drift"} <= set(rows):
            continue
        f1 = {row: [trial["f1"] for trial in scores["test"]] for row, scores in rows.items()}
        if len({len(f1[row]) for row in ("start", "self-training", "drift")}) > 1 or len(f1["drift"]) < 2:
            continue
        over_start, over_plain = paired_t(f1["drift"], f1["start"]), paired_t(f1["drift"], f1["self-training"])
        line = weak_lines[kind, cell]
        f1_rows.append(
            [
                kind,
                cell,
                weak_scores(line),
                uncovered(line),
                len(f1["drift"]),
                *(mean_and_spread(f1[row]) if row in f1 and len(f1[row]) > 1 else "-" for row in COMPARED_METHODS),
                over_start.gap(),
                over_plain.gap(),
                over_plain.p_text(),
            ]
        )
        accuracy = [spread(rows[row]["test"], "accuracy") if row in rows else "-" for row in COMPARED_METHODS]
        accuracy_rows.append([kind, cell, *accuracy])
    for (kind, cell), rows in by_cell.items():
        if kind == "balance" and set(rows) == set(BALANCES):
            start = by_cell.get(("frozen", cell), {}).get("start")
            for part in ("dev", "test"):
                balanced = [spread(rows[balance][part]) for balance in BALANCES]
                balance_rows.append([cell, part, spread(start[part]) if start else "-", *balanced])
    replace_tables(
        PAGE,
        table(F1_HEADINGS, f1_rows),
        table(["model", "data", "gold", "start", "Self-training", "DRIFT"], accuracy_rows),
        table(["data", "part", "start", "off", "all tags", "all except O"], balance_rows),
    )


def weak_scores(line: dict[str, Any]) -> str:
    if "by_type" not in line["weak"]:
        return "no gold"
    overall = line["weak"]["by_type"]["all"]
    return " / ".join(f"{100 * overall[name]:.1f}" for name in ("precision", "recall", "f1"))


def uncovered(line: dict[str, Any]) -> str:
    """How words without a weak tag are treated, with the dev F1 of the start for both options."""
    options = line["uncovered"]
    if not options:
        return "none"
    both = ", ".join(f"{name} {100 * score:.1f}" for name, score in options.get("dev", {}).items())
    return f"{options['chosen']} ({both} on dev)"


def measure_speed(rounds: int = 12, size: int = 16, length: int = 64) -> None:
    """Time a DRIFT step on tags and one on texts: same encoder, same sub-words per batch, interleaved, one thread."""
    import numpy as np
    import torch

    from drift import Game
    from drift.models.encoders import load_classifier, load_tagger
    from drift.tasks.tokens.model import Tagger

    torch.set_num_threads(1)
    tags = ["O", *(f"{prefix}-{kind}" for kind in ("LOC", "MISC", "ORG", "PER") for prefix in "BI")]
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(1000, 20000, (size, length), generator=generator)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    words = torch.arange(size * length)
    words = words[words % length != 0]  # the first is a special token
    students = {
        "text": (load_classifier(ENCODER, ["a", "b", "c", "d"], seed=0)[0], inputs),
        "tokens": (Tagger(load_tagger(ENCODER, tags, seed=0)[0]), {**inputs, "words": words}),
    }
    steps: dict[str, Any] = {}
    for name, (student, batch) in students.items():
        student.train()
        game, optimizer = Game(student), torch.optim.AdamW(student.parameters(), lr=1e-5)

        def step(game: Game = game, optimizer: Any = optimizer, batch: Any = batch) -> None:
            game.backward(game.loss(unlabeled=batch))
            optimizer.step()
            optimizer.zero_grad()
            game.follow()

        steps[name] = step
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(rounds + 1):
        for name, step in steps.items():
            began = time.perf_counter()
            step()
            if turn:  # the first round is a warm-up
                seconds[name].append(time.perf_counter() - began)
    ratios = np.array(seconds["text"]) / np.array(seconds["tokens"])
    result = {
        "encoder": ENCODER,
        "batch": [size, length],
        "words": len(words),
        "tokens_per_second": {
            name: round(size * length / float(np.median(times)), 1) for name, times in seconds.items()
        },
        "tokens_over_text": round(float(np.median(ratios)), 4),
        "rounds": rounds,
    }
    SPEED.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("kind", choices=list(CELLS))
    runs.add_argument("--cells", default="", help="comma-separated (default: all)")
    runs.add_argument("--seeds", default="", help="comma-separated (default: all)")
    commands.add_parser("speed")
    commands.add_parser("table")
    options = parser.parse_args()
    if options.command == "table":
        write_tables()
    elif options.command == "speed":
        measure_speed()
    else:
        cells = options.cells.split(",") if options.cells else list(CELLS[options.kind])
        seeds = [int(seed) for seed in options.seeds.split(",")] if options.seeds else list(SEEDS[options.kind])
        run_all(options.kind, cells, seeds)


if __name__ == "__main__":
    main()
