"""Overhead of the training loop, and the time that batches of similar length and kept memory save, on a real encoder.

    DRIFT_DATA=... DRIFT_MODELS=... OMP_NUM_THREADS=1 python benchmarks/loop.py overhead|bucketing|accuracy|memory

Ratios are of medians, measured interleaved in one run. Each part writes its results into docs/results/loop.json.
"""

import argparse
import gzip
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from drift.core import Game
from drift.data.examples import Labeled, Unlabeled
from drift.data.tokenized import TokenizedTexts, tokenize
from drift.methods.self_training import Drift, SelfTrainingSettings
from drift.methods.supervised import Supervised, SupervisedSettings
from drift.models.encoders import load_classifier
from drift.tasks.scoring import classification_scores
from drift.training.data import TrainingData
from drift.training.devices import SingleProcess
from drift.training.evaluation import predict
from drift.training.feeds import Feed
from drift.training.settings import TrainingSettings
from drift.training.threads import keep_freed_memory
from drift.training.trainer import Trainer

RESULTS = Path(__file__).parent.parent / "docs" / "results" / "loop.json"
ENCODER, MAX_LENGTH, BATCH = "paraphrase-MiniLM-L3-v2", 128, 32
CLASSES = ["Business", "Sci/Tech", "Sports", "World"]


