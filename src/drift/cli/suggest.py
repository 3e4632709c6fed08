"""`drift suggest`: which rows to label next."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from drift.cli.table_bar import table_bar

if TYPE_CHECKING:
    from drift.tasks.text.suggest import Suggestion


def suggest(
    run: Path = typer.Argument(..., help="Folder of a finished run."),
    table: str = typer.Argument(..., metavar="TABLE", help="CSV, TSV, JSON lines (also .gz) or Parquet."),
    n: int = typer.Option(50, "-n", min=1, help="How many rows, at most."),
    out: Path | None = typer.Option(None, "--out", "-o", dir_okay=False, help="Table to write instead of showing it."),
    text: str | None = typer.Option(None, help="Column with the texts; the one trained on if left out."),
    label: str | None = typer.Option(None, help="Column with labels; rows that have one are left out."),
    encoding: str = typer.Option("utf-8", help="Of CSV, TSV and JSON lines."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress bar."),
) -> None:
    """Find the unlabelled rows that are worth a label most: the least sure first, no two alike.

    The new table has every column of the old one, so that the labels can be filled in, and `row`, `predicted`,
    `confidence` and `why`.

    Examples:

        drift suggest runs/topics data.csv

        drift suggest runs/topics data.csv -n 50 -o to-label.csv --label topic
    """
    from drift.runs.predict import ROWS_PER_CHUNK
    from drift.tasks.text.suggest import suggest as choose

    with table_bar("Looking", table, ROWS_PER_CHUNK, encoding=encoding, quiet=quiet) as tick:
        chosen = choose(run, table, n, out=out, text=text, label=label, encoding=encoding, tick=tick)
    if out is None:
        _show(chosen)
    else:
        typer.echo(f"Written: {out} ({len(chosen):,} rows)")
    if len(chosen) < n:
        typer.echo(f"{len(chosen):,} rows, not {n:,}: all others have a label or no text, or are near-copies")


def _show(chosen: "list[Suggestion]") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    view = Table(box=None, pad_edge=False, expand=True)
    view.add_column("row", justify="right")
    view.add_column("why", no_wrap=True)
    view.add_column("text", no_wrap=True, ratio=1)  # what is left of the line
    for found in chosen:
        view.add_row(str(found.row), escape(found.why), escape(" ".join(found.text.split())))
    Console().print(view)
