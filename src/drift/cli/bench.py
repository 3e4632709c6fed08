"""`drift bench`: reproduce the paper's tables and figures."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from drift.paper.bench.bench import Bench


def _names(listed: str | None) -> list[str] | None:
    return None if listed is None else [name.strip() for name in listed.split(",")]


def bench(
    name: str | None = typer.Argument(
        None, metavar="EXHIBIT", help="Table or figure, such as weak or table1; without one, all are listed."
    ),
    profile: str = typer.Option("laptop", help="paper: its configuration, for GPUs; laptop: sized for two cores."),
    seeds: int | None = typer.Option(
        None, min=1, help="Seeds per method and cell (10 for models that train them at once, else 3)."
    ),
    cells: str | None = typer.Option(None, metavar="NAME,NAME", help="Only these cells, such as agnews-30,imdb-weak."),
    methods: str | None = typer.Option(
        None,
        metavar="NAME,NAME",
        help="Only these methods, such as hard-self-training,drift; or rows by title, such as drift-detached.",
    ),
    models: str | None = typer.Option(
        None, metavar="KIND,KIND", help="Only these kinds of model, such as frozen, in tables with several."
    ),
    redraw: bool = typer.Option(
        False, "--redraw", help="Each seed is a run of its own, with its own rows of train, dev and test."
    ),
    encoder: str | None = typer.Option(
        None, metavar="NAME|FOLDER", help="Fixed encoder of texts in place of the profile's, such as bge-small-en-v1.5."
    ),
    pool: int | None = typer.Option(
        None,
        min=100,
        help="Every seed draws its texts from a pool of this many, which are embedded and augmented once. Redraws.",
    ),
    dev: str | None = typer.Option(
        None, metavar="NAME,NAME", help="Dev sets, a column for each: full, small (5 labels per class), none."
    ),
    tune: int = typer.Option(
        0, min=0, metavar="TRIALS", help="Search the settings of every run on its dev set, with so many trials each."
    ),
    out: Path = typer.Option(Path("bench"), "--out", "-o", file_okay=False, help="Folder of runs, tables and figures."),
    jobs: int | None = typer.Option(None, min=1, help="Number of runs at once (as many as the cores allow)."),
    cluster: str | None = typer.Option(
        None, metavar="ADDRESS", help="A Dask scheduler, such as tcp://host:8786, `ray`, or ray://host:10001."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only list what is finished and what would be run."),
    collect: bool = typer.Option(False, "--collect", help="Run nothing; write tables of what is finished."),
    quiet: bool = typer.Option(False, "--quiet", help="Show no progress bar."),
) -> None:
    """Reproduce a table or figure of the paper. The paper's own numbers stand beside ours.

    Each cell and method is a separate run, kept in the folder under a key computed from its settings and data. Finished
    runs are never repeated, and interrupted runs are resumed. The data are read from `$DRIFT_DATA`.

    Examples:

        drift bench

        drift bench graphs --cells cora-10,cora-20 --methods drift-detached,drift

        drift bench table1 --profile paper --cluster tcp://scheduler:8786

        drift bench semi --dry-run

        drift bench weak --models frozen --encoder bge-small-en-v1.5 --redraw

        drift bench semi --models frozen --pool 8000 --dev full,small,none
    """
    if name is None:
        _list_exhibits()
        return
    from drift.paper.bench.bench import bench as run_bench
    from drift.training.threads import keep_freed_memory

    keep_freed_memory()
    chosen: dict[str, Any] = {"cells": _names(cells), "methods": _names(methods), "models": _names(models)}
    chosen |= {"redraw": redraw, "encoder": encoder, "pool": pool, "devs": _names(dev), "trials": tune}
    how: dict[str, Any] = {"n_jobs": jobs, "cluster": cluster, "dry_run": dry_run, "collect": collect, "quiet": quiet}
    done = run_bench(name, out, profile=profile, seeds=seeds, **chosen, **how)
    _show(done)
    if done.failures:
        raise typer.Exit(1)


def _list_exhibits() -> None:
    from rich.console import Console

    from drift.paper.bench.catalogue import EXHIBITS

    console = Console()
    for exhibit in EXHIBITS.values():
        console.print(f"{exhibit.name:12} {exhibit.reference:16} {exhibit.summary}", highlight=False, soft_wrap=True)
    console.print("\nRun one with [bold]drift bench NAME[/bold]; --dry-run lists its cells first.")


def _show(done: "Bench") -> None:
    from rich.console import Console
    from rich.markup import escape

    from drift.runs.comparing.tables import show_table

    console = Console()
    for table in done.tables:
        show_table(table, console)
        console.print()
    for line in done.lines:
        console.print(escape(line), highlight=False, soft_wrap=True)
    for file in done.files:
        console.print(f"written: {escape(str(file))}", highlight=False, soft_wrap=True)
    for failure in done.failures:
        typer.echo(f"drift: {failure.job.title} failed: {failure.reason}", err=True)
