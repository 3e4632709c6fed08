"""`drift label`: weak labels for a table of texts, from rules."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from drift.cli.table_bar import table_bar

if TYPE_CHECKING:
    from drift.weak import Summary


class TiePolicy(StrEnum):
    abstain = "abstain"
    random = "random"
    order = "order"


class Task(StrEnum):
    text = "text"
    tokens = "tokens"


def label(
    table: Path = typer.Argument(..., help="Texts: .csv, .tsv, .jsonl (each also .gz) or .parquet."),
    rules: Path = typer.Option(..., "--rules", "-r", help="Rules: YAML, or Python with a RuleSet called `rules`."),
    task: Task = typer.Option(Task.text, "--task", help="Whether rules are for texts or for the words in them."),
    out: Path | None = typer.Option(None, "--out", "-o", help="Table to write; without it, only say how rules do."),
    text: str | None = typer.Option(
        None, "--text", help="Column of the texts, or of words; found where it is obvious."
    ),
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

        drift label sentences.jsonl --task tokens --rules rules.yaml -o weak.jsonl
    """
    from contextlib import nullcontext
    from functools import reduce
    from operator import add

    import numpy as np
    from joblib import effective_n_jobs

    from drift.data.columns import find_column, guess_text_column
    from drift.data.table_writer import TableWriter
    from drift.data.tables import read_chunks
    from drift.errors import ConfigError
    from drift.weak import ABSTAIN, RuleSet
    from drift.weak import label as label_texts
    from drift.weak.casting import TEXTS_PER_BATCH

    if task is Task.tokens:
        from drift.cli.label_tokens import label_sentences

        label_sentences(
            table,
            rules,
            out,
            tokens=text,
            gold=gold,
            column=column,
            ties=None if ties is None else ties.value,
            seed=seed,
            encoding=encoding,
        )
        return
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

    size = TEXTS_PER_BATCH * effective_n_jobs(jobs)
    rng = np.random.default_rng(seed)  # one for the whole table, however it is cut
    summaries = []
    bar = table_bar("Labelling", table, size, encoding=encoding, quiet=quiet)
    with TableWriter(out) if out else nullcontext() as writer, bar as tick:
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

    from drift.cli.show import show_table
    from drift.weak.diagnostics import table

    show_table(*table(summary))
    classes = ", ".join(f"{name} {count:,}" for name, count in summary.labels.items())
    lines = [f"Coverage, overlap and conflict are shares of {summary.coverage.of:,} texts."]
    lines.append(f"Labelled: {summary.labeled}" + (f" ({classes})" if classes else ""))
    if summary.accuracy.of:
        lines.append(f"Accuracy of the weak labels: {summary.accuracy} that have a right label")
    if summary.other_gold:
        other = ", ".join(f"{name!r} ({count:,})" for name, count in summary.other_gold.items())
        lines.append(f"Right labels that are none of the classes, so that every vote on them is wrong: {other}")
    for line in lines:
        Console().print(line, markup=False, highlight=False)
