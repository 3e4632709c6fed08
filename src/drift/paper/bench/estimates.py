"""Estimate how long a run takes, before anything is timed: number of operations divided by the speed of the machine.

An encoder with P weights (without word embeddings) takes 2P operations per token for the forward pass and 4P for the
backward pass. Steps of the first phase are supervised. A step of the second phase costs `Method.relative_cost`
supervised steps, over labelled and unlabelled rows. The time of small models does not depend on this arithmetic: for
them, the table holds seconds per step as recorded in docs/results.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from drift.methods import METHODS
from drift.paper.bench.cells import Job
from drift.paper.bench.configs import dataset_of
from drift.runs.workers import cores

CPU_SPEED, GPU_SPEED = 25e9, 5e12  # operations per second of one core and of a GPU, at half of their peak
WEIGHTS = {  # of encoders, in millions
    "roberta-base": 85.0,
    "default": 21.3,
    "bge-small-en-v1.5": 21.3,
    "all-MiniLM-L6-v2": 10.6,
    "paraphrase-MiniLM-L3-v2": 5.3,
    "granite-embedding-30m-english": 10.6,
}
EMBEDDED_ROWS = {"train": 10_000, "dev": 3_000, "test": 3_000}  # assumed where the settings do not limit them
LENGTHS = {"agnews": 50, "tokens": 25}  # sub-words per row, by dataset or task, if usually below `max_length`
SECONDS_PER_STEP = {  # for ten seeds and the nodes of Cora
    **{"frozen": 0.02, "gcn": 0.02, "grand": 0.15},
    **{"factory": 0.5, "vampire": 2.0},
}
NODES = {"Cora": 2708, "CiteSeer": 3327, "PubMed": 19717}


def estimated_seconds(job: Job) -> float:
    """Estimated time of a run with its search, without embedding, which several runs share."""
    return (1 + job.trials) * _seconds(job)


def _seconds(job: Job) -> float:
    training, model = job.config["training"], job.config["model"]
    method = METHODS[job.config["method"]["name"]]
    first, second = training["initial_steps"], training["steps"] if method.has_second_phase else 0
    if job.kind in SECONDS_PER_STEP:
        size = NODES.get(job.config["data"]["train"], NODES["Cora"]) / NODES["Cora"]
        steps = first + second * method.relative_cost
        return float(steps * SECONDS_PER_STEP[job.kind] * size * job.config["seeds"] / 10)
    labeled = training["batch_size"]
    unlabeled = training["unlabeled_batch_size"] or labeled
    rows = first * labeled + second * (labeled + (method.relative_cost - 1) * unlabeled)
    return float(rows * _length(job) * 6 * _weights(model) / speed())


def embedding_seconds(jobs: Iterable[Job]) -> float:
    """Estimated time to embed the texts of runs with a fixed encoder; each dataset is counted once."""
    return sum({job.folders: _embedding(job) for job in jobs if job.config["model"].get("frozen")}.values())


def _embedding(job: Job) -> float:
    data, model = job.config["data"], job.config["model"]
    rows = sum(data[f"{part}_rows"] or rows for part, rows in EMBEDDED_ROWS.items())
    return rows * _length(job) * 2 * _weights(model) / speed()


def correction(finished: Mapping[Job, float]) -> float:
    """The factor by which estimates are multiplied, from the recorded seconds of finished runs; 1 if there are none."""
    expected = sum(map(estimated_seconds, finished))
    return sum(finished.values()) / expected if expected else 1.0


def speed() -> float:
    """Operations per second of this machine."""
    return GPU_SPEED if torch.accelerator.is_available() else CPU_SPEED * cores()


def _length(job: Job) -> int:
    """Sub-words per row."""
    usual = LENGTHS.get(dataset_of(job.cell)) or LENGTHS.get(job.config["task"])
    longest: int = job.config["model"]["max_length"]
    return min(usual or longest, longest)


def _weights(model: Mapping[str, Any]) -> float:
    if model["name"] == "textcnn":
        return float(300 * model["maps"] * sum(model["windows"]))
    return 1e6 * WEIGHTS.get(model["name"], WEIGHTS["roberta-base"])
