"""Execute the runs of a bench, several at once. Each has a folder named by its key, is run once, and can be resumed."""

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
from drift.paper.bench.drawing import Draw, GraphDraw
from drift.paper.bench.locks import locked
from drift.runs.report import write_report
from drift.runs.request import request
from drift.runs.result import MODEL
from drift.runs.run import run
from drift.runs.tuning.tune import FOLDER as SEARCHED
from drift.runs.tuning.tune import Search
from drift.runs.workers import ONE_PER_PROCESS, cores, results, workers
from drift.tasks.record import RunRecord
from drift.training.run_folder import DATA, RunFolder

RESULT, FAILURE, RUN, LOCK, RULES = "result.json", "failure.txt", "run", "lock", "rules.yaml"
DRAWS = "draws"  # in the folder of the bench, beside the runs
KEPT = "finished runs are kept, and the same command continues"


@dataclass(frozen=True)
class Result:
    """What a table needs of a finished run.

    scores: test scores by seed, between 0 and 1. budget: gold labels. kept: seeds that ended with their start; results
    of earlier versions do not say.
    """

    scores: dict[int, float]
    budget: dict[str, int]
    seconds: float
    kept: int = 0


@dataclass(frozen=True)
class Failure:
    """A run that ended without a result. reason: one line."""

    job: Job
    reason: str


def cell_folder(folder: Path, job: Job) -> Path:
    """The folder of a job in the folder of the bench."""
    return folder / "cells" / job.key


def result_of(folder: Path, job: Job) -> Result | None:
    """The result of a job; None if it is not finished."""
    file = cell_folder(folder, job) / RESULT
    if not file.exists():
        return None
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        scores = {int(seed): float(score) for seed, score in content["scores"].items()}
        budget = {part: int(content["budget"][part]) for part in ("train", "dev", "total")}
        return Result(scores, budget, float(content["seconds"]), int(content.get("kept", 0)))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise FileError(f"{file} cannot be read ({error}); delete its folder to run it again") from error


def failure_of(folder: Path, job: Job) -> Failure | None:
    """The failure of a job, if its last attempt failed."""
    file = cell_folder(folder, job) / FAILURE
    if not file.exists():
        return None
    lines = file.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["the reason is not known"]
    return Failure(job, lines[-1].rpartition("drift.errors.")[2])


def run_jobs(
    jobs: Sequence[Job],
    folder: Path,
    *,
    n_jobs: int | None = None,
    cluster: str | None = None,
    done: Callable[[Job], None] = lambda job: None,
) -> list[Failure]:
    """Run all jobs that have no result yet. Jobs with the same key are run once. A failure does not stop other jobs.

    folder: of the bench. n_jobs: number of runs at once on this machine; default: as many as its cores allow.
    cluster: the address of a Dask scheduler, or "ray"; all workers must see the same folders.
    done: called after each job.
    """
    folder = folder.resolve()
    waiting = [job for job in {job.key: job for job in jobs}.values() if result_of(folder, job) is None]
    failures = []
    for batch in _batches(waiting):
        threads = batch[0].config["training"]["threads"] or cores()
        count = min(n_jobs or _runs_at_once(threads), len(batch))
        with workers(cluster, count):
            calls = [joblib.delayed(run_job)(job, folder) for job in batch]
            for key, reason in results(calls, cluster, kept=KEPT):
                job = next(job for job in batch if job.key == key)
                if reason is None and result_of(folder, job) is None:
                    reason = (
                        f"it finished on another machine, but not in {folder}; give an --out that all workers share"
                    )
                if reason is not None:
                    failures.append(Failure(job, reason))
                done(job)
    return failures


