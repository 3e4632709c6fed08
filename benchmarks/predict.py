"""Texts per second of `drift predict` beside sentence-transformers with scikit-learn, and of ONNX files.

    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/predict.py [--texts 64] [--repeats 7] [--encoder NAME] [--out F]

One classifier on a fixed encoder, its vectors not in the cache: `TextModel.predict_proba` in bfloat16 (the default
where the processor computes it) and in float32; sentence-transformers' `encode` with the `predict_proba` of a logistic
regression, in batches of 32 as it does by default; and the file of `--onnx`, in float32 and in int8 (dynamic, weights
by channel), with batches sorted by length as ours are. A repeat is the same texts of AG News once through each, in
rotated order. One thread, CPU time; the ratio is the median over repeats. Agreement: texts with the same class as by
the float32 model.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cached_texts import MAX_LENGTH, texts_of
from drift.data.batches import batches_by_length
from drift.models.embedding import Embedder
from drift.models.encoders import FrozenClassifier, encoder_pool, load_encoder
from drift.models.locating import encoder_path
from drift.models.onnx_int8 import quantise
from drift.tasks.heads import linear_head
from drift.tasks.text.model import TextModel

WARM_UP = 1
Answer = Callable[[list[str]], np.ndarray]


def peer(path: str, pool: str, x: np.ndarray, y: np.ndarray) -> tuple[Answer, Any]:
    """sentence-transformers and a logistic regression fitted on vectors."""
    from sentence_transformers import SentenceTransformer, models
    from sklearn.linear_model import LogisticRegression

    words = models.Transformer(path, max_seq_length=MAX_LENGTH)
    body = SentenceTransformer(modules=[words, models.Pooling(words.get_embedding_dimension(), pooling_mode=pool)])
    body = body.to("cpu").float()
    head = LogisticRegression(max_iter=1000).fit(x, y)
    return lambda texts: head.predict_proba(body.encode(texts, show_progress_bar=False)), head


def ours(path: str, pool: str, precision: str, head: Any) -> Answer:
    """A text model with the weights of the same regression; no vector is kept."""
    encoder, tokenizer = load_encoder(path)
    width = head.coef_.shape[1]
    linear = linear_head(width, len(head.classes_))
    with torch.no_grad():
        layer = next(each for each in linear.modules() if isinstance(each, torch.nn.Linear))
        layer.weight.copy_(torch.from_numpy(head.coef_))
        layer.bias.copy_(torch.from_numpy(head.intercept_))
    module = FrozenClassifier(encoder, torch.zeros(width), torch.ones(width), linear, pool=pool)
    embedder = Embedder(path, max_length=MAX_LENGTH, pool=pool, precision=precision, loaded=(encoder, tokenizer))
    model = TextModel(module, tokenizer, list(map(str, head.classes_)), "frozen", MAX_LENGTH, embedder=embedder)

    def answer(texts: list[str]) -> np.ndarray:
        with tempfile.TemporaryDirectory() as cache:
            os.environ["DRIFT_CACHE"] = cache
            embedder._store = None
            return model.predict_proba(texts)

    answer.model = model  # type: ignore[attr-defined]
    return answer


def onnx_answers(model: TextModel, folder: Path) -> dict[str, tuple[Answer, float]]:
    """The exported file in float32 and in int8, and their sizes in MB."""
    import onnxruntime

    whole, small = folder / "model.onnx", folder / "model_int8.onnx"
    model.export_onnx(whole)
    quantise(whole, small)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1

    def answer(file: Path) -> Answer:
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

        def run(texts: list[str]) -> np.ndarray:
            tokens = model.tokenizer(texts, truncation=True, max_length=MAX_LENGTH)["input_ids"]
            found = np.empty((len(texts), len(model.classes)), dtype=np.float32)
            for rows in batches_by_length([len(row) for row in tokens], 1024):
                ids = [tokens[row] for row in rows]
                longest = max(map(len, ids))
                padded = np.array([row + [0] * (longest - len(row)) for row in ids], dtype=np.int64)
                mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row in ids], dtype=np.int64)
                found[rows] = session.run(None, {"input_ids": padded, "attention_mask": mask})[0]
            return found

        return run

    return {
        "ONNX float32": (answer(whole), whole.stat().st_size / 1e6),
        "ONNX int8": (answer(small), small.stat().st_size / 1e6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="bge-small-en-v1.5")
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    path, pool = encoder_path(options.encoder), encoder_pool(options.encoder)
    pool = pool if pool in ("cls", "mean") else "mean"
    texts, labels = texts_of("agnews", "train", 200)
    embedder = Embedder(path, max_length=MAX_LENGTH, pool=pool, precision="float32")
    from_peer, head = peer(path, pool, np.array(embedder.embed(texts).vectors), np.array(labels))
    answers: dict[str, Answer] = {name: ours(path, pool, name, head) for name in ("bfloat16", "float32")}
    sizes = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (answer, size) in onnx_answers(answers["float32"].model, Path(folder)).items():
            answers[name], sizes[name] = answer, round(size, 1)
    answers["sentence-transformers"] = from_peer
    seconds: dict[str, list[float]] = {name: [] for name in answers}
    same: dict[str, list[float]] = {name: [] for name in answers}
    right: dict[str, list[float]] = {name: [] for name in answers}
    asked, truth = texts_of("agnews", "test", (WARM_UP + options.repeats) * options.texts)
    for repeat in range(WARM_UP + options.repeats):
        part = slice(repeat * options.texts, (repeat + 1) * options.texts)
        found = {}
        names = [*answers][repeat % len(answers) :] + [*answers][: repeat % len(answers)]
        for name in names:
            began = time.process_time()
            found[name] = answers[name](asked[part]).argmax(-1)
            seconds[name].append(time.process_time() - began)
        for name in names:
            same[name].append(float((found[name] == found["float32"]).mean()))
            right[name].append(float((head.classes_[found[name]] == np.array(truth[part])).mean()))
    peers = np.array(seconds["sentence-transformers"][WARM_UP:])
    result = {
        "command": "python " + " ".join(sys.argv),
        "encoder": options.encoder,
        "texts": options.texts,
        "repeats": options.repeats,
        "megabytes": sizes,
        "ways": {
            name: {
                "texts_per_second": round(options.texts / float(np.median(values[WARM_UP:])), 1),
                "speed_of_peer": [round(float(q), 3) for q in np.quantile(peers / values[WARM_UP:], (0.5, 0.25, 0.75))],
                "agreement": round(float(np.mean(same[name])), 4),
                "accuracy": round(float(np.mean(right[name])), 4),
            }
            for name, values in seconds.items()
        },
    }
    print(json.dumps(result, indent=2))
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
