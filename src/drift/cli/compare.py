"""`drift compare`: finished runs side by side."""

from pathlib import Path

import typer


def compare(
    runs: list[Path] = typer.Argument(..., metavar="RUN...", help="Folders of finished runs."),
    baseline: Path | None = typer.Option(
        None, metavar="RUN", help="What the others are tested against; the first run if left out."
    ),
    paired_t: bool = typer.Option(
        False, "--paired-t", help="Paired t-tests or none: runs without common seeds are refused."
    ),
    out: Path | None = typer.Option(None, "--out", "-o", dir_okay=False, help="Table to write: .md, .tex or .csv."),
) -> None:
    """Compare runs: scores with their spread, and tests of each against the baseline.

    Runs that differ in their seeds alone are one line. Tests are paired, seed by seed, where two lines have seeds in
    common on the same rows; else they are Welch's, and a note says so. Warnings tell what makes a comparison unfair.

    Examples:

        drift compare runs/drift runs/self-training

        drift compare runs/* --baseline runs/supervised --paired-t -o table.tex
    """
    from drift.runs.comparing.compare import compare as compare_runs
    from drift.runs.comparing.tables import show_table

    show_table(compare_runs(*runs, baseline=baseline, paired_t=paired_t, out=out))
    if out is not None:
        typer.echo(f"Written: {out}")
