"""How to use an encoder best: pooling, standardisation and length of the texts, on several datasets.

A logistic regression is fitted on 10 labels per class, drawn ten times from a pool of texts, and scored on test texts.
Nothing is chosen on one dataset alone. Prints tables for docs/results/encoders.md.

    DRIFT_DATA=~/data DRIFT_MODELS=~/models python benchmarks/encoders.py bge-small-en-v1.5:128 bge-small-en-v1.5:256

Each argument is an encoder and a number of tokens. Vectors are kept in --folder, so that the script can be stopped and
continued. --precision compares number formats instead of float32 alone: cosines and accuracies.
"""

import argparse
import gzip
import json
import os
import time
from pathlib import Path

import numpy as np
import torch

from drift.data.batches import batches_by_length, pad_rows
from drift.models.encoders import load_encoder
from drift.models.precision import in_precision

DATASETS = ("agnews", "imdb", "yelp", "amazon")
DRAWS, LABELS = 10, 10


def texts_of(dataset: str, part: str, rows: int) -> tuple[list[str], list[str]]:
    """The first labelled texts of a dataset's file, shuffled once, and their labels."""
    with gzip.open(Path(os.environ["DRIFT_DATA"], dataset, f"{part}.jsonl.gz"), "rt", encoding="utf-8") as file:
        table = [row for row in map(json.loads, file) if row["label"] is not None]
    chosen = np.random.default_rng(0).permutation(len(table))[:rows]
    return [table[row]["text"] for row in chosen], [table[row]["label"] for row in chosen]


@torch.inference_mode()
def vectors_of(texts: list[str], encoder: str, length: int, precision: str) -> dict[str, np.ndarray]:
    """Vectors of texts under all poolings, from one forward pass each; and seconds."""
    model, tokenizer = load_encoder(encoder)
    model = in_precision(model, precision)
    tokens = tokenizer(texts, truncation=True, max_length=length)["input_ids"]
    cls, mean, third = (np.empty((len(texts), model.config.hidden_size), np.float32) for _ in range(3))
    begin = time.process_time()
    for rows in batches_by_length([len(row) for row in tokens], 1024):
        ids, mask = pad_rows([tokens[row] for row in rows], tokenizer.pad_token_id)
        output = model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
        real = mask[:, :, None].float()
        cls[rows] = output.last_hidden_state[:, 0].float().numpy()
        for target, layer in ((mean, output.last_hidden_state), (third, output.hidden_states[-3])):
            target[rows] = ((layer.float() * real).sum(1) / real.sum(1)).numpy()
    tokens_read = sum(map(len, tokens))
    return {"cls": cls, "mean": mean, "third": third, "cost": np.array([time.process_time() - begin, tokens_read])}


def kept_vectors(folder: Path, dataset: str, encoder: str, length: int, precision: str, sizes: tuple[int, int]) -> dict:
    """Vectors of pool and test, with labels, computed once."""
    file = folder / f"{dataset}-{encoder}-{length}-{precision}.npz"
    if not file.exists():
        content = {}
        for part, rows in zip(("train", "test"), sizes, strict=True):
            texts, labels = texts_of(dataset, part, rows)
            computed = vectors_of(texts, encoder, length, precision)
            content |= {f"{part}_{name}": value for name, value in computed.items()}
            content[f"{part}_labels"] = np.array(labels)
        np.savez(file, **content)
        print(f"made {file.name}", flush=True)
    return dict(np.load(file))


def pooled(data: dict, part: str, pool: str) -> np.ndarray:
    if pool == "layers":
        return np.concatenate([data[f"{part}_mean"], data[f"{part}_third"]], 1)
    return data[f"{part}_{pool}"]


SCALINGS = {
    "as they are": lambda pool, x: x,
    "length 1": lambda pool, x: x / np.linalg.norm(x, axis=1, keepdims=True),
    "standardised": lambda pool, x: (x - pool.mean(0)) / (pool.std(0) + 1e-6),
}


def accuracies(data: dict, pool: str, scaling: str) -> np.ndarray:
    """Test accuracy of each draw."""
    from sklearn.linear_model import LogisticRegression

    raw = pooled(data, "train", pool)
    train, test = (SCALINGS[scaling](raw, pooled(data, part, pool)) for part in ("train", "test"))
    labels, expected, scores = data["train_labels"], data["test_labels"], []
    for draw in range(DRAWS):
        generator = np.random.default_rng(draw)
        rows = [generator.choice(np.flatnonzero(labels == name), LABELS, replace=False) for name in np.unique(labels)]
        chosen = np.concatenate(rows)
        model = LogisticRegression(max_iter=2000).fit(train[chosen], labels[chosen])
        scores.append(float((model.predict(test) == expected).mean()))
    return np.array(scores)


def smallest_cosine(first: dict, second: dict, pool: str) -> float:
    """Of the vectors of all texts in two number formats."""
    x, y = (np.concatenate([pooled(each, part, pool) for part in ("train", "test")]) for each in (first, second))
    return float(((x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)).min())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoders", nargs="+", metavar="NAME:TOKENS")
    parser.add_argument("--folder", type=Path, default=Path("encoder-vectors"))
    parser.add_argument("--sizes", type=int, nargs=2, default=(2000, 1000), metavar=("POOL", "TEST"))
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--precision", nargs="+", default=["float32"])
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    print(f"| encoder | tokens | pooling | vectors | {' | '.join(options.datasets)} | mean |")
    print("|" + "---|" * (5 + len(options.datasets)))
    for name in options.encoders:
        encoder, _, length = name.partition(":")
        exact: dict = {}
        for precision in options.precision:
            key = encoder, int(length), precision
            data = {each: kept_vectors(options.folder, each, *key, tuple(options.sizes)) for each in options.datasets}
            exact = data if precision == options.precision[0] else exact
            for pool in ("cls", "mean", "layers"):
                cosines = [smallest_cosine(exact[each], data[each], pool) for each in data]
                print(
                    f"{precision}, {pool}: smallest cosine with {options.precision[0]} {min(cosines):.5f}", flush=True
                )
                for scaling in SCALINGS:
                    scores = [accuracies(data[each], pool, scaling) for each in options.datasets]
                    cells = [f"{100 * score.mean():.1f} ± {100 * score.std(ddof=1):.1f}" for score in scores]
                    mean = f"{100 * np.mean([score.mean() for score in scores]):.1f}"
                    print(f"| {encoder} | {length} | {pool} | {scaling} | {' | '.join([*cells, mean])} |", flush=True)
            costs = np.sum([data[each][f"{part}_cost"] for each in data for part in ("train", "test")], 0)
            print(
                f"{encoder} {length} {precision}: {costs[1]:,.0f} tokens in {costs[0]:,.0f} s of one core", flush=True
            )


if __name__ == "__main__":
    main()
