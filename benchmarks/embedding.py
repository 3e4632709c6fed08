"""Embedding texts: `drift.models.embedding.embed` against padding in the given order, and against onnxruntime.

`python benchmarks/embedding.py` needs `$DRIFT_DATA` with agnews. In each round, all variants embed the same texts one
after the other, so that other load on the machine affects all. Ratios are medians over rounds.
"""

import argparse
import gzip
import itertools
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

from drift.models.embedding import embed
from drift.models.encoders import FrozenClassifier, load_encoder
from drift.models.onnx_export import export_classifier

MAX_LENGTH, BATCH = 128, 32


def agnews(rows: int) -> list[str]:
    file = Path(os.environ["DRIFT_DATA"]) / "agnews" / "train.jsonl.gz"
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in itertools.islice(lines, rows)]


def in_given_order(texts: list[str], encoder: str, padding: str, forward: Callable) -> None:
    _, tokenizer = load_encoder(encoder)
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        forward(tokenizer(batch, padding=padding, truncation=True, max_length=MAX_LENGTH, return_tensors="pt"))


def torch_forward(encoder: str) -> Callable:
    model, _ = load_encoder(encoder)
    return torch.inference_mode()(lambda batch: model(**batch))


def onnx_forward(encoder: str, threads: int) -> Callable:
    """The same encoder with a linear head, whose cost is negligible."""
    import onnxruntime

    model, tokenizer = load_encoder(encoder)
    width = model.config.hidden_size
    classifier = FrozenClassifier(model, torch.zeros(width), torch.ones(width), nn.Linear(width, 2))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    with tempfile.TemporaryDirectory() as folder:
        export_classifier(classifier, tokenizer, Path(folder) / "model.onnx")
        session = onnxruntime.InferenceSession(Path(folder) / "model.onnx", options, providers=["CPUExecutionProvider"])
    return lambda batch: session.run(None, {name: batch[name].numpy() for name in ("input_ids", "attention_mask")})


def embed_without_cache(texts: list[str], encoder: str, jobs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DRIFT_CACHE"] = folder
        embed(texts, encoder, max_length=MAX_LENGTH, jobs=jobs)


def main(encoder: str, rows: int, rounds: int, jobs: int) -> None:
    texts = agnews(rows)
    torch.set_num_threads(jobs)
    plain, onnx = torch_forward(encoder), onnx_forward(encoder, jobs)
    variants: dict[str, Callable[[], None]] = {
        "embed": lambda: embed_without_cache(texts, encoder, jobs),
        f"padded to {MAX_LENGTH}, given order": lambda: in_given_order(texts, encoder, "max_length", plain),
        "padded to longest, given order": lambda: in_given_order(texts, encoder, "longest", plain),
        "onnxruntime, longest, given order": lambda: in_given_order(texts, encoder, "longest", onnx),
    }
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, variant in variants.items():
            start = time.perf_counter()
            variant()
            seconds[name].append(time.perf_counter() - start)
    print(f"{encoder}, {rows} texts, {rounds} rounds, {jobs} cores")
    for name, taken in seconds.items():
        times = np.median(np.divide(taken, seconds["embed"]))
        print(f"{name:35} {rows / np.median(taken):6.0f} texts/s   embed is {times:.2f} times as fast")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", default="default")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=torch.get_num_threads(), help="number of cores")
    arguments = parser.parse_args()
    main(arguments.encoder, arguments.rows, arguments.rounds, arguments.jobs)
