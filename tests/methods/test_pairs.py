"""Every method on every task that offers what it needs, from a table to a model; other pairs are refused."""

import math
from typing import Any

import pandas as pd
import pytest
import torch

import drift
from drift.errors import ConfigError
from drift.methods import METHODS
from drift.runs.result import Run
from drift.tasks import TASKS
from tests.runs.small import WORDS, small_encoder, small_table
from tests.runs.small_graphs import small_graph
from tests.runs.small_tokens import small_sentences, small_word_encoder

TRAINING = {"initial_steps": 4, "steps": 5, "evaluate_every": 2, "trackers": [], "unlabeled_batch_size": 8}
SETTINGS = {"westclass": {"seed_words": {topic: words[:2] for topic, words in WORDS.items()}}}
PAIRS = [(method, task) for method in METHODS for task in TASKS]
SERVED = [(method, task) for method, task in PAIRS if METHODS[method].serves(TASKS[task].offers)]


@pytest.fixture(scope="module")
def encoders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("encoders")
    return {"text": small_encoder(folder / "text"), "tokens": small_word_encoder(folder / "tokens")}


def options_of(task: str, method: str, encoders: dict[str, str]) -> dict[str, Any]:
    """Arguments of `drift.fit`: a tiny table of the task, few labels, a dev set."""
    training = {**TRAINING, "batch_size": 8} if task != "nodes" else {**TRAINING, "unlabeled_batch_size": 1000}
    model = {"hidden": 5} if task == "nodes" else {"max_length": 32}
    settings = {"training": training, "model": model, "method": SETTINGS.get(method, {})}
    common = {"task": task, "method": method, "seeds": 2, "settings": settings, "quiet": True, "onnx": False}
    if task == "nodes":
        return {**common, "train": small_graph()}
    if task == "tokens":
        train, dev = (pd.DataFrame(small_sentences(12, seed=s, labeled=n)) for s, n in ((0, 6), (1, None)))
        return {**common, "train": train, "dev": dev, "model": encoders[task], "finetune": False}
    train, dev = (pd.DataFrame(small_table(40, seed=s, labeled=n)) for s, n in ((0, 12), (1, None)))
    chosen = {} if METHODS[method].model else {"model": encoders[task], "finetune": False}
    return {**common, "train": train, "dev": dev, "text": "body", "label": "topic", **chosen}


def state(run: Run) -> dict[str, torch.Tensor]:
    return dict(run.model.weights) if hasattr(run.model, "weights") else dict(run.model.module.state_dict())


def test_most_methods_serve_every_task() -> None:
    assert [task for method, task in SERVED if method == "drift"] == list(TASKS)
    assert [task for method, task in SERVED if method == "uda"] == ["text"]
    assert [task for method, task in SERVED if method == "cosine"] == ["text", "tokens"]
    assert [task for method, task in SERVED if method == "graphmix"] == ["nodes"]


@pytest.mark.parametrize(("method", "task"), SERVED)
def test_a_pair_trains_and_scores_and_does_so_again(method: str, task: str, encoders: dict[str, str]) -> None:
    def fitted() -> Run:
        run = drift.fit(**options_of(task, method, encoders))
        assert isinstance(run, Run)
        return run

    run = fitted()
    metrics = run.metrics
    assert metrics["label_budget"]["total"] > 0
    if not METHODS[method].trains_on_dev:
        assert len(metrics["dev"]["scores"]) >= 1
        assert all(math.isfinite(value) for trial in metrics["dev"]["scores"] for value in trial.values())
    again = state(fitted())
    assert all(torch.equal(value, again[name]) for name, value in state(run).items())


@pytest.mark.parametrize(("method", "task"), [pair for pair in PAIRS if pair not in SERVED])
def test_any_other_task_is_refused_in_one_line(method: str, task: str, encoders: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=f"{method} is for .*, not for --task {task}"):
        drift.fit(**options_of(task, method, encoders))
