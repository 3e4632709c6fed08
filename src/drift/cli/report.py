"""`drift report`: write the page of a run again."""

from pathlib import Path

import typer


def report(
    run: Path = typer.Argument(..., help="Folder of a finished run."),
    task: str | None = typer.Option(None, metavar="FILE.py:CLASS", help="The task of the run, if it is one of yours."),
) -> None:
    """Write the page about a run again.

    Example:

        drift report runs/topics
    """
    from drift.runs.report import write_report

    typer.echo(write_report(run, task=task))
