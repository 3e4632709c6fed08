"""`drift predict` and `drift evaluate`: a trained run on new tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from drift.cli.parts import CLUSTER, JOBS, check_one_table, show_parts
from drift.cli.table_bar import table_bar

RUN = typer.Argument(..., help="Folder of a finished run.")
TEXT = typer.Option(None, help="Column with the texts or words; default: the one trained on.")
EDGES = typer.Option(None, help="Table of edges, if TABLE is a table of nodes; default: the run's.")
MODEL = typer.Option(None, help="The function that builds the model, if the run has one of yours.")
TASK = typer.Option(None, metavar="FILE.py:CLASS", help="The task of the run, if it is one of yours.")
ENCODING = typer.Option("utf-8", help="Encoding of CSV, TSV and JSON lines.")
SPREADSHEET = typer.Option(
    False,
    "--spreadsheet",
    help="CSV for Excel and the like: no text can become a formula; drift reads it unchanged.",
)
QUIET = typer.Option(False, "--quiet", help="No progress bar.")
PARTS, MOST_PARTS = ("precision", "recall", "f1"), 25
SCORES = ("f1", "precision", "recall", "accuracy", "macro_f1", "calibration_error", "covered", "accuracy_where_sure")


def predict(
    run: Path = RUN,
    table: str = typer.Argument(
        ..., metavar="TABLE", help="CSV, TSV, JSON lines (also .gz), Parquet, CoNLL columns, a graph, or a folder."
    ),
    out: Path = typer.Option(..., "--out", "-o", help="New table, in any of those formats; a folder for a folder."),
    text: str | None = TEXT,
    edges: Path | None = EDGES,
    model: str | None = MODEL,
    task: str | None = TASK,
    abstain_below: float = typer.Option(0.0, min=0.0, max=1.0, help="No label if the confidence is lower."),
    force: bool = typer.Option(False, "--force", help="Replace --out if it is there."),
    encoding: str = ENCODING,
    spreadsheet: bool = SPREADSHEET,
    explain: bool = typer.Option(
        False, "--explain", help="Also write why: words that matter, nearest labelled rows. One prediction per word."
    ),
    cluster: str | None = CLUSTER,
    jobs: int | None = JOBS,
    quiet: bool = QUIET,
) -> None:
    """Label every row of a table, of any size. Memory use is constant.

    Row order and all columns are kept; `predicted`, `confidence` and one probability per class are added. A tagger adds
    the tags of the words, and `entities` with their positions, labels and confidence.

    Examples:

        drift predict runs/topics new.csv -o labelled.csv

        drift predict runs/topics new.parquet -o sure.jsonl.gz --abstain-below 0.9

        drift predict runs/topics parts/ -o predicted/ --cluster tcp://host:8786
    """
    options: dict[str, Any] = {
        "text": text,
        "abstain_below": abstain_below,
        "encoding": encoding,
        "spreadsheet": spreadsheet,
    }
    if Path(table).is_dir():
        from drift.errors import ConfigError
        from drift.runs.parts import predict_parts

        if model or task or edges:
            raise ConfigError("a folder of tables is predicted by runs without --model, --task and --edges")
        show_parts(
            lambda tick: predict_parts(
                run, table, out, cluster=cluster, n_jobs=jobs, tick=tick, explain=explain, **options
            ),
            out,
            quiet=quiet,
        )
        return
    check_one_table(cluster, jobs)
    from drift.errors import FileError
    from drift.runs.load import load
    from drift.runs.predict import predict_file
    from drift.tasks.parts import ROWS_PER_CHUNK
    from drift.tasks.tally import Tally
    from drift.training.plan import peak_memory

    if out.exists() and not force:
        raise FileError(f"{out} is there already; give --force to replace it, or another name")
    opened, tally = load(run, model=model, task=task), Tally()
    quiet = quiet or not opened.task.reads_chunks
    with table_bar("Predicting", table, ROWS_PER_CHUNK, encoding=encoding, quiet=quiet) as tick:
        predict_file(
            opened,
            table,
            out,
            edges=edges,
            tick=tick,
            tally=tally,
            **options,
            explain=explain,
        )
    for line in tally.lines(opened.task.unit) if tally.rows else ():  # a task from outside may not count
        typer.echo(line)
    typer.echo(f"Written: {out} (peak memory {peak_memory():.1f} GB)")


def evaluate(
    run: Path = RUN,
    table: str = typer.Argument(..., metavar="TABLE", help="A table or graph with labels; blank ones are left out."),
    text: str | None = TEXT,
    label: str | None = typer.Option(None, help="Column with the labels."),
    edges: Path | None = EDGES,
    model: str | None = MODEL,
    task: str | None = TASK,
    abstain_below: float = typer.Option(0.0, min=0.0, max=1.0, help="Also score only rows with this confidence."),
    encoding: str = ENCODING,
    quiet: bool = QUIET,
) -> None:
    """Score a run on labelled data. Uses the labelled rows of a table, or the labelled nodes of a graph.

    Example:

        drift evaluate runs/topics test.csv --label topic
    """
    from drift.runs.load import load
    from drift.runs.predict import evaluate as score
    from drift.tasks.parts import ROWS_PER_CHUNK

    opened = load(run, model=model, task=task)
    quiet = quiet or not opened.task.reads_chunks
    with table_bar("Scoring", table, ROWS_PER_CHUNK, encoding=encoding, quiet=quiet) as tick:
        scores = score(
            opened,
            table,
            text=text,
            label=label,
            edges=edges,
            abstain_below=abstain_below,
            encoding=encoding,
            tick=tick,
        )
    where = f" in column {scores['label']!r}" if "label" in scores else ""
    typer.echo(f"{scores['labeled_rows']:,} of {scores['rows']:,} rows have a label{where}")
    for name in SCORES:
        if scores.get(name) is not None:
            title = opened.record.measures.get(name, name.replace("_", " "))
            interval = scores.get("interval") if name == "accuracy" else None
            ends = [f"{100 * end:.1f}" for end in interval or ()]
            certain = f" (95 % interval {' to '.join(ends)})" if ends else ""
            typer.echo(f"{title:20} {100 * scores[name]:.2f} %{certain}")
    _show_parts(scores)
    for note in scores.get("notes", ()):
        typer.echo(note)


def _show_parts(scores: Mapping[str, Any]) -> None:
    """Scores of each class or type of entity, in percent; of many classes, those with the lowest F1."""
    from drift.cli.show import show_table

    for heading in ("class", "type"):
        parts = scores.get(f"by_{heading}") or {}
        if not parts:
            continue
        shown = sorted(parts, key=lambda name: parts[name]["f1"])[:MOST_PARTS] if len(parts) > MOST_PARTS else parts
        rows = [
            [name, *(f"{100 * parts[name][score]:.1f}" for score in PARTS), f"{parts[name]['true']:,}"]
            for name in shown
        ]
        show_table([heading, *(score.replace("f1", "F1") for score in PARTS), "rows"], rows, names=1)
        if len(parts) > MOST_PARTS:
            typer.echo(f"the {MOST_PARTS} of {len(parts)} with the lowest F1")
