"""Token classification on real data: gold tags, weak tags, Self-training and DRIFT on the same splits.

    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/tokens.py run frozen|finetuned|balance [--cells wikigold,mitr]
    python benchmarks/tokens.py speed
    python benchmarks/tokens.py table

`run` adds a line a dataset and method (fine-tuned: a seed too) to docs/results/tokens.jsonl and skips those that are
there; `balance` is the ablation of class-mass balancing; `speed` compares a training step with one on texts; `table`
writes docs/results/tokens.md from the lines. Everything is chosen on dev; test is scored once a run.
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
from drift.runs.result import Run
from drift.tasks.scoring import mean_and_spread
from recorded import RESULTS, add_line, read_lines

LINES, TABLE, SPEED = RESULTS / "tokens.jsonl", RESULTS / "tokens.md", RESULTS / "token_speed.json"
ENCODER = "granite-embedding-30m-english"  # cased
DATASETS = ("wikigold", "webpage", "mitr", "bc5cdr", "conll03")
CELLS = {"frozen": DATASETS, "finetuned": ("webpage", "wikigold"), "balance": ("wikigold", "mitr", "bc5cdr")}
SEEDS = {"frozen": (0,), "finetuned": (0, 1, 2), "balance": (0,)}  # a frozen run has ten of its own
COMPARED_METHODS = ("gold", "start", "self-training", "drift")
NO_GOLD = {"webpage"}
DEV_ROWS = {"bc5cdr": 1000, "conll03": 1000}  # of more, by seed: dev is looked at often
BALANCES: dict[str, dict[str, Any]] = {
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
    assert isinstance(done, Run)
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
    rows = [(method, {}) for method in COMPARED_METHODS]
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


def write_table() -> None:
    """Tables of all lines there are."""
    found: dict[tuple[str, str], dict[str, dict[str, list[dict[str, float]]]]] = {}
    about: dict[tuple[str, str], dict[str, Any]] = {}
    for line in read_lines(LINES):
        scores = found.setdefault((line["kind"], line["cell"]), {}).setdefault(line["row"], {"dev": [], "test": []})
        for part in scores:
            scores[part] += line[part]
        if line["weak"]:
            about[line["kind"], line["cell"]] = line
    rows = [
        "# Token classification on real data",
        "",
        f"Encoder {ENCODER}. F1 on test in %, mean ± standard deviation over seeds: of entities, strict (seqeval),",
        "but on MIT-R of single tokens that are not O (micro average), as its slots have no B- and I-; token accuracy",
        "is in the second table. `gold` is trained on the gold tags of all training words, the others on weak tags,",
        "which are thrown away after the start. Differences are paired, seed by seed, with their standard error and",
        "the p-value of a t-test. `python benchmarks/tokens.py run frozen|finetuned|balance`, then `table`.",
        "",
        "| model | data | weak tags on train: P / R / F1 | words without one | seeds | gold | start | Self-training |"
        " DRIFT | DRIFT - start | DRIFT - Self-training | p |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    accuracy = ["", "| model | data | gold | start | Self-training | DRIFT |", "|---|---|---|---|---|---|"]
    for (kind, cell), parts in found.items():
        if kind == "balance" or not {"start", "self-training", "drift"} <= set(parts):
            continue
        f1 = {row: [trial["f1"] for trial in scores["test"]] for row, scores in parts.items()}
        if len({len(f1[row]) for row in ("start", "self-training", "drift")}) > 1 or len(f1["drift"]) < 2:
            continue
        over_start, over_plain = paired_t(f1["drift"], f1["start"]), paired_t(f1["drift"], f1["self-training"])
        told = {row: mean_and_spread(f1[row]) if row in f1 and len(f1[row]) > 1 else "-" for row in COMPARED_METHODS}
        rows.append(
            f"| {kind} | {cell} | {weak_scores(about[kind, cell])} | {uncovered(about[kind, cell])} |"
            f" {len(f1['drift'])} | {' | '.join(told.values())} | {over_start.gap()} | {over_plain.gap()} |"
            f" {over_plain.p_text()} |"
        )
        shown = [spread(parts[row]["test"], "accuracy") if row in parts else "-" for row in COMPARED_METHODS]
        accuracy.append(f"| {kind} | {cell} | {' | '.join(shown)} |")
    rows += ["", "## Token accuracy, O included", *accuracy, "", "## Balancing by class mass", ""]
    rows += [
        "DRIFT with a fixed encoder, F1 in %: pseudo-labels as they are, balanced over all tags, and over all but O.",
        "The default was chosen by dev.",
        "",
        "| data | part | start | " + " | ".join(BALANCES) + " |",
        "|---|---|---|---|---|---|",
    ]
    for (kind, cell), parts in found.items():
        if kind == "balance" and set(parts) == set(BALANCES):
            start = found.get(("frozen", cell), {}).get("start")
            for part in ("dev", "test"):
                shown = [spread(parts[balance][part]) for balance in BALANCES]
                rows.append(f"| {cell} | {part} | {spread(start[part]) if start else '-'} | {' | '.join(shown)} |")
    TABLE.write_text("\n".join(rows) + "\n", encoding="utf-8")
    print("\n".join(rows))


def weak_scores(line: dict[str, Any]) -> str:
    if "by_type" not in line["weak"]:
        return "no gold"
    every = line["weak"]["by_type"]["all"]
    return " / ".join(f"{100 * every[name]:.1f}" for name in ("precision", "recall", "f1"))


def uncovered(line: dict[str, Any]) -> str:
    """What became of words without a weak tag, and the dev F1 of the start either way."""
    found = line["uncovered"]
    if not found:
        return "none"
    both = ", ".join(f"{way} {100 * score:.1f}" for way, score in found.get("dev", {}).items())
    return f"{found['chosen']} ({both} on dev)"


def measure_speed(rounds: int = 12, size: int = 16, length: int = 64) -> None:
    """A DRIFT step on tags beside one on texts: one encoder, the same sub-words a batch, interleaved, one thread."""
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
    words = words[words % length != 0]  # the first is a special one
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
            if turn:  # the first warms up
                seconds[name].append(time.perf_counter() - began)
    ratios = np.array(seconds["text"]) / np.array(seconds["tokens"])
    found = {
        "encoder": ENCODER,
        "batch": [size, length],
        "words": len(words),
        "tokens_per_second": {name: round(size * length / float(np.median(each)), 1) for name, each in seconds.items()},
        "tokens_over_text": round(float(np.median(ratios)), 4),
        "rounds": rounds,
    }
    SPEED.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("kind", choices=list(CELLS))
    runs.add_argument("--cells", default="", help="comma-separated; all of them if left out")
    runs.add_argument("--seeds", default="", help="comma-separated; all of them if left out")
    commands.add_parser("speed")
    commands.add_parser("table")
    options = parser.parse_args()
    if options.command == "table":
        write_table()
    elif options.command == "speed":
        measure_speed()
    else:
        cells = options.cells.split(",") if options.cells else list(CELLS[options.kind])
        seeds = [int(seed) for seed in options.seeds.split(",")] if options.seeds else list(SEEDS[options.kind])
        run_all(options.kind, cells, seeds)


if __name__ == "__main__":
    main()
