"""`bench`: reproduce one table or figure of the paper. Finished runs are used, the others are run."""

import shlex
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from drift.errors import ConfigError
from drift.paper.bench.catalogue import Exhibit, find_exhibit
from drift.paper.bench.cells import Job
from drift.paper.bench.collecting import Results, not_run, plan_lines, table_of
from drift.paper.bench.estimates import estimated_seconds
from drift.paper.bench.figures import pictures_of
from drift.paper.bench.page import PageContent, write_bench_page
from drift.paper.bench.planning import check_profile, command_names, jobs_of, part_of, with_devs
from drift.paper.bench.running import Failure, failure_of, result_of, run_jobs
from drift.paper.demos.moons_demo import cached_demo, cached_files
from drift.report.page import Picture
from drift.runs.comparing.tables import WRITERS, ScoreTable, write_table
from drift.training.plan import format_duration
from drift.training.progress import progress

FIGURES = "figures"


@dataclass
class Bench:
    """The outcome of a bench.

    tables: one per group of models. files: tables, figures and the page, as written. failures: runs that failed.
    lines: what was not run, or the plan of a dry run, for a reader.
    """

    tables: list[ScoreTable] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def bench(
    name: str,
    out: str | Path = "bench",
    *,
    profile: str = "laptop",
    seeds: int | None = None,
    cells: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    redraw: bool = False,
    encoder: str | None = None,
    pool: int | None = None,
    devs: Sequence[str] | None = None,
    trials: int = 0,
    n_jobs: int | None = None,
    cluster: str | None = None,
    dry_run: bool = False,
    collect: bool = False,
    quiet: bool = False,
    jobs: int | None = None,
) -> Bench:
    """Reproduce a table or figure of the paper: run what is not finished, then write tables, figures and a page.

    name: of the exhibit, or its number in the paper, such as `table1`.
    out: folder of runs, tables and figures.
    profile: "paper" (its configuration, for GPUs) or "laptop" (smaller models and data).
    seeds: seeds per method and cell; default: 10 for models that train them at once, 3 for others.
    cells, methods, models: only these; models are groups such as frozen and finetuned.
    redraw: every seed is a run of its own, with its own rows of train, dev and test.
    encoder: fixed encoder of texts in place of the profile's, by name or folder.
    pool: every seed draws its texts from a pool of so many training texts, which are embedded and augmented once.
    devs: dev sets: full (the profile's), small (5 labels per class) and none, each with a column; default: full.
    trials: settings of every run are searched on its dev set, with so many trials for every method.
    n_jobs: number of runs at once on this machine; default: as many as its cores allow.
    cluster: the address of a Dask scheduler, or "ray".
    dry_run: only list what would be run.
    collect: run nothing; write what is finished.
    quiet: show no progress bar.
    jobs: deprecated name of `n_jobs`.
    """
    if jobs is not None:
        warnings.warn("jobs is deprecated; use n_jobs", FutureWarning, stacklevel=2)
        n_jobs = jobs
    exhibit, folder = find_exhibit(name), Path(out)
    check_profile(profile)
    if not exhibit.cells:
        restricted = bool(cells or methods or models or seeds or redraw or encoder or pool or devs or trials)
        return _moons(folder, dry_run=dry_run, collect=collect, quiet=quiet, restricted=restricted)
    exhibit = with_devs(part_of(exhibit, cells, methods, models), devs)
    all_jobs = jobs_of(exhibit, profile, seeds, redraw=redraw, encoder=encoder, pool=pool, trials=trials)
    if not all_jobs:
        raise ConfigError(f"none of these methods is for these cells of {exhibit.name}; choose others")
    if dry_run:
        results = _results(folder, all_jobs)
        lines = [*plan_lines(all_jobs, results), *not_run(exhibit, all_jobs, results), *_missing_data(all_jobs)]
        return Bench(lines=lines)
    failures = _failures(folder, all_jobs) if collect else _run(exhibit, all_jobs, folder, n_jobs, cluster, quiet=quiet)
    results = _results(folder, all_jobs)
    if not results and all(job.left_out for job in all_jobs):
        raise ConfigError(f"profile {profile} leaves all of this out; to run it, give both --cells and --models")
    named = command_names(exhibit, methods)
    chosen = {"seeds": seeds, "cells": cells, "methods": named, "models": models, "encoder": encoder}
    chosen |= {"pool": pool, "dev": devs, "tune": trials or None}
    command = _command(exhibit.name, out, profile=profile, redraw=redraw, **chosen)
    # A bench of some cells, methods or seeds does not overwrite the files of the whole.
    suffix = f"-{Path(encoder).name}" if encoder else ""
    suffix += "-redrawn" if redraw or pool else ""
    suffix += ("-devs" if devs else "") + ("-tuned" if trials else "")
    suffix += "-part" if cells or methods or seeds else ""
    content = PageContent(exhibit, profile, all_jobs, results, failures, not_run(exhibit, all_jobs, results), command)
    done = _write(content, folder, suffix)
    page = "-".join([exhibit.name, profile, *(exhibit.groups[profile] if models else ())])
    done.files.append(write_bench_page(folder / f"{page}{suffix}.html", content))
    return done