def agnews(part: str, rows: int) -> tuple[TokenizedTexts, torch.Tensor, Any]:
    """Random rows of AG News as tokens, their labels, and a fresh classifier."""
    module, tokenizer = load_classifier(ENCODER, CLASSES, seed=0)
    with gzip.open(Path(os.environ["DRIFT_DATA"]) / "agnews" / f"{part}.jsonl.gz", "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    chosen = [lines[row] for row in np.random.default_rng(0).permutation(len(lines))[:rows]]
    tokens = tokenize([line["text"] for line in chosen], tokenizer, max_length=MAX_LENGTH)
    return tokens, torch.tensor([CLASSES.index(line["label"]) for line in chosen]), module


def overhead(blocks: int = 6, steps: int = 10) -> dict[str, Any]:
    """The loop with its callbacks, against the same steps of the game written by hand, on the same batches."""
    tokens, labels, module = agnews("train", 2000)
    rows = torch.arange(len(tokens))
    data = TrainingData(Labeled(tokens, rows[:200], labels[:200]), Unlabeled(tokens, rows[200:], labels[200:]))
    settings = TrainingSettings(batch_size=BATCH, steps=blocks * steps, initial_steps=0)
    trainer = Trainer(module, data, settings, Drift, SelfTrainingSettings(), classification_scores)
    trainer.enter(1)
    phase = trainer.phase()

    _, _, twin = agnews("train", 10)
    game = Game(twin.train())
    optimizer = torch.optim.AdamW(twin.parameters(), lr=settings.learning_rate, weight_decay=1e-4, fused=True)
    same = Feed(data.labeled, data.unlabeled, batch_size=BATCH, unlabeled_batch_size=BATCH, seeds=(0,))
    batches = [next(same)[0] for _ in range(blocks * steps)]

    def ours(block: int) -> None:
        phase.run(range(block * steps + 1, (block + 1) * steps + 1), trainer.callbacks, trainer.state)

    def bare(block: int) -> None:
        for batch in batches[block * steps : (block + 1) * steps]:
            loss = game.loss(unlabeled=batch.unlabeled, labeled=batch.labeled)
            game.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            game.follow()

    times = interleaved({"loop": ours, "bare": bare}, blocks)
    return {
        "what": f"{steps} steps of DRIFT, {ENCODER}, batch {BATCH} + {BATCH}, {blocks} blocks each",
        "seconds_a_step": {name: statistics.median(seconds) / steps for name, seconds in times.items()},
        "ratio": statistics.median(times["loop"]) / statistics.median(times["bare"]),
        "target": 1.05,
    }


def bucketing(rows: int = 1600) -> dict[str, Any]:
    """One epoch, forward and backward: batches of similar length, random batches, and all padded to the maximum."""
    tokens, labels, module = agnews("train", rows)
    module.train()
    everything = Labeled(tokens, torch.arange(rows), labels)

    def feed(by_length: bool) -> Feed:
        return Feed(everything, None, batch_size=BATCH, unlabeled_batch_size=BATCH, seeds=(0,), by_length=by_length)

    feeds = {"bucketed": feed(True), "longest": feed(False), "fixed": feed(False)}

    def step(name: str) -> Callable[[int], None]:
        def run(_: int) -> None:
            (batch,) = next(feeds[name])
            x, y = batch.labeled  # type: ignore[misc]
            if name == "fixed":
                x = tokens.inputs(batch.labeled_rows, pad_to=MAX_LENGTH)  # type: ignore[arg-type]
            torch.nn.functional.cross_entropy(module(**x).logits, y).backward()
            module.zero_grad()

        return run

    times = interleaved({name: step(name) for name in feeds}, rows // BATCH)
    totals = {name: sum(seconds) for name, seconds in times.items()}
    return {
        "what": f"one epoch of {rows} random AG News texts, {ENCODER}, batch {BATCH}, maximum {MAX_LENGTH} tokens",
        "mean_tokens": float(tokens.lengths.mean()),
        "seconds": totals,
        "ratio_to_fixed": totals["bucketed"] / totals["fixed"],
        "ratio_to_longest": totals["bucketed"] / totals["longest"],
        "target": 0.5,
    }


def accuracy(seeds: int = 5, steps: int = 150) -> dict[str, Any]:
    """Test accuracy after the same supervised steps, with and without batches of similar length."""
    scores: dict[str, list[float]] = {"bucketed": [], "random": []}
    test, truth, _ = agnews("test", 1000)
    for seed in range(seeds):
        for name in scores:
            tokens, labels, _ = agnews("train", 4000)
            module, _ = load_classifier(ENCODER, CLASSES, seed=seed)
            settings = TrainingSettings(
                seed=seed,
                initial_steps=steps,
                batch_size=BATCH,
                learning_rate=1e-4,
                bucket_by_length=name == "bucketed",
            )
            data = TrainingData(Labeled(tokens, torch.arange(len(tokens)), labels))
            trainer = Trainer(module, data, settings, Supervised, SupervisedSettings(), classification_scores)
            trainer.run()
            p = predict(trainer.method, test, torch.arange(len(test)), SingleProcess())
            scores[name].append(float((p.argmax(-1) == truth).double().mean()))
            print(name, seed, scores[name][-1], flush=True)
    gaps = np.subtract(scores["bucketed"], scores["random"])
    return {
        "what": f"{steps} supervised steps of batch {BATCH} on 4000 AG News texts, 1000 test texts, {seeds} seeds",
        "accuracy": scores,
        "mean_difference": float(gaps.mean()),
        "standard_error": float(gaps.std(ddof=1) / np.sqrt(len(gaps))),
    }


def memory(repeats: int = 3) -> dict[str, Any]:
    """Page faults and seconds per step if glibc returns freed memory and if it keeps it, in separate processes.

    Batches of 32 and of 64: glibc maps blocks of more than 32 MB anew each time, and only the larger batch has such.
    """
    result: dict[str, Any] = {"what": f"a supervised step of {ENCODER}, {MAX_LENGTH} tokens, {repeats} processes each"}
    for batch in (BATCH, 2 * BATCH):
        runs: dict[str, list[dict[str, float]]] = {"as it is": [], "kept": []}
        for _ in range(repeats):
            for name in runs:
                keep = ["--keep"] if name == "kept" else []
                command = [sys.executable, __file__, "one-memory", "--batch", str(batch), *keep]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                runs[name].append(json.loads(done.stdout))
        median = {
            name: {key: statistics.median(run[key] for run in of_name) for key in of_name[0]}
            for name, of_name in runs.items()
        }
        ratio = median["kept"]["seconds"] / median["as it is"]["seconds"]
        result[f"batch {batch}"] = {**median, "ratio_of_seconds": ratio}
    return result


def one_memory(keep: bool, batch: int, steps: int = 6) -> dict[str, float]:
    if keep:
        keep_freed_memory()
    tokens, labels, module = agnews("train", batch * (steps + 2))
    module.train()
    times, faults = [], []
    for step in range(steps + 2):
        rows = torch.arange(step * batch, (step + 1) * batch)
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        x = tokens.inputs(rows, pad_to=MAX_LENGTH)
        torch.nn.functional.cross_entropy(module(**x).logits, labels[rows]).backward()
        module.zero_grad()
        times.append(time.perf_counter() - began)
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return {"seconds": statistics.median(times[2:]), "page_faults": statistics.median(faults[2:])}


def interleaved(parts: dict[str, Callable[[int], None]], blocks: int) -> dict[str, list[float]]:
    """Seconds of every block of every part; the order of the parts alternates between blocks."""
    times: dict[str, list[float]] = {name: [] for name in parts}
    for block in range(blocks):
        names = list(parts) if block % 2 else list(parts)[::-1]
        for name in names:
            began = time.perf_counter()
            parts[name](block)
            times[name].append(time.perf_counter() - began)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["overhead", "bucketing", "accuracy", "memory", "one-memory"])
    parser.add_argument("--keep", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--batch", type=int, default=BATCH, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.part == "one-memory":
        print(json.dumps(one_memory(options.keep, options.batch)))
        return
    parts = {"overhead": overhead, "bucketing": bucketing, "accuracy": accuracy, "memory": memory}
    result = parts[options.part]()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results[options.part] = {"command": f"python benchmarks/loop.py {options.part}", **result}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
