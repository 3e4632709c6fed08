"""Speed of embedding texts: ours against the same encoder in other engines, and against sentence-transformers.

`python benchmarks/embedding.py` needs `$DRIFT_DATA` with agnews. In each round, all variants embed the same texts one
after the other on the same number of threads, so that other load on the machine affects all. Ratios are medians over
rounds. Also printed: the cosine of each variant's vectors with those of float32. Variants whose package is not
installed, or that the processor only emulates, are left out.
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

from drift.data.batches import batches_by_length, pad_rows
from drift.models.catalogue import known_encoder
from drift.models.embedding import Embedder
from drift.models.encoders import encoder_pool, load_encoder
from drift.models.locating import encoder_path
from drift.models.precision import computes_bfloat16
from drift.models.quantised import MODEL, quantised_files

MAX_LENGTH = 128
Variant = Callable[[], np.ndarray]


def agnews(rows: int) -> list[str]:
    file = Path(os.environ["DRIFT_DATA"]) / "agnews" / "train.jsonl.gz"
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in itertools.islice(lines, rows)]


def ours(texts: list[str], encoder: str, jobs: int, **settings: str | int) -> Variant:
    loaded = load_encoder(encoder)
    pool = encoder_pool(encoder)

    def run() -> np.ndarray:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["DRIFT_CACHE"] = folder
            embedder = Embedder(encoder, max_length=MAX_LENGTH, pool=pool, loaded=loaded, identity="x", **settings)
            return np.array(embedder.embed(texts, jobs=jobs).vectors)

    return run


def sentence_transformers(texts: list[str], encoder: str) -> Variant:
    from sentence_transformers import SentenceTransformer, models

    word = models.Transformer(encoder_path(encoder), max_seq_length=MAX_LENGTH)
    pool = models.Pooling(load_encoder(encoder)[0].config.hidden_size, encoder_pool(encoder).replace("layers", "mean"))
    model = SentenceTransformer(modules=[word, pool], device="cpu").float()  # else in the precision of the file
    return lambda: np.array(model.encode(texts, batch_size=32, show_progress_bar=False))


def given_order(texts: list[str], encoder: str) -> Variant:
    """Batches of 32 in the given order, padded to the longest, as a plain loop over transformers does."""
    model, tokenizer = load_encoder(encoder)

    @torch.inference_mode()
    def run() -> np.ndarray:
        parts = []
        for start in range(0, len(texts), 32):
            batch = texts[start : start + 32]
            tokens = tokenizer(batch, padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt")
            parts.append(model(**tokens).last_hidden_state[:, 0].numpy())
        return np.concatenate(parts)

    return run


def onnx_int8(texts: list[str], encoder: str, jobs: int) -> Variant | None:
    """The int8 file that the encoder is converted from, run as it is; None if there is none."""
    import onnxruntime

    entry = known_encoder(encoder)
    if entry is None or entry.quantised is None or (files := quantised_files(entry.quantised)) is None:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = jobs
    session = onnxruntime.InferenceSession(files / MODEL, options, providers=["CPUExecutionProvider"])
    _, tokenizer = load_encoder(encoder)

    def run() -> np.ndarray:
        tokens = tokenizer(texts, truncation=True, max_length=MAX_LENGTH)["input_ids"]
        vectors = np.empty((len(texts), entry.width), np.float32)
        for rows in batches_by_length([len(row) for row in tokens], 1024):
            ids, mask = (each.numpy() for each in pad_rows([tokens[row] for row in rows], tokenizer.pad_token_id))
            feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            vectors[rows] = session.run(None, feed)[0][:, 0]
        return vectors

    return run


def variants_for(texts: list[str], encoder: str, jobs: int) -> dict[str, Variant]:
    variants = {"float32, 1,024 tokens per pass": ours(texts, encoder, jobs, precision="float32")}
    for tokens in (512, 4096):
        name = f"float32, {tokens:,} tokens per pass"
        variants[name] = ours(texts, encoder, jobs, precision="float32", batch_tokens=tokens)
    if computes_bfloat16():
        variants["bfloat16, 1,024 tokens per pass"] = ours(texts, encoder, jobs, precision="bfloat16")
    if (quantised := onnx_int8(texts, encoder, jobs)) is not None:
        variants["onnxruntime, int8"] = quantised
    variants["transformers, given order"] = given_order(texts, encoder)
    try:
        variants["sentence-transformers"] = sentence_transformers(texts, encoder)
    except ImportError as error:
        print(f"left out: sentence-transformers ({error})")
    return variants


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    if first.shape != second.shape:
        return float("nan")
    return float(((first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)).min())


def main(encoder: str, rows: int, rounds: int, jobs: int) -> None:
    texts = agnews(rows)
    torch.set_num_threads(jobs)
    variants = variants_for(texts, encoder, jobs)
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    vectors = {}
    for _ in range(rounds):
        for name, variant in variants.items():
            start = time.perf_counter()
            vectors[name] = variant()
            seconds[name].append(time.perf_counter() - start)
    print(f"{encoder}, {rows} texts, {rounds} rounds, {jobs} threads, bfloat16 in the processor: {computes_bfloat16()}")
    base = next(iter(variants))
    for name, taken in seconds.items():
        times = np.median(np.divide(seconds[base], taken))
        print(
            f"{name:35} {rows / np.median(taken):6.0f} texts/s  {times:.2f} times as fast as ours"
            f"  smallest cosine {cosine(vectors[base], vectors[name]):.5f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="default")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=torch.get_num_threads(), help="number of cores")
    arguments = parser.parse_args()
    main(arguments.encoder, arguments.rows, arguments.rounds, arguments.jobs)