def _write(content: PageContent, folder: Path, suffix: str) -> Bench:
    """Write the tables and figures of every group, and add them to the content of the page."""
    exhibit, profile, results = content.exhibit, content.profile, content.results
    done = Bench(failures=list(content.failures), lines=list(content.not_run))
    failed = {failure.job.key for failure in content.failures}
    for group in exhibit.groups[profile]:
        stem = f"{exhibit.name}-{profile}-{group}{suffix}"
        group_results = {job: result for job, result in results.items() if job.group == group}
        if group_results or not all(job.left_out for job in content.jobs if job.group == group):
            content.tables[group] = table_of(exhibit, profile, group, content.jobs, results, failed)
            done.files += [write_table(content.tables[group], folder / f"{stem}{ending}") for ending in WRITERS]
        pictures: list[Picture] = []
        if group_results:
            pictures = pictures_of(exhibit, group, group_results, folder / FIGURES / stem, folder)
        content.pictures[group] = pictures
        done.files += [picture.path for picture in pictures]
    done.tables = list(content.tables.values())
    return done


def _command(name: str, out: str | Path, *, redraw: bool, **options: str | int | Sequence[str] | None) -> str:
    """The command line that repeats this bench."""
    words = ["drift", "bench", name, *(["--redraw"] if redraw else [])]
    for option, value in options.items():
        if value is not None:
            words += [f"--{option}", str(value) if isinstance(value, str | int) else ",".join(value)]
    return shlex.join([*words, "--out", str(out)])


def _run(
    exhibit: Exhibit, jobs: Sequence[Job], folder: Path, n_jobs: int | None, cluster: str | None, *, quiet: bool
) -> list[Failure]:
    """Run what the profile includes and what is not finished, with a progress bar that estimates the time left."""
    wanted = {job.key: job for job in jobs if not job.left_out}
    waiting = {key: estimated_seconds(job) for key, job in wanted.items() if result_of(folder, job) is None}
    began, total = time.monotonic(), sum(waiting.values())
    with progress(exhibit.name, len(wanted), done=len(wanted) - len(waiting), shown=not quiet) as tick:

        def done(job: Job) -> None:
            waiting.pop(job.key)
            left = sum(waiting.values())
            seconds = (time.monotonic() - began) * left / (total - left)
            tick(f"{job.cell} {job.row}; about {format_duration(seconds)} left")

        return run_jobs(list(wanted.values()), folder, n_jobs=n_jobs, cluster=cluster, done=done)


def _results(folder: Path, jobs: Sequence[Job]) -> Results:
    results = {job: result_of(folder, job) for job in jobs}
    return {job: result for job, result in results.items() if result is not None}


def _missing_data(jobs: Sequence[Job]) -> list[str]:
    """A warning if folders of data do not exist."""
    missing = sorted({str(folder) for job in jobs for folder in job.folders if not folder.exists()})
    if not missing:
        return []
    return [f"warning: {len(missing)} folders of data do not exist, such as {missing[0]}; set DRIFT_DATA"]


def _failures(folder: Path, jobs: Sequence[Job]) -> list[Failure]:
    """Failures of jobs without a result; jobs with the same key are listed once."""
    left = {job.key: job for job in jobs if result_of(folder, job) is None}
    return [failure for job in left.values() if (failure := failure_of(folder, job)) is not None]


def _moons(folder: Path, *, dry_run: bool, collect: bool, quiet: bool, restricted: bool) -> Bench:
    """Figures 1 and 2: the same as `drift demo moons`. restricted: options that choose runs were given."""
    if restricted:
        raise ConfigError(
            "moons is one comparison of 100 trials; leave out --cells, --methods, --models, --seeds, --redraw, --pool,"
            " --dev, --tune and --encoder"
        )
    if dry_run:
        return Bench(lines=["moons: 100 trials of each of four methods, about two minutes"])
    if collect and cached_files(folder / "moons") is None:
        return Bench(lines=["moons: not run yet"])
    files, findings = cached_demo(folder / "moons", lambda title, total: progress(title, total, shown=not quiet))
    return Bench(files=files, lines=findings)
