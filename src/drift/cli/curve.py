"""`drift curve`: would more labels help?"""

from pathlib import Path

import typer

from drift.cli.table_options import ENCODER, ENCODING, LABEL, MAX_LENGTH, QUIET


def curve(
    table: str = typer.Argument(..., metavar="TABLE", help="CSV, TSV, JSON lines (also .gz) or Parquet, with labels."),
    out: Path | None = typer.Option(None, "--out", "-o", dir_okay=False, help="Draw the curve: .png, .svg or .pdf."),
    task: str = typer.Option("text", help="text: one label per text."),
    text: str | None = typer.Option(None, help="Column with the texts; an obvious one is recognised."),
    label: str | None = LABEL,
    encoder: str = ENCODER,
    max_length: int = MAX_LENGTH,
    encoding: str = ENCODING,
    seed: int = typer.Option(0, min=0, help="Seed of folds and orders."),
    quiet: bool = QUIET,
) -> None:
    """Show accuracy against the number of labels, and what more labels would add.

    Classifiers are trained on parts of the table's own labels and scored on others; no test set is needed. Unlabelled
    rows are not used.

    Example:

        drift curve reviews.csv --label topic -o curve.png
    """
    options = dict(locals())
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from drift.runs.curve import curve as drawn_curve

    drawn = drawn_curve(options.pop("table"), **options)
    console = Console()
    console.print(f"{drawn.labels:,} labels of {drawn.classes} classes in {escape(drawn.name)}", highlight=False)
    view = Table(box=None, pad_edge=False)
    for heading in ("labels", "accuracy", "90 % interval", ""):
        view.add_column(heading, justify="right" if heading else "left")
    for point in drawn.points:
        interval = f"{100 * point.low:.1f} to {100 * point.high:.1f}"
        how = "measured" if point.measured else "extrapolated"
        view.add_row(f"{point.labels:,}", f"{100 * point.accuracy:.1f}", interval, how)
    console.print(view)
    console.print(drawn.verdict, highlight=False)
    if out is not None:
        typer.echo(f"Written: {out}")
