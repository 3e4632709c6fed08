"""Runs of a bench: run once, resumed, several at once, and not lost if another run fails or a worker is killed."""

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import drift
from drift.errors import ConfigError, FileError, Interrupted, PackageError, StateError
from drift.paper.bench import locks, running
from drift.paper.bench.catalogue import EXHIBITS
from drift.paper.bench.cells import Job
from drift.paper.bench.figures import pictures_of, rings
from drift.paper.bench.locks import locked
from drift.paper.bench.planning import jobs_of, part_of
from drift.paper.bench.running import LOCK, RESULT, RUN, cell_folder, result_of, run_job, run_jobs
from drift.runs import run as run_module
from drift.runs.report import write_report
from drift.runs.result import REPORT
from drift.runs.spec import RunSpec
from drift.runs.tuning.tune import Search
from drift.weak.token_matching import Sentence
from drift.weak.token_rules import TokenRuleSet
from tests.runs.small import small_encoder, small_table, write_csv
from tests.runs.small_graphs import STEPS, small_graph, write_npz
from tests.training.runs import stopped_after


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a graph of 90 nodes."""
    folder = tmp_path / "data"
    (folder / "small").mkdir(parents=True)
    monkeypatch.setenv("DRIFT_DATA", str(folder))
    write_npz(folder / "small" / "graph.npz", small_graph(90))
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "bench"


def small_job(data: Path, method: str = "drift", *, graph: str = "graph.npz", seed: int = 0, **training: Any) -> Job:
    layer = {
        "data": {"train": str(data / "small" / graph)},
        "model": {"name": "gcn", "hidden": 5},
        "training": {**STEPS, "seed": seed, **training},
        "seeds": 2,
    }
    spec = RunSpec.resolve([layer], task="nodes", method=method)
    return Job("graph", method, "small-public", "gcn", spec.described(), (data / "small",))


def refuse(*_: Any, **__: Any) -> Any:
    raise AssertionError("nothing should be run")


def test_scores_are_the_same_as_those_of_a_single_run(data: Path, out: Path) -> None:
    job = small_job(data)
    assert run_jobs([job], out, n_jobs=1) == []
    result = result_of(out, job)
    assert result is not None
    single = drift.fit(config=job.config, quiet=True)
    assert result.scores == {seed: scores["accuracy"] for seed, scores in enumerate(single.record.test.scores)}
    assert result.budget == single.metrics["label_budget"]
    assert not (cell_folder(out, job) / RUN / "checkpoints").exists()


def test_a_redrawn_seed_has_no_page_until_it_is_asked_for(data: Path, out: Path) -> None:
    job = small_job(data)
    single = replace(job, config={**job.config, "seeds": 1})
    assert run_jobs([job, single], out, n_jobs=1) == []
    pages = [cell_folder(out, each) / RUN / REPORT for each in (job, single)]
    assert [page.exists() for page in pages] == [True, False]
    write_report(cell_folder(out, single) / RUN)
    assert pages[1].exists()


def test_finished_jobs_are_not_run_again(data: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, same = small_job(data), small_job(data)
    done: list[Job] = []
    assert run_jobs([job, same], out, n_jobs=1, done=done.append) == []
    assert len(done) == 1  # one key, one run
    monkeypatch.setattr(running, "run", refuse)
    assert run_jobs([job], out, n_jobs=1, done=done.append) == []
    assert len(done) == 1


def test_another_configuration_is_another_run(data: Path, out: Path) -> None:
    first, other = small_job(data), small_job(data, steps=4)
    run_jobs([first], out, n_jobs=1)
    run_jobs([other], out, n_jobs=1)
    assert len(list((out / "cells").iterdir())) == 2


def test_an_interrupted_run_is_resumed(data: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = small_job(data, checkpoint_every=2)
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "Trainer", stopped_after(9))
        with pytest.raises(Interrupted, match="the same command continues"):
            run_jobs([job], out, n_jobs=1)
    assert result_of(out, job) is None
    resumed: list[bool] = []

    def watched(*what: Any, **options: Any) -> Any:
        resumed.append(options["resume"])
        return run_module.run(*what, **options)

    monkeypatch.setattr(running, "run", watched)
    assert run_jobs([job], out, n_jobs=1) == []
    assert resumed == [True]
    whole = small_job(data, checkpoint_every=2)
    run_jobs([whole], out.with_name("whole"), n_jobs=1)
    assert result_of(out, job).scores == result_of(out.with_name("whole"), whole).scores  # type: ignore[union-attr]


def test_an_interrupted_run_is_started_again_if_its_data_have_moved(
    data: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = small_job(data, checkpoint_every=2)
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "Trainer", stopped_after(9))
        with pytest.raises(Interrupted):
            run_jobs([job], out, n_jobs=1)
    moved = data.rename(data.with_name("elsewhere"))
    monkeypatch.setenv("DRIFT_DATA", str(moved))
    again = small_job(moved, checkpoint_every=2)
    assert again.key == job.key
    assert run_jobs([again], out, n_jobs=1) == []
    assert result_of(out, again) is not None


def test_settings_are_searched_and_an_interrupted_search_continues(
    data: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna", reason="needs optuna: pip install 'drift-ssl[tune]'")
    job = replace(small_job(data), trials=2)
    with monkeypatch.context() as patch:
        patch.setattr(Search, "_account", stopped)
        with pytest.raises(Interrupted):
            run_jobs([job], out, n_jobs=1)
    assert result_of(out, job) is None
    assert run_jobs([job], out, n_jobs=1) == []
    search = json.loads((cell_folder(out, job) / RUN / "metrics.json").read_text(encoding="utf-8"))["tuning"]
    assert search["trials"] == 2
    assert small_job(data).key != job.key


def stopped(*_: Any) -> Any:
    raise Interrupted("stopped by the test")


def test_a_folder_that_cannot_be_resumed_is_started_again(data: Path, out: Path) -> None:
    job = small_job(data)
    (cell_folder(out, job) / RUN).mkdir(parents=True)
    (cell_folder(out, job) / RUN / "config.yaml").write_text("task: no", encoding="utf-8")
    assert run_jobs([job], out, n_jobs=1) == []


def test_a_failure_does_not_stop_other_runs(data: Path, out: Path) -> None:
    (data / "small" / "bad.npz").write_bytes(b"not a graph")
    bad, good = small_job(data, graph="bad.npz"), small_job(data)
    (failure,) = run_jobs([bad, good], out, n_jobs=1)
    assert failure.job is bad
    assert "bad.npz" in failure.reason
    assert "\n" not in failure.reason
    assert "Traceback" in (cell_folder(out, bad) / "failure.txt").read_text(encoding="utf-8")
    assert result_of(out, good) is not None
    write_npz(data / "small" / "bad.npz", small_graph(90))
    repaired = small_job(data, graph="bad.npz")
    assert run_jobs([repaired], out, n_jobs=1) == []


def test_unexpected_errors_are_reported_too(data: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("first\nsecond")

    monkeypatch.setattr(running, "run", broken)
    (failure,) = run_jobs([small_job(data)], out, n_jobs=1)
    assert failure.reason == "RuntimeError: first"


@pytest.mark.parametrize(
    "damaged",
    [
        "{",
        "[]",
        '{"scores": [1, 2], "budget": {"train": 1, "dev": 1, "total": 2}, "seconds": 1}',
        '{"scores": {"0": null}, "budget": {"train": 1, "dev": 1, "total": 2}, "seconds": 1}',
        '{"scores": {"0": 0.5}, "budget": {}, "seconds": 1}',
    ],
)
def test_a_damaged_result_is_an_error_of_one_line(data: Path, out: Path, damaged: str) -> None:
    job = small_job(data)
    cell_folder(out, job).mkdir(parents=True)
    (cell_folder(out, job) / RESULT).write_text(damaged, encoding="utf-8")
    with pytest.raises(FileError, match="delete its folder"):
        run_jobs([job], out, n_jobs=1)


def test_a_second_process_waits_and_runs_nothing(data: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = small_job(data)
    folder = cell_folder(out, job)
    folder.mkdir(parents=True)
    monkeypatch.setattr(running, "run", refuse)
    answers: list[Any] = []
    second = threading.Thread(target=lambda: answers.append(run_job(job, out)))
    with locked(folder / LOCK):
        second.start()
        second.join(0.2)
        assert second.is_alive()
        (folder / RESULT).write_text("{}", encoding="utf-8")
    second.join()
    assert answers == [(job.key, None)]


class FakeMsvcrt:
    """`msvcrt.locking` of Windows, for one lock: an error if it is taken."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def locking(self, _: int, mode: int, count: int) -> None:
        assert count == 1
        if mode == self.LK_UNLCK:
            self.lock.release()
        elif not self.lock.acquire(blocking=False):
            raise OSError("the lock is taken")


