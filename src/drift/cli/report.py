"""`drift report`: write the page of a run again."""

from pathlib import Path

import typer


def report(
    run: Path = typer.Argument(..., help="Folder of a finished run."),
    task: str | None = typer.Option(None, metavar="FILE.py:CLASS", help="The task of the run, if it is one of yours."),
    explain: str | None = typer.Option(
        None, metavar="TABLE", help="Also show why five rows of this table get their predictions."
    ),
) -> None:
    """Write the page about a run again.

    Examples:

        drift report runs/topics

        drift report runs/topics --explain test.csv
    """
    from drift.runs.report import write_report

    typer.echo(write_report(run, task=task, explain=explain))
