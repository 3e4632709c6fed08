"""`drift predict` and `drift evaluate`: a trained run on new tables."""

from pathlib import Path

import typer

from drift.cli.table_bar import table_bar


def predict(
    run: Path = typer.Argument(..., help="Folder of a finished run."),
    table: str = typer.Argument(
        ..., metavar="TABLE", help="CSV, TSV, JSON lines (also .gz), Parquet, CoNLL columns, or a graph."
    ),
    out: Path = typer.Option(..., "--out", "-o", dir_okay=False, help="New table, in any of those formats."),
    text: str | None = typer.Option(None, help="Column with the texts or words; the one trained on if left out."),
    edges: Path | None = typer.Option(None, help="Table of edges, where TABLE is one of nodes; the run's if left out."),
    model: str | None = typer.Option(None, help="The function that makes the model, if the run has one of yours."),
    abstain_below: float = typer.Option(0.0, min=0.0, max=1.0, help="No label where confidence is below this."),
    encoding: str = typer.Option("utf-8", help="Of CSV, TSV and JSON lines."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress bar."),
) -> None:
    """Label every row of a table, of any size, in constant memory.

    Row order and every column are kept; `predicted`, `confidence` and a probability for each class are added. A tagger
    adds the tags of the words, and `entities` with their places, labels and confidence.

    Examples:

        drift predict runs/topics new.csv -o labelled.csv

        drift predict runs/topics new.parquet -o sure.jsonl.gz --abstain-below 0.9
    """
    from drift.runs.predict import ROWS_PER_CHUNK, load
    from drift.runs.predict import predict as label_rows

    opened = load(run, model=model)
    at_once = opened.metrics["task"] == "nodes"  # there are no pieces to show
    with table_bar("Predicting", table, ROWS_PER_CHUNK, encoding=encoding, quiet=quiet or at_once) as tick:
        label_rows(
            opened, table, out, text=text, edges=edges, abstain_below=abstain_below, encoding=encoding, tick=tick
        )
    typer.echo(f"Written: {out}")


def evaluate(
    run: Path = typer.Argument(..., help="Folder of a finished run."),
    table: str = typer.Argument(..., metavar="TABLE", help="A table with labels; blank ones are left out."),
    text: str | None = typer.Option(None, help="Column with the texts or words; the one trained on if left out."),
    label: str | None = typer.Option(None, help="Column with the labels."),
    abstain_below: float = typer.Option(0.0, min=0.0, max=1.0, help="Score too where confidence reaches this."),
    encoding: str = typer.Option("utf-8", help="Of CSV, TSV and JSON lines."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress bar."),
) -> None:
    """Score a run on the labelled rows of a table.

    Example:

        drift evaluate runs/topics test.csv --label topic
    """
    from drift.runs.predict import ROWS_PER_CHUNK, load
    from drift.runs.predict import evaluate as score

    opened = load(run)
    with table_bar("Scoring", table, ROWS_PER_CHUNK, encoding=encoding, quiet=quiet) as tick:
        found = score(opened, table, text=text, label=label, abstain_below=abstain_below, encoding=encoding, tick=tick)
    where = f" in column {found['label']!r}" if "label" in found else ""
    typer.echo(f"{found['labeled_rows']:,} of {found['rows']:,} rows have a label{where}")
    shown = ("f1", "precision", "recall", "accuracy", "macro_f1", "calibration_error", "covered", "accuracy_where_sure")
    for name in shown:
        if found.get(name) is not None:
            title = opened.metrics["measures"].get(name, name.replace("_", " "))
            typer.echo(f"{title:20} {100 * found[name]:.2f} %")
    for kind, scores in found.get("by_type", {}).items():
        told = ", ".join(f"{name} {100 * scores[name]:.2f} %" for name in ("f1", "precision", "recall"))
        typer.echo(f"{kind:20} {told}, of {scores['true']:,}")
