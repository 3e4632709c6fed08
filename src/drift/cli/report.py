"""`drift report`: the page of a run, written again."""

from pathlib import Path

import typer


def report(run: Path = typer.Argument(..., help="Folder of a finished run.")) -> None:
    """Write the page about a run again, from what its folder holds.

    Example:

        drift report runs/topics
    """
    from drift.runs.report import write_report

    typer.echo(write_report(run))