def test_the_lock_of_windows_waits_and_is_released_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeMsvcrt()
    monkeypatch.setattr(locks, "FCNTL", None)
    monkeypatch.setattr(locks, "MSVCRT", fake)
    monkeypatch.setattr(locks, "WAIT", 0.01)
    order: list[str] = []

    def second() -> None:
        with locked(tmp_path / LOCK):
            order.append("second")

    def first() -> None:
        with locked(tmp_path / LOCK):
            thread.start()
            thread.join(0.1)
            order.append("first")
            raise RuntimeError

    thread = threading.Thread(target=second)
    with pytest.raises(RuntimeError):
        first()
    thread.join()
    assert order == ["first", "second"]
    assert not fake.lock.locked()


def test_without_any_lock_the_block_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "FCNTL", None)
    monkeypatch.setattr(locks, "MSVCRT", None)
    with locked(tmp_path / LOCK), locked(tmp_path / LOCK):
        assert (tmp_path / LOCK).exists()


def test_one_run_per_dataset_comes_first(data: Path) -> None:
    jobs = [small_job(data, method, seed=seed) for seed in range(3) for method in ("drift", "self-training")]
    more = [small_job(data, threads=2, seed=seed) for seed in range(2)]
    batches = list(running._batches([*jobs, *more]))
    assert [len(batch) for batch in batches] == [1, 5, 1, 1]
    assert batches[0] == jobs[:1]
    assert Counter(map(id, (job for batch in batches for job in batch))) == Counter(map(id, [*jobs, *more]))


