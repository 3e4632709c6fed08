"""`drift label`: weak labels for a table of texts, from rules."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from drift.weak import Summary


class TiePolicy(StrEnum):
    abstain = "abstain"
    random = "random"
    order = "order"


def label(
    table: Path = typer.Argument(..., help="Texts: .csv, .tsv, .jsonl (each also .gz) or .parquet."),
    rules: Path = typer.Option(..., "--rules", "-r", help="Rules: YAML, or Python with a RuleSet called `rules`."),
    out: Path | None = typer.Option(None, "--out", "-o", help="Table to write; without it, only say how rules do."),
    text: str | None = typer.Option(None, "--text", help="Column of the texts; found by itself where it is obvious."),
    gold: str | None = typer.Option(None, "--label", help="Column of right labels, to measure the rules against."),
    column: str = typer.Option("weak", "--column", help="Name of the new column."),
    votes: bool = typer.Option(False, "--votes", help="Also a column vote_NAME for each rule."),
    ties: TiePolicy | None = typer.Option(None, "--ties", help="What a tie becomes, instead of what the rules say."),
    seed: int = typer.Option(0, "--seed", min=0, help="Of ties broken at random."),
    encoding: str = typer.Option("utf-8", help="Of CSV, TSV and JSON lines."),
    jobs: int = typer.Option(1, "--jobs", "-j", min=-1, help="Processes; -1 for one a core."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress bar."),
) -> None:
    """Label texts by rules, and see how good the rules are.

    Every column is kept; `weak` is added, empty where no rule votes or the votes tie.

    Examples:

        drift label texts.csv --rules rules.yaml

        drift label texts.csv --rules rules.yaml -o weak.parquet --label topic

        drift label texts.csv --rules rules.py -o weak.csv --votes --ties order --jobs -1
    """
    import sys
    from contextlib import nullcontext
    from functools import reduce
    from operator import add

    import numpy as np
    from joblib import effective_n_jobs

    from drift.data.columns import find_column, guess_text_column
    from drift.data.table_writer import TableWriter
    from drift.data.tables import read_chunks
    from drift.errors import ConfigError
    from drift.training.progress import progress
    from drift.weak import ABSTAIN, RuleSet
    from drift.weak import label as label_texts
    from drift.weak.casting import PIECE

    if jobs == 0:
        raise ConfigError("--jobs 0 is no process at all; give 1 or more, or -1 for one a core")
    ruleset = RuleSet.from_file(rules)
    sample = next(read_chunks(table, size=100, encoding=encoding))
    names = list(sample.columns)
    for wanted in (text, gold, *ruleset.columns):
        if wanted is not None:
            find_column(wanted, names, str(table))
    text = text or guess_text_column(names, sample)
    vote_columns = [f"vote_{name}" for name in ruleset.names] if votes else []
    if taken := [name for name in (column, *vote_columns) if name in names]:
        raise ConfigError(f"{table} has a column {taken[0]!r} already; rename it, or give another with --column")

    size = PIECE * effective_n_jobs(jobs)
    shown = not quiet and sys.stderr.isatty()
    total = sum(1 for _ in read_chunks(table, size=size, encoding=encoding)) if shown else 0
    rng = np.random.default_rng(seed)  # one for the whole table, however it is cut
    summaries = []
    with TableWriter(out) if out else nullcontext() as writer, progress("Labelling", total, shown=shown) as tick:
        for chunk in read_chunks(table, size=size, encoding=encoding):
            found = label_texts(
                chunk.columns,
                ruleset,
                text=text,
                gold=gold,
                ties=None if ties is None else ties.value,
                seed=rng,
                jobs=jobs,
                first_row=chunk.first,
            )
            summaries.append(found.summary)
            if writer is not None:
                voted = {
                    name: [ruleset.classes[code] if code != ABSTAIN else None for code in found.votes[:, place]]
                    for place, name in enumerate(vote_columns)
                }
                writer.write({**chunk.columns, column: found.labels, **voted})
            tick()
    _show(reduce(add, summaries))
    if out is not None:
        print(f"Written: {out}")


def _show(summary: "Summary") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from drift.weak.diagnostics import table

    headings, rows = table(summary)
    view = Table(box=None, pad_edge=False)
    for place, heading in enumerate(headings):
        view.add_column(heading, justify="left" if place < 2 else "right")
    for row in rows:
        view.add_row(*map(escape, row))
    console = Console()
    console.print(view)
    classes = ", ".join(f"{name} {count:,}" for name, count in summary.labels.items())
    lines = [f"Coverage, overlap and conflict are shares of {summary.coverage.of:,} texts."]
    lines.append(f"Labelled: {summary.labeled}" + (f" ({classes})" if classes else ""))
    if summary.accuracy.of:
        lines.append(f"Accuracy of the weak labels: {summary.accuracy} that have a right label")
    if summary.other_gold:
        other = ", ".join(f"{name!r} ({count:,})" for name, count in summary.other_gold.items())
        lines.append(f"Right labels that are none of the classes, so that every vote on them is wrong: {other}")
    for line in lines:
        console.print(line, markup=False, highlight=False)
