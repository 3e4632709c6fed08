"""Time of a training epoch of a graph model with many seeds at once, compared with the usual implementations.

    DRIFT_DATA=... OMP_NUM_THREADS=1 python benchmarks/graph.py gcn|game|grand|grand-citeseer|commands

Processor seconds of one thread, per seed and epoch. Blocks of epochs of all variants are interleaved, so that other
load on the machine affects all. Each part writes its results into docs/results/graph_speed.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout

from drift.core import Game
from drift.data.graphs import Graph, read_graph
from drift.models.gcn import GCN
from drift.models.grand import PUBLISHED, Grand, consistency
from drift.models.propagation import normalized_adjacency, row_normalized
from drift.training.optimizers import make_optimizer
from drift.training.settings import TrainingSettings
from drift.training.threads import keep_freed_memory

RESULTS = Path(__file__).parent.parent / "docs" / "results" / "graph_speed.json"
ADAM = TrainingSettings(optimizer="adam", learning_rate=0.01, weight_decay=5e-4)
Epoch = Callable[[], None]


class Citations:
    """A citation graph, with features normalised by row, and its public split."""

    def __init__(self, name: str) -> None:
        graph: Graph = read_graph(name)
        self.name, self.recipe = name, PUBLISHED[name.lower()]
        self.x, self.edges, self.classes = row_normalized(graph.features), graph.edges, len(graph.classes)
        self.y = torch.from_numpy(graph.labels)
        self.all = torch.arange(len(self.y))
        self.train, self.dev, self.test = (torch.from_numpy(graph.splits[part]) for part in ("train", "dev", "test"))

    def accuracies(self, logits: Tensor) -> list[float]:  # (..., nodes, C)
        right = logits.argmax(-1) == self.y
        return [float(right[..., rows].float().mean()) for rows in (self.train, self.dev, self.test)]

    def supervised(self, logits: Tensor) -> Tensor:
        """Sum of the losses of all trials. logits: of the training rows, `(trials, N, C)`."""
        y = self.y[self.train].expand(len(logits), -1)
        return cross_entropy(logits.mT, y, reduction="sum") / len(self.train)


def pyg_gcn(graph: Citations) -> Epoch:
    """torch_geometric's own example: dense features, one seed."""
    from torch_geometric.nn import GCNConv

    x, edges = graph.x.to_dense(), torch.from_numpy(graph.edges)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = GCNConv(x.shape[1], 16, cached=True)
            self.second = GCNConv(16, graph.classes, cached=True)

        def forward(self) -> Tensor:
            hidden = self.first(dropout(x, training=self.training), edges).relu()
            return self.second(dropout(hidden, training=self.training), edges)

    model = Net()
    groups = [{"params": model.first.parameters(), "weight_decay": 5e-4}, {"params": model.second.parameters()}]
    optimizer = torch.optim.Adam(groups, lr=0.01)

    def epoch() -> None:
        model.train()
        optimizer.zero_grad()
        cross_entropy(model()[graph.train], graph.y[graph.train]).backward()
        optimizer.step()
        with torch.no_grad():
            graph.accuracies(model.eval()())

    return epoch


def our_gcn(graph: Citations, trials: int) -> Epoch:
    """The same for many seeds at once."""
    model = GCN(graph.x, graph.edges, graph.classes, seeds=range(trials))
    optimizer = make_optimizer(model, ADAM, initial=False)

    def epoch() -> None:
        graph.supervised(model.train()(graph.train)).backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            graph.accuracies(model.eval()(graph.all))

    return epoch


def drift_gcn(graph: Citations, trials: int) -> Epoch:
    """A step of DRIFT on all nodes, without evaluation."""
    model = GCN(graph.x, graph.edges, graph.classes, seeds=range(trials)).train()
    optimizer = make_optimizer(model, ADAM, initial=False)
    game = Game(model, alpha=0.99, tau=0.25, stacked=True, full_graph=True)
    labeled = graph.train, graph.y[graph.train].expand(trials, -1)
    unlabeled = graph.all[~torch.isin(graph.all, graph.train)]

    def epoch() -> None:
        game.backward(game.loss(unlabeled=unlabeled, labeled=labeled))
        optimizer.step()
        optimizer.zero_grad()
        game.follow()

    return epoch


def dense_grand(graph: Citations) -> Epoch:
    """The published loop: dense features are propagated, one augmentation after the other, one seed."""
    recipe = graph.recipe
    x, a = graph.x.to_dense(), normalized_adjacency(graph.edges, len(graph.all)).rows.to_sparse_coo().coalesce()
    model = nn.Sequential(
        nn.Dropout(recipe.input_dropout),
        nn.Linear(x.shape[1], recipe.hidden),
        nn.ReLU(),
        nn.Dropout(recipe.hidden_dropout),
        nn.Linear(recipe.hidden, graph.classes),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)

    def propagated(x: Tensor) -> Tensor:
        power, total = x, x
        for _ in range(recipe.order):
            power = torch.sparse.mm(a, power)
            total = total + power
        return total / (recipe.order + 1)

    def epoch() -> None:
        model.train()
        optimizer.zero_grad()
        kept = torch.bernoulli(torch.full((recipe.views, len(x), 1), 1 - recipe.drop_node))
        log_p = torch.stack([torch.log_softmax(model(propagated(x * mask)), -1) for mask in kept])
        supervised = graph.supervised(log_p[:, graph.train]) / recipe.views
        (supervised + recipe.consistency_weight * consistency(log_p, recipe.temperature)).backward()
        optimizer.step()
        with torch.no_grad():
            graph.accuracies(model.eval()(propagated(x * (1 - recipe.drop_node))))

    return epoch