def run_job(job: Job, folder: Path) -> tuple[str, str | None]:
    """Run a job, unless it is finished by now. Returns its key, and the reason if it failed."""
    job_folder = cell_folder(folder, job)
    job_folder.mkdir(parents=True, exist_ok=True)
    with ONE_PER_PROCESS, locked(job_folder / LOCK):  # another process may be running this job
        if (job_folder / RESULT).exists():
            return job.key, None
        try:
            _run(job, job_folder)
        except Interrupted:
            raise
        except Exception as error:  # any error: the other jobs continue
            (job_folder / FAILURE).write_text(traceback.format_exc(), encoding="utf-8")
            line = first_line(error)
            return job.key, line if isinstance(error, DriftError) else f"{type(error).__name__}: {line}"
    return job.key, None


def _run(job: Job, job_folder: Path) -> None:
    began, config, run_folder = time.monotonic(), dict(job.config), job_folder / RUN
    if job.rules is not None:
        with atomic_file(job_folder / RULES) as aside:
            aside.write_text(json.dumps(job.rules), encoding="utf-8")  # JSON is YAML
        config["data"] = {**config["data"], "rules": str(job_folder / RULES)}
    graph = job.draw.graph() if isinstance(job.draw, GraphDraw) else None
    if isinstance(job.draw, Draw):
        tables = job.draw.tables(job_folder.parent.parent / DRAWS)
        config["data"] = {**config["data"], **{part: tables[part] for part in tables if config["data"][part]}}
    begun = run_folder / SEARCHED if job.trials else run_folder
    resume = (begun / DATA).exists() and RunFolder(begun).config() == config
    if run_folder.exists() and not resume:  # it stopped before it could be resumed, or its data have moved
        shutil.rmtree(run_folder)
    model = {"model": config["model"]["name"]} if job.model_kind.from_user_code else {}  # code must be named
    spec = request(graph, config=config, **model)
    record: RunRecord
    if job.trials:
        record = Search(spec, run_folder, n_trials=job.trials, quiet=True).run(resume=resume, onnx=False).record
    else:
        record = run(spec, run_folder, resume=resume, onnx=False, quiet=True, page=False).record
    with atomic_file(job_folder / RESULT) as aside:
        # A resumed run also trained before `began`.
        content = _result_content(record, max(time.monotonic() - began, record.seconds))
        aside.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    (job_folder / FAILURE).unlink(missing_ok=True)
    shutil.rmtree(run_folder / "checkpoints", ignore_errors=True)
    if job.model_kind.large:  # no figure needs the model
        shutil.rmtree(run_folder / MODEL, ignore_errors=True)
    if not (job.model_kind.stacked and job.config["seeds"] == 1):  # drawing takes as long as such a run
        write_report(run_folder)  # now: the page must not explain how to use a model that is gone


def _result_content(record: RunRecord, seconds: float) -> dict[str, Any]:
    assert record.test is not None  # every cell has a test set
    scores = [seed_scores[record.measure] for seed_scores in record.test.scores]
    played = len(record.phases) > 1 and record.best_steps is not None
    return {
        "scores": dict(zip(record.seeds, scores, strict=True)),
        "kept": sum(step == 0 for step in record.best_steps or ()) if played else 0,
        "budget": record.label_budget.model_dump(),
        "seconds": round(seconds, 1),
    }


def _batches(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    """Jobs that may run at once: with the same number of threads, and of several jobs on the same data, one first.

    The others then find embedded or tokenized texts in the cache.
    """
    by_threads: dict[int | None, list[Job]] = {}
    for job in jobs:
        by_threads.setdefault(job.config["training"]["threads"], []).append(job)
    for same_threads in by_threads.values():
        first = {(job.folders, job.kind): job for job in reversed(same_threads)}
        rest = [job for job in same_threads if job not in first.values()]
        yield [job for job in same_threads if job in first.values()]
        if rest:
            yield rest


def _runs_at_once(threads: int) -> int:
    """How many runs with this number of threads fit on the machine; one if they would share a GPU."""
    return 1 if torch.accelerator.is_available() else max(1, cores() // threads)
