"""`bench`: one table or figure of the paper, from what is finished and what is left to run."""

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from drift.errors import ConfigError
from drift.paper.bench.catalogue import Exhibit, find_exhibit, part_of
from drift.paper.bench.cells import Job
from drift.paper.bench.collecting import Results, not_run, plan_lines, table_of
from drift.paper.bench.estimates import estimated_seconds
from drift.paper.bench.figures import pictures_of
from drift.paper.bench.page import Made, write_bench_page
from drift.paper.bench.planning import check_profile, jobs_of
from drift.paper.bench.running import Failure, failure_of, result_of, run_jobs
from drift.paper.demos.moons_demo import kept_demo, kept_files
from drift.report.page import Picture
from drift.runs.comparing.tables import WRITERS, ScoreTable, write_table
from drift.training.plan import format_duration
from drift.training.progress import progress

FIGURES = "figures"


@dataclass
class Bench:
    """What came of it. files: tables, figures and the page, as written. lines: what a reader must know besides."""

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
    jobs: int | None = None,
    cluster: str | None = None,
    dry_run: bool = False,
    collect: bool = False,
    quiet: bool = False,
) -> Bench:
    """Make a table or figure of the paper: run what is not finished yet, then write down what there is.

    name: of the exhibit, or its place, such as `table1`. out: a folder for runs, tables and figures. seeds: ten for
    models that train them at once, else three, if left out. cells, methods, models: only these; models are frozen,
    finetuned and so on. jobs: runs at once on this machine. cluster: the address of a Dask scheduler, or "ray".
    dry_run: only list what would be run. collect: run nothing, and write down what is finished.
    """
    exhibit, folder = find_exhibit(name), Path(out)
    check_profile(profile)
    if not exhibit.cells:
        chosen = bool(cells or methods or models or seeds)
        return _moons(folder, dry_run=dry_run, collect=collect, quiet=quiet, chosen=chosen)
    exhibit = part_of(exhibit, cells, methods, models)
    every = jobs_of(exhibit, profile, seeds)
    if not every:
        raise ConfigError(f"none of these methods is for these cells of {exhibit.name}; choose others")
    if dry_run:
        results = _results(folder, every)
        return Bench(lines=[*plan_lines(every, results), *not_run(exhibit, every, results), *_absent(every)])
    failures = _failures(folder, every) if collect else _run(exhibit, every, folder, jobs, cluster, quiet=quiet)
    results = _results(folder, every)
    if not results and all(job.left_out for job in every):
        raise ConfigError(f"profile {profile} leaves all of this out; to have it run, name --cells and --models")
    done = Bench(failures=failures, lines=not_run(exhibit, every, results))
    tables: dict[str, ScoreTable] = {}
    pictures: dict[str, list[Picture]] = {}
    # What is made of some cells, methods or seeds does not take the place of the whole.
    part = "-part" if cells or methods or seeds else ""
    failed = {each.job.key for each in failures}
    for group in exhibit.groups[profile]:
        stem = f"{exhibit.name}-{profile}-{group}{part}"
        own = {job: result for job, result in results.items() if job.group == group}
        if own or not all(job.left_out for job in every if job.group == group):
            tables[group] = table_of(exhibit, profile, group, every, results, failed)
            done.files += [write_table(tables[group], folder / f"{stem}{ending}") for ending in WRITERS]
        pictures[group] = pictures_of(exhibit, group, own, folder / FIGURES / stem, folder) if own else []
        done.files += [picture.path for picture in pictures[group]]
    done.tables = list(tables.values())
    command = _command(exhibit.name, out, profile=profile, seeds=seeds, cells=cells, methods=methods, models=models)
    made = Made(exhibit, profile, every, results, tables, pictures, failures, done.lines, command)
    page = "-".join([exhibit.name, profile, *(exhibit.groups[profile] if models else ())])
    done.files.append(write_bench_page(folder / f"{page}{part}.html", made))
    return done


def _command(name: str, out: str | Path, **options: str | int | Sequence[str] | None) -> str:
    """What a user types for the same bench."""
    words = ["drift", "bench", name]
    for option, value in options.items():
        if value is not None:
            words += [f"--{option}", str(value) if isinstance(value, str | int) else ",".join(value)]
    return shlex.join([*words, "--out", str(out)])


def _run(
    exhibit: Exhibit, every: Sequence[Job], folder: Path, at_once: int | None, cluster: str | None, *, quiet: bool
) -> list[Failure]:
    """Everything that is to be run and is not finished, with a bar that says how long it will take."""
    wanted = {job.key: job for job in every if not job.left_out}
    waiting = {key: estimated_seconds(job) for key, job in wanted.items() if result_of(folder, job) is None}
    began, total = time.monotonic(), sum(waiting.values())
    with progress(exhibit.name, len(wanted), done=len(wanted) - len(waiting), shown=not quiet) as tick:

        def done(job: Job) -> None:
            waiting.pop(job.key)
            left = sum(waiting.values())
            tick(
                f"{job.cell} {job.row}; about {format_duration((time.monotonic() - began) * left / (total - left))} left"
            )

        return run_jobs(list(wanted.values()), folder, at_once=at_once, cluster=cluster, done=done)


def _results(folder: Path, jobs: Sequence[Job]) -> Results:
    found = {job: result_of(folder, job) for job in jobs}
    return {job: result for job, result in found.items() if result is not None}


def _absent(jobs: Sequence[Job]) -> list[str]:
    """A warning where there are no data to run it on."""
    absent = sorted({str(folder) for job in jobs for folder in job.folders if not folder.exists()})
    return (
        [f"warning: {len(absent)} folders of data are not there, such as {absent[0]}; set DRIFT_DATA"] if absent else []
    )


def _failures(folder: Path, jobs: Sequence[Job]) -> list[Failure]:
    """Of runs that were tried and have no result; each once."""
    left = {job.key: job for job in jobs if result_of(folder, job) is None}
    return [failure for job in left.values() if (failure := failure_of(folder, job)) is not None]


def _moons(folder: Path, *, dry_run: bool, collect: bool, quiet: bool, chosen: bool) -> Bench:
    """Figures 1 and 2 are all of `drift demo moons`: a hundred trials in one go."""
    if chosen:
        raise ConfigError("moons is one comparison of 100 trials; leave out --cells, --methods, --models and --seeds")
    if dry_run:
        return Bench(lines=["moons: 100 trials of both methods at once, about a minute"])
    if collect and kept_files(folder / "moons") is None:
        return Bench(lines=["moons: not run yet"])
    files, findings = kept_demo(folder / "moons", lambda title, total: progress(title, total, shown=not quiet))
    return Bench(files=files, lines=findings)
