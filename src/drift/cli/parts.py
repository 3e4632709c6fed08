"""Options and output of commands that take a folder of tables."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from drift.runs.parts import Parts

CLUSTER = typer.Option(
    None,
    metavar="ADDRESS",
    help="For a folder of tables: a Dask scheduler, such as tcp://host:8786, `ray`, or ray://host:10001.",
)
JOBS = typer.Option(None, "--jobs", "-j", min=1, help="For a folder of tables: parts at once (one per core).")


def check_one_table(cluster: str | None, jobs: int | None) -> None:
    """Refuse options of folders for a single table."""
    from drift.errors import ConfigError

    if cluster is not None or jobs is not None:
        raise ConfigError(
            "--cluster and --jobs are for a folder of tables; split the table into parts, or leave them out"
        )


def show_parts(work: "Callable[[Callable[[Parts], None]], Parts]", out: Path, *, quiet: bool) -> None:
    """Do the work, with a line per part, and say what was done."""

    def tick(done: "Parts") -> None:
        if not quiet and done.written:
            typer.echo(f"{done.written + done.before:,} parts done, {done.tally.rows:,} rows in this run", err=True)

    done = work(tick)
    before = f", {done.before:,} were there before" if done.before else ""
    typer.echo(f"{done.written:,} parts written, {done.tally.rows:,} rows{before}")
    typer.echo(f"Written: {out}")
