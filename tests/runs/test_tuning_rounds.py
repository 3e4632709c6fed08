"""Trials of a search at once: drawn in rounds, trained by workers, and the same whatever ends first or is killed."""

import gc
import os
import shutil
import signal
import threading
import time
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drift
from drift.errors import StateError
from drift.runs import run as execution
from drift.runs.result import Run
from drift.runs.spec import RunSpec
from drift.runs.tuning import tune as tuning
from drift.runs.tuning.search_space import search_space
from drift.runs.tuning.trials import NEVER_PRUNED, Trials, train_in_worker
from tests.runs.small_graphs import STEPS, small_graph, write_npz

optuna = pytest.importorskip("optuna", reason="needs optuna: pip install 'drift-ssl[tune]'")

TRIALS, AT_ONCE = 6, 2
CONFIG = {"model": {"hidden": 5}, "training": {**STEPS, "learning_rate": 0.02}}
COMPLETE, PRUNED = optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_npz(tmp_path_factory.mktemp("graph") / "graph.npz", small_graph(60))


@pytest.fixture(scope="module")
def trials(graph: Path) -> Trials:
    """What `drift.tune` makes of the graph."""
    layer = {**CONFIG, "data": {"train": str(graph)}, "seeds": 2}
    spec = RunSpec.resolve([layer], task="nodes")
    assert spec.kind.name == "gcn"
    assert spec.sources == {"train": str(graph), "unlabeled": None, "dev": None, "test": None}
    task = execution.new_task(spec, quiet=True)
    task.read(spec.sources)
    return Trials(spec, search_space(spec), task.fingerprint())


def small_tune(graph: Any, **options: Any) -> Run:
    run = drift.tune(
        graph, **{"task": "nodes", "seeds": 2, "quiet": True, "config": CONFIG, "n_trials": TRIALS, **options}
    )
    assert isinstance(run, Run)
    return run


def again(folder: Path, **options: Any) -> Run:
    run = drift.tune(out=folder, resume=True, quiet=True, n_trials=TRIALS, **options)
    assert isinstance(run, Run)
    return run


