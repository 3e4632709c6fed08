"""Train a small model of every kind and write what it predicts: `python -m tests.hostile.everything FOLDER THREADS`."""

import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np

import drift
from tests.runs.small import small_encoder, small_fit, small_table, write_csv
from tests.runs.small_graphs import small_graph, small_node_fit

SENTENCES = [
    {"tokens": ["stock", word, "market"], "labels": ["B-X", "O", "O"]} for word in ("team", "game", "match", "fund") * 6
]


def train(folder: Path, threads: int) -> None:
    """Write `predictions.npz`: texts by heads and fine-tuned, nodes, tags, and feature vectors."""
    os.environ["DRIFT_CACHE"] = str(folder / "cache")
    encoder = small_encoder(folder / "encoder")
    table = write_csv(folder / "table.csv", small_table(60, labeled=12))
    (folder / "sentences.jsonl").write_text("".join(json.dumps(row) + "\n" for row in SENTENCES))
    texts, graph = small_table(60)["body"], small_graph(60)
    training = {"threads": threads}
    columns = {"text": "body", "label": "topic", "training": training}
    found = {"texts": small_fit(table, encoder, **columns).predict_proba(texts)}
    found["texts, fine-tuned"] = small_fit(table, encoder, finetune=True, seeds=1, **columns).predict_proba(texts)
    found["nodes"] = small_node_fit(graph, training=training).predict_proba(graph)
    tagger = small_fit(
        str(folder / "sentences.jsonl"), encoder, task="tokens", seeds=1, training=training, finetune=True
    )
    found["tokens"] = np.concatenate(tagger.model.predict_proba([row["tokens"] for row in SENTENCES]))
    generator = np.random.default_rng(0)
    features, labels = generator.normal(size=(80, 6)), np.where(np.arange(80) < 20, np.arange(80) % 2, -1)
    features += 2 * np.eye(6)[np.arange(80) % 2]
    classifier = drift.DriftClassifier(random_state=0).fit(features, labels)
    found["feature vectors"] = classifier.predict_proba(features)
    np.savez(folder / "predictions.npz", **found)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    train(Path(sys.argv[1]), int(sys.argv[2]))