def our_grand(graph: Citations, trials: int, reordered: bool = True) -> Epoch:
    recipe = graph.recipe
    model = Grand(graph.x, graph.edges, graph.classes, seeds=range(trials), recipe=recipe, reordered=reordered)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
    )

    def epoch() -> None:
        # With seven classes the softmax is several times faster along any dimension but the last.
        log_p = torch.log_softmax(model.train().augmentations(graph.all).mT.contiguous(), -2).mT
        supervised = graph.supervised(log_p[:, :, graph.train].flatten(0, 1)) / recipe.views
        (supervised + recipe.consistency_weight * consistency(log_p, recipe.temperature).sum()).backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            graph.accuracies(model.eval()(graph.all))

    return epoch


def interleaved(
    variants: dict[str, tuple[Epoch, int, int]], blocks: int, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Median processor seconds per seed and epoch. variants: an epoch, its number of seeds, and epochs per block."""
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for block in range(blocks + 1):
        for name, (epoch, seeds, epochs) in variants.items():
            start = clock()
            for _ in range(epochs):
                epoch()
            if block:  # the first block is a warm-up
                seconds[name].append((clock() - start) / epochs / seeds)
    return {name: statistics.median(times) for name, times in seconds.items()}


def compared(
    what: str, seconds: dict[str, float], ratios: dict[str, tuple[str, str, float]], per: str = "a_seed_and_epoch"
) -> dict[str, Any]:
    """The content of the JSON. ratios: the slow variant, the fast variant, and the target of their ratio."""
    return {
        "what": what,
        f"seconds_{per}": seconds,
        "ratios": {
            name: {"measured": seconds[slow] / seconds[fast], "target": target}
            for name, (slow, fast, target) in ratios.items()
        },
    }


def gcn(graph: Citations, blocks: int) -> dict[str, Any]:
    variants = {"torch_geometric": (pyg_gcn(graph), 1, 3)}
    variants |= {
        f"{trials} stacked": (our_gcn(graph, trials), trials, epochs) for trials, epochs in ((1, 30), (10, 6), (20, 3))
    }
    return compared(
        "GCN on Cora, full-batch epochs with evaluation of all nodes",
        interleaved(variants, blocks),
        {
            "20 stacked over torch_geometric": ("torch_geometric", "20 stacked", 20),
            "10 stacked over torch_geometric": ("torch_geometric", "10 stacked", 20),
            "10 stacked over one by one": ("1 stacked", "10 stacked", 4),
        },
    )


def game(graph: Citations, blocks: int) -> dict[str, Any]:
    variants = {
        f"{trials} stacked": (drift_gcn(graph, trials), trials, epochs)
        for trials, epochs in ((1, 20), (10, 4), (20, 2))
    }
    return compared(
        "DRIFT with GCN on Cora, steps on all nodes without evaluation",
        interleaved(variants, blocks),
        {"10 stacked over one by one": ("1 stacked", "10 stacked", 4)},
    )


def grand(graph: Citations, blocks: int) -> dict[str, Any]:
    variants = {
        "dense": (dense_grand(graph), 1, 1),
        "original order, 1 stacked": (our_grand(graph, 1, reordered=False), 1, 1),
        "1 stacked": (our_grand(graph, 1), 1, 4),
        "10 stacked": (our_grand(graph, 10), 10, 2),
    }
    same = "the same arithmetic" if not graph.recipe.input_dropout else "input dropout moved"
    return compared(
        f"GRAND on {graph.name}, full-batch epochs with evaluation of all nodes",
        interleaved(variants, blocks),
        {
            f"10 stacked over dense, {same}": ("dense", "10 stacked", 8),
            "original order over dense, the same arithmetic": ("dense", "original order, 1 stacked", 8),
            "10 stacked over one by one": ("1 stacked", "10 stacked", 4),
        },
    )


def commands(graph: Citations, blocks: int) -> dict[str, Any]:
    """Whole commands, including the time to start Python and to read, save and report."""

    def run(seeds: int) -> Epoch:
        fit = ["fit", "--task", "nodes", "--graph", graph.name, "--labels-per-class", "20", "--quiet"]

        def command() -> None:
            with TemporaryDirectory() as folder:
                words = [sys.executable, "-m", "drift", *fit, "--set", f"seeds={seeds}", "-o", f"{folder}/run"]
                subprocess.run(words, check=True, stdout=subprocess.DEVNULL)

        return command

    return compared(
        f"drift fit --task nodes --graph {graph.name} --labels-per-class 20, whole commands",
        interleaved({"1 seed": (run(1), 1, 1), "10 seeds": (run(10), 10, 1)}, blocks, processor_time),
        {"10 seeds in one command over ten commands": ("1 seed", "10 seeds", 4)},
        per="a_seed",
    )


def processor_time() -> float:
    """Processor seconds of this process and of the processes it waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


PARTS = {
    "commands": (commands, "Cora"),
    "gcn": (gcn, "Cora"),
    "game": (game, "Cora"),
    "grand": (grand, "Cora"),
    "grand-citeseer": (grand, "CiteSeer"),  # without input dropout, so that the two orders are equivalent
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--blocks", type=int, default=7, help="timed blocks per variant (default: %(default)s)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)  # models of other libraries use the global generator
    keep_freed_memory()
    measure, name = PARTS[args.part]
    result = measure(Citations(name), args.blocks)
    print(json.dumps(result, indent=2))
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"torch": torch.__version__}
    results[args.part] = result
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
