"""How long a run takes, before anything was timed: arithmetic of its steps over the speed of the machine.

An encoder of P weights (without its word embeddings) computes 2P operations a token forwards and 4P backwards. A step
of the start is supervised; one after it costs `Method.relative_cost` of those, over labelled and unlabelled rows. Models
that are small are bound by other things: their seconds a step are as recorded in docs/results.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from drift.methods import METHODS
from drift.paper.bench.cells import Job
from drift.runs.workers import cores

CPU_SPEED, GPU_SPEED = 25e9, 5e12  # operations a second: of a core, and of a GPU, both at half of what they could
WEIGHTS = {  # of encoders, millions
    "roberta-base": 85.0,
    "default": 10.6,
    "paraphrase-MiniLM-L3-v2": 5.3,
    "granite-embedding-30m-english": 10.6,
}
EMBEDDED_ROWS = {"train": 10_000, "dev": 3_000, "test": 3_000}  # where nothing limits them
LENGTHS = {"agnews": 50, "tokens": 25}  # sub-words of a row, where few rows fill what is read at most
SECONDS_A_STEP = {"frozen": 0.02, "gcn": 0.02, "grand": 0.15, "vampire": 2.0}  # ten seeds, Cora's nodes
NODES = {"Cora": 2708, "CiteSeer": 3327, "PubMed": 19717}


def estimated_seconds(job: Job) -> float:
    """Of a run, without what is cached by runs before it."""
    training, model = job.config["training"], job.config["model"]
    method = METHODS[job.config["method"]["name"]]
    first, later = training["initial_steps"], training["steps"] if method.has_second_phase else 0
    if job.kind in SECONDS_A_STEP:
        size = NODES.get(job.config["data"]["train"], NODES["Cora"]) / NODES["Cora"]
        steps = first + later * method.relative_cost
        return float(steps * SECONDS_A_STEP[job.kind] * size * job.config["seeds"] / 10)
    labeled = training["batch_size"]
    unlabeled = training["unlabeled_batch_size"] or labeled
    rows = first * labeled + later * (labeled + (method.relative_cost - 1) * unlabeled)
    return float(rows * _length(job) * 6 * _weights(model) / speed())


def embedding_seconds(jobs: Iterable[Job]) -> float:
    """Of the vectors that runs with a fixed encoder share."""
    return sum({job.folders: _embedding(job) for job in jobs if job.kind == "frozen"}.values())


def _embedding(job: Job) -> float:
    data, model = job.config["data"], job.config["model"]
    rows = sum(data[f"{part}_rows"] or rows for part, rows in EMBEDDED_ROWS.items())
    return rows * _length(job) * 2 * _weights(model) / speed()


def correction(finished: Mapping[Job, float]) -> float:
    """What estimates have to be multiplied by, from the recorded seconds of finished runs; 1 without any."""
    expected = sum(map(estimated_seconds, finished))
    return sum(finished.values()) / expected if expected else 1.0


def speed() -> float:
    return GPU_SPEED if torch.accelerator.is_available() else CPU_SPEED * cores()


def _length(job: Job) -> int:
    usual = LENGTHS.get(job.cell.rpartition("-")[0]) or LENGTHS.get(job.config["task"])
    longest: int = job.config["model"]["max_length"]
    return min(usual or longest, longest)


def _weights(model: Mapping[str, Any]) -> float:
    if model["name"] == "textcnn":
        return float(300 * model["maps"] * sum(model["windows"]))
    return 1e6 * WEIGHTS.get(model["name"], WEIGHTS["roberta-base"])
