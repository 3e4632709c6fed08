"""`drift predict` and `drift evaluate`: a trained run on new tables."""

from pathlib import Path

import typer


def predict(
    run: Path = typer.Argument(..., help="Folder of a finished run."),
    table: str = typer.Argument(..., metavar="TABLE", help="CSV, TSV, JSON lines (also .gz) or Parquet."),
    out: Path = typer.Option(..., "--out", "-o", dir_okay=False, help="New table, in any of those formats."),
    text: str | None = typer.Option(None, help="Column with the texts; the one trained on if left out."),
    abstain_below: float = typer.Option(0.0, min=0.0, max=1.0, help="No label where confidence is below this."),
    encoding: str = typer.Option("utf-8", help="Of CSV, TSV and JSON lines."),
) -> None:
    """Label every row of a table, of any size, in constant memory.

    Row order and every column are kept; `predicted`, `confidence` and a probability for each class are added.

    Examples:

        drift predict runs/topics new.csv -o labelled.csv

        drift predict runs/topics new.parquet -o sure.jsonl.gz --abstain-below 0.9
    """
    from drift.runs.predict import predict as label_rows

    label_rows(run, table, out, text=text, abstain_below=abstain_below, encoding=encoding)
    typer.echo(f"Written: {out}")


def evaluate(
    run: Path = typer.Argument(..., help="Folder of a finished run."),
    table: str = typer.Argument(..., metavar="TABLE", help="A table with labels; blank ones are left out."),
    text: str | None = typer.Option(None, help="Column with the texts; the one trained on if left out."),
    label: str | None = typer.Option(None, help="Column with the labels."),
    abstain_below: float = typer.Option(0.0, min=0.0, max=1.0, help="Score too where confidence reaches this."),
    encoding: str = typer.Option("utf-8", help="Of CSV, TSV and JSON lines."),
) -> None:
    """Score a run on the labelled rows of a table.

    Example:

        drift evaluate runs/topics test.csv --label topic
    """
    from drift.runs.predict import evaluate as score

    found = score(run, table, text=text, label=label, abstain_below=abstain_below, encoding=encoding)
    typer.echo(f"{found['labeled_rows']:,} of {found['rows']:,} rows have a label")
    for name in ("accuracy", "macro_f1", "calibration_error", "covered", "accuracy_where_sure"):
        if found.get(name) is not None:
            typer.echo(f"{name.replace('_', ' '):20} {100 * found[name]:.2f} %")