@pytest.fixture(scope="module")
def searched(graph: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A search by two processes, from beginning to end."""
    return small_tune(graph, n_jobs=AT_ONCE, out=tmp_path_factory.mktemp("searched") / "run")


def journal(folder: Path) -> Path:
    return folder / "tuning" / "study.jsonl"


@pytest.fixture
def cut_short(searched: Run, tmp_path: Path) -> Path:
    """Its folder as a kill leaves it in the middle of the second round, and of the line of a trial."""
    assert searched.path is not None
    shutil.copytree(searched.path / "tuning", tmp_path / "run" / "tuning")
    file = journal(tmp_path / "run")
    lines = file.read_bytes().splitlines(keepends=True)
    whole = len(lines) - TRIALS + AT_ONCE + 1
    file.write_bytes(b"".join(lines[:whole]) + lines[whole][:-3])
    return tmp_path / "run"


def earlier(trials: Trials, scores: list[list[float]]) -> list[Any]:
    """Finished trials with these dev scores at their looks."""
    study = trials.study()
    for number, values in enumerate(scores):
        trial = trials.ask(study, number)
        for look, value in enumerate(values):
            trial.report(value, look)
        study.tell(trial, max(values))
    return list(study.trials)


def test_the_account_is_complete(searched: Run) -> None:
    found = searched.metrics["tuning"]
    assert found["trials"] == len(found["tried"]) == TRIALS
    assert found["tried"][0]["settings"] == {
        "method.alpha": 0.9,
        "method.tau": 0.25,
        "training.learning_rate": 0.02,
    }
    assert found["steps"] == sum(trial["steps"] for trial in found["tried"])
    assert found["dev_looks"] == sum(trial["looks"] for trial in found["tried"])
    for trial in found["tried"]:
        assert (trial["steps"], trial["looks"]) == (12, 7) or trial["ended"] == "pruned"
    best = max((trial for trial in found["tried"] if trial["ended"] == "complete"), key=lambda trial: trial["dev"])
    dev = [seed["accuracy"] for seed in searched.metrics["dev"]["scores"]]
    assert sum(dev) / len(dev) == best["dev"]  # trained again, here, it comes to what the worker said
    assert f"{TRIALS} trials" in searched.notes[-1]


def test_a_trial_is_one_line_of_the_journal(searched: Run) -> None:
    assert searched.path is not None
    lines = journal(searched.path).read_bytes().splitlines()
    assert len([line for line in lines if b'"params"' in line]) == TRIALS
    assert all(b'"intermediate_values"' in line for line in lines if b'"params"' in line)


def test_a_search_that_was_killed_goes_on_to_the_same_end(searched: Run, cut_short: Path) -> None:
    run = again(cut_short, n_jobs=AT_ONCE)
    assert run.metrics["tuning"] == searched.metrics["tuning"]
    assert run.metrics["test"] == searched.metrics["test"]
    assert journal(cut_short).read_bytes().count(b'"params"') == TRIALS  # nothing was trained twice


def test_a_round_is_drawn_from_the_rounds_before(trials: Trials) -> None:
    before = earlier(trials, [[score / 20] for score in range(12)])
    drawn = trials.round(before, 4)
    assert trials.round(before, 4) == drawn
    assert trials.round(before, 2) == drawn[:2]  # a round that is cut short begins as a whole one
    assert len({tuple(each.values()) for each in drawn}) == 4
    alone = trials.study()
    alone.add_trials(before)
    assert trials.ask(alone, 12).params == drawn[0]  # as a search one by one would
    usual = {each.path: each.usual(trials.spec.config) for each in trials.space}
    assert trials.round([], 2)[0] == pytest.approx(usual)


@pytest.mark.parametrize(
    "scores",
    [
        [[0.0, 0.0, 0.0, 0.0]] * 4,
        [[1.0, 1.0, 1.0, 1.0]] * 4,
        [[1.0, 1.0, 1.0, 1.0]] * (NEVER_PRUNED - 1),
        [[0.0, 0.0, 1.0, 1.0]] * 4,
        [[0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]] * 3,
        [[1.0, 0.0, 0.0, 0.0], [1.0], [1.0], [1.0]],
    ],
)
def test_a_worker_stops_a_trial_by_the_median_of_those_before(trials: Trials, scores: list[list[float]]) -> None:
    before = earlier(trials, scores)
    free = train_in_worker(trials, [], trials.round([], 1)[0])
    looks = list(free.intermediate_values.values())
    assert (free.state, len(looks)) == (COMPLETE, 4)

    def below(look: int) -> bool:
        others = [values[look] for values in scores if look < len(values)]
        return bool(others) and max(looks[: look + 1]) < np.median(others)

    warm_up = STEPS["steps"] // STEPS["evaluate_every"] // 4
    ends = [look for look in range(warm_up, 4) if len(scores) >= NEVER_PRUNED and below(look)]
    trained = train_in_worker(trials, before, free.params)
    assert trained.params == free.params
    assert trained.state == (PRUNED if ends else COMPLETE)
    assert list(trained.intermediate_values.values()) == looks[: ends[0] + 1 if ends else 4]


def test_players_of_a_trial_are_gone_when_a_worker_has_told_of_it(
    trials: Trials, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive: list[Any] = []
    init = execution.Trainer.__init__

    def noted(self: Any, *arguments: Any, **options: Any) -> None:
        init(self, *arguments, **options)
        alive.extend(map(weakref.ref, (self.method.student, self.method.teacher)))

    monkeypatch.setattr(execution.Trainer, "__init__", noted)
    drawn = trials.round([], 1)[0]
    gc.disable()  # nothing but the worker itself may collect
    try:
        train_in_worker(trials, [], drawn)
        assert [ref() for ref in alive] == [None, None]
    finally:
        gc.enable()


def test_a_worker_that_reads_other_data_says_so(trials: Trials, tmp_path: Path) -> None:
    other = {**trials.spec.sources, "train": str(write_npz(tmp_path / "graph.npz", small_graph(60, seed=1)))}
    elsewhere = Trials(replace(trials.spec, sources=other), trials.space, trials.fingerprint)
    with pytest.raises(StateError, match="a worker reads other data"):
        train_in_worker(elsewhere, [], trials.round([], 1)[0])


def test_a_worker_that_is_killed_is_one_line_and_the_search_goes_on(
    searched: Run, cut_short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "train_in_worker", die)
        with pytest.raises(
            StateError, match=r"the workers stopped .* the same command with --resume continues"
        ) as error:
            again(cut_short, n_jobs=AT_ONCE)
    assert "\n" not in str(error.value)
    assert again(cut_short, n_jobs=AT_ONCE).metrics["tuning"] == searched.metrics["tuning"]


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_dask_worker_that_is_killed_costs_no_trial(searched: Run, cut_short: Path) -> None:
    distributed = pytest.importorskip("distributed")
    runs: list[Run] = []
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        pids = client.run(os.getpid)
        search = threading.Thread(target=lambda: runs.append(again(cut_short, cluster=cluster.scheduler_address)))
        search.start()
        os.kill(pids[busy_worker(client)], signal.SIGKILL)
        search.join(300)
    (run,) = runs
    assert run.metrics["tuning"] == searched.metrics["tuning"]  # two workers, so rounds of two


def busy_worker(client: Any, seconds: float = 100) -> str:
    """The address of a worker that has begun with a trial."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if busy := [worker for worker, calls in client.processing().items() if calls]:
            return str(busy[0])
        time.sleep(0.01)
    raise AssertionError("no worker was ever given a trial")