def test_runs_on_texts_keep_rings_but_no_model(
    data: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    tables = {part: write_csv(data / "small" / f"{part}.csv", small_table(60)) for part in ("train", "dev", "test")}
    layer = {
        "data": {**tables, "text": "body", "label": "topic", "labels_per_class": 3},
        "model": {"name": small_encoder(tmp_path / "encoder"), "max_length": 32},
        "training": {"initial_steps": 4, "steps": 4, "batch_size": 8, "trackers": [], "predictions_at": [0, 4]},
        "seeds": 2,
    }
    spec = RunSpec.resolve([layer], task="text", finetune=False)
    job = Job("frozen", "DRIFT", "small-3", "frozen", spec.described(), (data / "small",))
    assert run_jobs([job], out, n_jobs=1) == []
    result = result_of(out, job)
    assert result is not None
    assert set(result.scores) == {0, 1}
    assert not (cell_folder(out, job) / RUN / "model").exists()
    assert (cell_folder(out, job) / RUN / "report.html").exists()
    assert "The model was not kept" in (cell_folder(out, job) / RUN / "report.html").read_text(encoding="utf-8")
    (picture,) = rings(EXHIBITS["rings"], "frozen", {job: result}, out / "figures" / "stem", out)
    assert picture.path.name == "stem-small-3-drift.png"
    assert "step 4" in picture.path.with_suffix(".svg").read_text(encoding="utf-8")
    assert picture.alt.startswith("DRIFT, small-3. Rings of right and wrong predictions.")


def test_a_dictionary_becomes_rules_beside_the_run(data: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (data / "bc5cdr").mkdir()
    (data / "bc5cdr" / "dict_core.txt").write_text("Chemical\taspirin\nDisease\theart attack\n", encoding="utf-8")
    exhibit = part_of(EXHIBITS["weak"], ["bc5cdr-weak"], ["drift"])
    job = next(job for job in jobs_of(exhibit, "laptop", 1) if job.group == "frozen")
    read: list[TokenRuleSet] = []

    def stopped(spec: RunSpec, *_: Any, **__: Any) -> Any:
        read.append(TokenRuleSet.from_file(spec.described()["data"]["rules"]))
        raise FileError("stopped by the test")

    monkeypatch.setattr(running, "run", stopped)
    (failure,) = run_jobs([job], out, n_jobs=1)
    assert failure.reason == "stopped by the test"
    (spans,) = read[0].find(Sentence(["an", "aspirin", "after", "a", "heart", "attack"]))
    assert {(span.start, span.end, span.type) for span in spans} == {(1, 2, "Chemical"), (4, 6, "Disease")}


def test_several_processes_give_the_same_scores_as_one(data: Path, out: Path) -> None:
    jobs = [small_job(data, seed=seed) for seed in (0, 10, 20)]
    assert run_jobs(jobs, out, n_jobs=2) == []
    assert run_jobs(jobs, out.with_name("one"), n_jobs=1) == []
    assert [scores(out, job) for job in jobs] == [scores(out.with_name("one"), job) for job in jobs]


def test_ray_gives_the_same_scores_as_one_process(data: Path, out: Path) -> None:
    pytest.importorskip("ray", reason="ray is not installed")
    jobs = [small_job(data, seed=seed) for seed in (0, 10)]
    assert run_jobs(jobs, out, cluster="ray") == []
    assert run_jobs(jobs, out.with_name("one"), n_jobs=1) == []
    assert [scores(out, job) for job in jobs] == [scores(out.with_name("one"), job) for job in jobs]


def test_representations_have_one_figure_per_graph_and_one_panel_per_method(data: Path, out: Path) -> None:
    tsne = EXHIBITS["tsne"]
    jobs = [small_job(data, method) for method in ("hard-self-training", "self-training", "drift")]
    drawn = [replace(job, row=row.title, cell="cora-10") for job, row in zip(jobs, tsne.rows, strict=True)]
    assert run_jobs(drawn, out, n_jobs=1) == []
    results = {job: result_of(out, job) for job in drawn}
    (picture,) = pictures_of(tsne, "graph", results, out / "figures" / "stem", out)  # type: ignore[arg-type]
    assert (picture.path.parent.name, "cora-10" in picture.alt) == ("stem-cora-10", True)
    panels = picture.path.with_suffix(".svg").read_text(encoding="utf-8")
    assert [f"{row.title} on cora" in panels for row in tsne.rows] == [True, True, True]


def test_a_killed_process_is_an_error_of_one_line(data: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "run_job", die)
    monkeypatch.setattr(running, "_batches", lambda jobs: [list(jobs)])  # a single job would be run in this process
    with pytest.raises(StateError, match="the same command continues"):
        run_jobs([small_job(data, seed=seed) for seed in range(3)], out, n_jobs=2)


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_missing_cluster_is_an_error_of_one_line(data: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(PackageError, match=r"drift-ssl\[ray\]"):
        run_jobs([small_job(data)], out, cluster="ray")
    pytest.importorskip("distributed")
    with pytest.raises(ConfigError, match="no Dask scheduler answers"):
        run_jobs([small_job(data)], out, cluster="tcp://127.0.0.1:9")


def test_no_run_is_lost_if_a_dask_worker_is_killed(data: Path, out: Path) -> None:
    distributed = pytest.importorskip("distributed")
    jobs = [small_job(data, seed=seed, steps=200, checkpoint_every=20) for seed in (0, 10, 20)]
    finished: list[str] = []
    failures: list[Any] = []
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        pids = client.run(os.getpid)
        assert len(set(pids.values())) == 2

        def go() -> None:
            failures.extend(
                run_jobs(jobs, out, cluster=cluster.scheduler_address, done=lambda job: finished.append(job.key))
            )

        bench = threading.Thread(target=go)
        bench.start()
        victim = busy_worker(client, out)
        os.kill(pids[victim], signal.SIGKILL)
        bench.join(300)
        assert not bench.is_alive()
    assert failures == []
    assert sorted(finished) == sorted(job.key for job in jobs)
    assert {folder.name for folder in (out / "cells").iterdir()} == set(finished)
    assert run_jobs(jobs, out.with_name("one"), n_jobs=1) == []
    for job in jobs:
        assert scores(out, job) == scores(out.with_name("one"), job)


def scores(out: Path, job: Job) -> dict[str, float]:
    return dict(json.loads((cell_folder(out, job) / RESULT).read_text(encoding="utf-8"))["scores"])


def busy_worker(client: Any, out: Path, seconds: float = 200) -> str:
    """The address of a worker that is in the middle of a run: there is a checkpoint and no result."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        begun = {checkpoint.parent.parent.parent for checkpoint in out.glob(f"cells/*/{RUN}/checkpoints/*")}
        busy = [worker for worker, tasks in client.processing().items() if tasks]
        if busy and any(not (folder / RESULT).exists() for folder in begun):
            return str(busy[0])
        time.sleep(0.01)
    raise AssertionError("no worker ever wrote a checkpoint")
