"""`drift suggest`: which rows to label next."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from drift.cli.predict import SPREADSHEET
from drift.cli.table_bar import table_bar

if TYPE_CHECKING:
    from drift.tasks.suggestions import Suggestion


def suggest(
    run: Path = typer.Argument(..., help="Folder of a finished run."),
    table: str = typer.Argument(
        ..., metavar="TABLE", help="CSV, TSV, JSON lines (also .gz), Parquet, CoNLL columns, or a graph."
    ),
    n: int = typer.Option(50, "-n", min=1, help="Maximum number of rows."),
    out: Path | None = typer.Option(
        None, "--out", "-o", dir_okay=False, help="Write the rows to this table, with an empty column for labels."
    ),
    text: str | None = typer.Option(None, help="Column with the texts; default: the one trained on."),
    label: str | None = typer.Option(None, help="Column with labels; rows that have one are left out."),
    edges: Path | None = typer.Option(None, help="Table of edges, if TABLE is a table of nodes; default: the run's."),
    encoding: str = typer.Option("utf-8", help="Encoding of CSV, TSV and JSON lines."),
    spreadsheet: bool = SPREADSHEET,
    seed: int = typer.Option(0, min=0, help="Seed of the sample of very long tables, and of the clusters."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress bar."),
) -> None:
    """Find the rows that are most worth labelling: doubtful ones from everywhere in the data, without near-copies.

    The new table has all columns of the old one, an empty column for labels, and `row`, `predicted`, `confidence` and
    `why`. Fill in labels, for some rows or all, and train again with --labels.

    Examples:

        drift suggest runs/topics data.csv

        drift suggest runs/topics data.csv -n 50 -o to-label.csv

        drift fit --from runs/topics --labels to-label.csv -o runs/topics-2
    """
    from drift.runs.load import load
    from drift.runs.predict import suggest as choose
    from drift.tasks.parts import ROWS_PER_CHUNK

    opened = load(run)
    quiet = quiet or not opened.task.reads_chunks
    with table_bar("Choosing rows", table, ROWS_PER_CHUNK, encoding=encoding, quiet=quiet) as tick:
        chosen = choose(
            opened,
            table,
            n,
            out=out,
            text=text,
            label=label,
            edges=edges,
            encoding=encoding,
            spreadsheet=spreadsheet,
            seed=seed,
            tick=tick,
        )
    if out is None:
        _show(chosen)
    else:
        typer.echo(f"Written: {out} ({len(chosen):,} rows); fill in labels and give it to drift fit --labels")
    if len(chosen) < n:
        typer.echo(f"{len(chosen):,} rows, not {n:,}: all others have a label or no text, or are near-duplicates")


def _show(chosen: "list[Suggestion]") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    view = Table(box=None, pad_edge=False, expand=True)
    view.add_column("row", justify="right")
    view.add_column("why", no_wrap=True)
    view.add_column("text", no_wrap=True, ratio=1)  # the rest of the line
    for suggestion in chosen:
        text = " ".join(suggestion.text.split())
        view.add_row(str(suggestion.row), escape(suggestion.why), escape(text))
    Console().print(view)
