"""`drift compare`: finished runs side by side."""

from pathlib import Path

import typer


def compare(
    runs: list[Path] = typer.Argument(..., metavar="RUN...", help="Folders of finished runs."),
    baseline: Path | None = typer.Option(
        None, metavar="RUN", help="Run to test the others against; default: the first."
    ),
    paired_t: bool = typer.Option(
        False, "--paired-t", help="Only paired t-tests: runs without common seeds are an error."
    ),
    out: Path | None = typer.Option(None, "--out", "-o", dir_okay=False, help="Table to write: .md, .tex or .csv."),
    task: str | None = typer.Option(None, metavar="FILE.py:CLASS", help="The task of the runs, if it is one of yours."),
) -> None:
    """Compare finished runs, with statistical tests. Scores have their spread; each run is tested against the baseline.

    Runs that differ only in their seeds form one line. If two lines have seeds in common on the same rows, the test is
    paired by seed; otherwise it is Welch's, and a note says so. Warnings name what makes a comparison unfair.

    Examples:

        drift compare runs/drift runs/self-training

        drift compare runs/* --baseline runs/supervised --paired-t -o table.tex
    """
    from drift.runs.comparing.compare import compare as compare_runs
    from drift.runs.comparing.tables import show_table

    show_table(compare_runs(runs, baseline=baseline, paired_t=paired_t, out=out, task=task))
    if out is not None:
        typer.echo(f"Written: {out}")
