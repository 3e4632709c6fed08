"""`drift bench`: the paper's tables and figures, one command each."""

from pathlib import Path

import typer


def bench(
    name: str | None = typer.Argument(
        None, metavar="EXHIBIT", help="Which, such as weak or table1; all are listed if left out."
    ),
    profile: str = typer.Option("laptop", help="paper: its configuration, for GPUs; laptop: what two cores can do."),
    seeds: int | None = typer.Option(
        None, min=1, help="How many; 10 of models that train them at once, else 3, if left out."
    ),
    cells: str | None = typer.Option(None, metavar="NAME,NAME", help="Only these, such as agnews-30,imdb-weak."),
    methods: str | None = typer.Option(
        None, metavar="NAME,NAME", help="Only these, such as self-training,drift; or rows by title."
    ),
    models: str | None = typer.Option(
        None, metavar="KIND,KIND", help="Only these kinds of model, such as frozen, of tables that have several."
    ),
    out: Path = typer.Option(Path("bench"), "--out", "-o", file_okay=False, help="Folder of runs, tables and figures."),
    jobs: int | None = typer.Option(None, min=1, help="Runs at once; as many as the cores take, if left out."),
    cluster: str | None = typer.Option(
        None, metavar="ADDRESS", help="Of a Dask scheduler, such as tcp://host:8786, or `ray`."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only list what is finished and what would be run."),
    collect: bool = typer.Option(False, "--collect", help="Run nothing: write down what is finished so far."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress bar."),
) -> None:
    """Make a table or figure of the paper again, beside the paper's own numbers.

    Each cell and method is a run of its own, kept in the folder under a name that follows from its settings and data:
    what is finished is never run again, and what was cut short goes on. Data are found in `$DRIFT_DATA`.

    Examples:

        drift bench

        drift bench graphs --cells cora-10,cora-20 --methods self-training,drift

        drift bench table1 --profile paper --cluster tcp://scheduler:8786

        drift bench semi --dry-run
    """
    from rich.console import Console
    from rich.markup import escape

    from drift.paper.bench.catalogue import EXHIBITS

    console = Console()
    if name is None:
        for exhibit in EXHIBITS.values():
            console.print(f"{exhibit.name:12} {exhibit.place:16} {exhibit.summary}", highlight=False, soft_wrap=True)
        console.print("\nRun one with [bold]drift bench NAME[/bold]; --dry-run lists its cells first.")
        return
    from drift.paper.bench.bench import bench as run_bench
    from drift.runs.comparing.tables import show_table
    from drift.training.threads import keep_freed_memory

    keep_freed_memory()
    done = run_bench(
        name,
        out,
        profile=profile,
        seeds=seeds,
        cells=_names(cells),
        methods=_names(methods),
        models=_names(models),
        jobs=jobs,
        cluster=cluster,
        dry_run=dry_run,
        collect=collect,
        quiet=quiet,
    )
    for table in done.tables:
        show_table(table, console)
        console.print()
    for line in done.lines:
        console.print(escape(line), highlight=False, soft_wrap=True)
    for file in done.files:
        console.print(f"written: {escape(str(file))}", highlight=False, soft_wrap=True)
    for failure in done.failures:
        typer.echo(f"drift: {failure.job.title} failed: {failure.reason}", err=True)
    if done.failures:
        raise typer.Exit(1)


def _names(listed: str | None) -> list[str] | None:
    return None if listed is None else [name.strip() for name in listed.split(",")]
