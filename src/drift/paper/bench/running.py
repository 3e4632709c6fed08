"""Runs of a bench, many at once: each in a folder named by what it is, done once, and gone on with if cut short."""

import fcntl
import json
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import torch

from drift.data.files import atomic_file
from drift.data.table_formats import first_line
from drift.errors import DriftError, FileError, Interrupted
from drift.paper.bench.cells import Job
from drift.runs.fit import fit
from drift.runs.report import write_report
from drift.runs.result import MODEL, Run
from drift.runs.workers import ONE_A_PROCESS, cores, results, workers
from drift.training.run_folder import DATA, RunFolder

RESULT, FAILURE, RUN, LOCK, RULES = "result.json", "failure.txt", "run", "lock", "rules.yaml"
KEPT = "finished runs are kept, and the same command goes on"


@dataclass(frozen=True)
class Result:
    """What a table needs of a finished run. scores: shares by seed, on test."""

    scores: dict[int, float]
    budget: dict[str, int]
    seconds: float


@dataclass(frozen=True)
class Failure:
    """A run that ended without a result, and why, in one line."""

    job: Job
    reason: str


def cell_folder(folder: Path, job: Job) -> Path:
    return folder / "cells" / job.key


def result_of(folder: Path, job: Job) -> Result | None:
    """None if the run is not finished."""
    file = cell_folder(folder, job) / RESULT
    if not file.exists():
        return None
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        scores = {int(seed): float(score) for seed, score in found["scores"].items()}
        budget = {part: int(found["budget"][part]) for part in ("train", "dev", "total")}
        return Result(scores, budget, float(found["seconds"]))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise FileError(f"{file} cannot be read ({error}); delete its folder to have it run again") from error


def failure_of(folder: Path, job: Job) -> Failure | None:
    """Why the run failed when it was last tried, if it did."""
    file = cell_folder(folder, job) / FAILURE
    if not file.exists():
        return None
    told = file.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["it is not known why"]
    return Failure(job, told[-1].rpartition("drift.errors.")[2])


def run_jobs(
    jobs: Sequence[Job],
    folder: Path,
    *,
    at_once: int | None = None,
    cluster: str | None = None,
    done: Callable[[Job], None] = lambda job: None,
) -> list[Failure]:
    """Run all of them that have no result yet, each key once; done: called after each. Failures stop no other run.

    at_once: how many on this machine; by default as many as its cores can take. cluster: the address of a Dask
    scheduler, or "ray"; their workers must see the same folders.
    """
    folder = folder.resolve()
    waiting = [job for job in {job.key: job for job in jobs}.values() if result_of(folder, job) is None]
    failures = []
    for batch in _batches(waiting):
        threads = batch[0].config["training"]["threads"] or cores()
        count = min(at_once or _room(threads), len(batch))
        with workers(cluster, count):
            calls = [joblib.delayed(run_job)(job, folder) for job in batch]
            for key, reason in results(calls, cluster, kept=KEPT):
                job = next(job for job in batch if job.key == key)
                if reason is None and result_of(folder, job) is None:
                    reason = f"it is finished elsewhere, but not in {folder}; give an --out that all workers share"
                if reason is not None:
                    failures.append(Failure(job, reason))
                done(job)
    return failures


def run_job(job: Job, folder: Path) -> tuple[str, str | None]:
    """One run, or none if it is finished by now; its key, and why it failed if it did."""
    place = cell_folder(folder, job)
    place.mkdir(parents=True, exist_ok=True)
    with ONE_A_PROCESS, (place / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be at it; if it dies, so does its lock
        if (place / RESULT).exists():
            return job.key, None
        try:
            _run(job, place)
        except Interrupted:
            raise
        except Exception as error:  # whatever it is, the other runs go on
            (place / FAILURE).write_text(traceback.format_exc(), encoding="utf-8")
            told = first_line(error)
            return job.key, told if isinstance(error, DriftError) else f"{type(error).__name__}: {told}"
    return job.key, None


def _run(job: Job, place: Path) -> None:
    began, config, run = time.monotonic(), dict(job.config), place / RUN
    if job.rules is not None:
        with atomic_file(place / RULES) as aside:
            aside.write_text(json.dumps(job.rules), encoding="utf-8")  # JSON is YAML
        config["data"] = {**config["data"], "rules": str(place / RULES)}
    goes_on = (run / DATA).exists() and RunFolder(run).config() == config
    if run.exists() and not goes_on:  # cut short before there was anything to go on with, or its data were elsewhere
        shutil.rmtree(run)
    done = fit(config=config, out=run, resume=goes_on, onnx=False, quiet=True)
    assert isinstance(done, Run)
    with atomic_file(place / RESULT) as aside:
        # A run that goes on has trained before this.
        seconds = max(time.monotonic() - began, done.metrics["seconds"])
        aside.write_text(json.dumps(_told(done, seconds), indent=2) + "\n", encoding="utf-8")
    (place / FAILURE).unlink(missing_ok=True)
    shutil.rmtree(run / "checkpoints", ignore_errors=True)
    if job.config["task"] != "nodes":  # encoders take much room, and no figure is drawn from them
        shutil.rmtree(run / MODEL, ignore_errors=True)
        write_report(run)  # again, without how to use it


def _told(run: Run, seconds: float) -> dict[str, Any]:
    metrics = run.metrics
    measure = next(iter(metrics["measures"]))
    scores = [trial[measure] for trial in metrics["test"]["scores"]]
    return {
        "scores": dict(zip(metrics["seeds"], scores, strict=True)),
        "budget": metrics["label_budget"],
        "seconds": round(seconds, 1),
    }


def _batches(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    """Runs that may go at once: of one number of threads, and of several on the same data first one alone.

    What that one embeds or tokenizes, the others then find in the cache.
    """
    by_threads: dict[int | None, list[Job]] = {}
    for job in jobs:
        by_threads.setdefault(job.config["training"]["threads"], []).append(job)
    for same in by_threads.values():
        first = {(job.folders, job.kind): job for job in reversed(same)}
        rest = [job for job in same if job not in first.values()]
        yield [job for job in same if job in first.values()]
        if rest:
            yield rest


def _room(threads: int) -> int:
    """How many runs of so many threads the machine takes at once; one, if they would share a GPU."""
    return 1 if torch.accelerator.is_available() else max(1, cores() // threads)
