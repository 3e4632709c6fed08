"""Training and prediction on a graph that is too large for one step: a million nodes, ten million undirected edges.

    OMP_NUM_THREADS=1 python benchmarks/large_graph.py --out docs/results/large_graph.json
    OMP_NUM_THREADS=1 python benchmarks/large_graph.py --nodes 20000

The graph is a random planted partition: nodes have one of ten equally likely classes; an edge joins two nodes of the
same class with probability `WITHIN`, and any two otherwise; features are the centre of the class plus noise. There are
20 labels per class. A supervised start is followed by DRIFT on all other nodes, and then by logits of all nodes layer
by layer. Prints JSON: elapsed seconds, processor seconds and peak private memory of each part, and accuracy on all
nodes without labels. Linux only: it reads /proc.
"""

import argparse
import json
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from drift.data.examples import Labeled, Unlabeled
from drift.data.labels import sample_per_class
from drift.data.neighbours import Neighbours, SampledNodes
from drift.methods.self_training import Drift, SelfTrainingSettings
from drift.models.sampled_gcn import SampledGCN, layerwise
from drift.training.feeds import Feed
from drift.training.loop import Phase
from drift.training.optimizers import make_optimizer
from drift.training.settings import TrainingSettings
from memory import PeakMemory

CLASSES, WIDTH, HIDDEN, EDGES_PER_NODE = 10, 100, 64, 10
WITHIN, SIGNAL = 0.3, 0.2  # how informative edges and features are
LABELS_PER_CLASS, BATCH, UNLABELED_BATCH, FANOUTS = 20, 200, 2048, (10, 10)
START_STEPS, STEPS = 100, 300
GAME = SelfTrainingSettings(alpha=0.9, tau=0.5)
ADAM = TrainingSettings(optimizer="adam", learning_rate=0.01, weight_decay=5e-4)


def planted(nodes: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Classes `(nodes,)`, features `(nodes, WIDTH)` and edges `(2, m)`, one direction."""
    y = rng.integers(CLASSES, size=nodes)
    by_class, sizes = np.argsort(y, kind="stable"), np.bincount(y, minlength=CLASSES)
    ends = np.cumsum(sizes)
    source = rng.integers(nodes, size=EDGES_PER_NODE * nodes)
    label = y[source]
    same_class = by_class[ends[label] - 1 - (rng.random(len(source)) * sizes[label]).astype(np.int64)]
    target = np.where(rng.random(len(source)) < WITHIN, same_class, rng.integers(nodes, size=len(source)))
    x = rng.standard_normal((nodes, WIDTH), dtype=np.float32)
    centers = SIGNAL * rng.standard_normal((CLASSES, WIDTH), dtype=np.float32)
    for members, center in zip(np.split(by_class, ends[:-1]), centers, strict=True):
        x[members] += center
    return y, x, np.stack([source, target])


class Clock:
    """Time and memory of each part, by its name."""

    def __init__(self) -> None:
        self.parts: dict[str, dict[str, float]] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        start, busy = time.perf_counter(), time.process_time()
        with PeakMemory() as memory:
            yield
        self.parts[name] = {
            "seconds": round(time.perf_counter() - start, 2),
            "processor seconds": round(time.process_time() - busy, 2),
            "peak private MB": round(memory.megabytes),
        }


def measure(nodes: int, seed: int) -> dict[str, Any]:
    clock = Clock()
    with clock.part("generate the graph"):
        y, x, edges = planted(nodes, np.random.default_rng(seed))
    with clock.part("adjacency"):
        neighbours = Neighbours(edges, nodes)
    del edges
    features = torch.from_numpy(x)
    labeled = sample_per_class(y, LABELS_PER_CLASS, seed=seed)
    rest = np.setdiff1d(np.arange(nodes), labeled)

    def accuracy(predicted: np.ndarray) -> float:
        return round(float((predicted == y)[rest].mean()), 4)

    with clock.part("features alone: logistic regression"):
        linear = LogisticRegression(max_iter=1000).fit(x[labeled], y[labeled])
        accuracies = {"features alone": accuracy(linear.predict(x))}

    examples = SampledNodes(features, neighbours, FANOUTS, seed)
    few = Labeled(examples, torch.from_numpy(labeled), torch.from_numpy(y[labeled]))
    many = Unlabeled(examples, torch.from_numpy(rest))
    sizes = dict(batch_size=BATCH, unlabeled_batch_size=UNLABELED_BATCH)
    student = SampledGCN(WIDTH, CLASSES, seed=seed, hidden=HIDDEN)
    method, optimizer = Drift(student, GAME), make_optimizer(student, ADAM, initial=True)
    with clock.part(f"start, {START_STEPS} steps"):
        Phase(method, Feed(few, None, seeds=[seed], **sizes), optimizer, initial=True).run(range(START_STEPS))
    accuracies["start"] = accuracy(layerwise(student, features, neighbours).argmax(1).numpy())
    method.start()
    optimizer = make_optimizer(student, ADAM, initial=False)
    with clock.part(f"DRIFT, {STEPS} steps"):
        Phase(method, Feed(few, many, seeds=[seed], **sizes), optimizer).run(range(STEPS))
    with clock.part("layer-wise inference of all nodes"):
        logits = layerwise(student, features, neighbours)
    accuracies["DRIFT"] = accuracy(logits.argmax(1).numpy())
    return {
        "graph": {
            "nodes": nodes,
            "undirected edges": len(neighbours.targets) // 2,
            "features a node": WIDTH,
            "classes": CLASSES,
            "labels": len(labeled),
        },
        "fanouts": FANOUTS,
        "batch": {"labelled": BATCH, "unlabelled": UNLABELED_BATCH},
        "threads": torch.get_num_threads(),
        "parts": clock.parts,
        "peak resident MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000),
        "accuracy on nodes without labels": accuracies,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="also write the JSON to this file")
    options = parser.parse_args()
    result = {"command": "python " + " ".join(sys.argv), **measure(options.nodes, options.seed)}
    print(json.dumps(result, indent=2))
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
