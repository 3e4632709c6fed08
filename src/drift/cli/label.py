"""`drift label`: weak labels for a table of texts or sentences, from rules."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from drift.cli.table_bar import table_bar

if TYPE_CHECKING:
    from drift.weak import Summary, TokenSummary


class TiePolicy(StrEnum):
    abstain = "abstain"
    random = "random"
    order = "order"


class Task(StrEnum):
    text = "text"
    tokens = "tokens"


def label(
    table: Path = typer.Argument(
        ..., help="Table: .csv, .tsv, .jsonl (each also .gz), .parquet; with --task tokens also CoNLL."
    ),
    rules: Path = typer.Option(
        ..., "--rules", "-r", help="Rule file: YAML, or Python with a RuleSet in the variable `rules`."
    ),
    task: Task = typer.Option(Task.text, "--task", help="text: one label per text; tokens: one tag per word."),
    out: Path | None = typer.Option(
        None, "--out", "-o", help="Table to write. Default: write nothing, only print how the rules do."
    ),
    text: str | None = typer.Option(
        None, "--text", help="Column with the texts or words. Default: a column with an obvious name or content."
    ),
    gold: str | None = typer.Option(None, "--label", help="Column with gold labels, to measure the rules against."),
    column: str = typer.Option("weak", "--column", help="Name of the new column."),
    votes: bool = typer.Option(False, "--votes", help="Also write one column vote_NAME per rule."),
    ties: TiePolicy | None = typer.Option(None, "--ties", help="How to break ties. Default: as the rule file says."),
    seed: int = typer.Option(0, "--seed", min=0, help="Random seed for --ties random."),
    encoding: str = typer.Option("utf-8", help="Encoding of CSV, TSV and JSON lines."),
    jobs: int = typer.Option(1, "--jobs", "-j", min=-1, help="Number of processes; -1 for one per core."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress bar."),
) -> None:
    """Label texts by rules, and measure how good the rules are.

    All columns are kept. The column `weak` is added; it is empty where no rule votes or the votes tie.

    Examples:

        drift label texts.csv --rules rules.yaml

        drift label texts.csv --rules rules.yaml -o weak.parquet --label topic

        drift label texts.csv --rules rules.py -o weak.csv --votes --ties order --jobs -1

        drift label sentences.jsonl --task tokens --rules rules.yaml -o weak.jsonl
    """
    from drift.errors import ConfigError
    from drift.weak import RuleSet, label_sentence_table, label_table
    from drift.weak.casting import TEXTS_PER_BATCH

    policy: Any = None if ties is None else ties.value
    if task is Task.tokens:
        _show_tokens(
            label_sentence_table(
                table, rules, out, tokens=text, gold=gold, column=column, ties=policy, seed=seed, encoding=encoding
            )
        )
    else:
        if jobs == 0:
            raise ConfigError("--jobs 0 is not a number of processes; give 1 or more, or -1 for one per core")
        rule_set = RuleSet.from_file(rules)  # first: a bar reads the whole table to count its rows
        with table_bar("Labelling", table, TEXTS_PER_BATCH, encoding=encoding, quiet=quiet) as batch_done:
            summary = label_table(
                table,
                rule_set,
                out,
                text=text,
                gold=gold,
                column=column,
                votes=votes,
                ties=policy,
                seed=seed,
                n_jobs=jobs,
                tick=lambda rows: batch_done(),
                encoding=encoding,
            )
        _show_texts(summary)
    if out is not None:
        print(f"Written: {out}")


def _show_texts(summary: "Summary") -> None:
    from rich.console import Console

    from drift.cli.show import show_table
    from drift.weak.diagnostics import table

    show_table(*table(summary))
    classes = ", ".join(f"{name} {count:,}" for name, count in summary.labels.items())
    lines = [f"Coverage, overlap and conflict are shares of {summary.coverage.of:,} texts."]
    lines.append(f"Labelled: {summary.labeled}" + (f" ({classes})" if classes else ""))
    if summary.accuracy.of:
        lines.append(f"Accuracy of the weak labels: {summary.accuracy} that have a gold label")
    if summary.other_gold:
        other = ", ".join(f"{name!r} ({count:,})" for name, count in summary.other_gold.items())
        lines.append(f"Gold labels that are not among the classes (every vote on these texts is wrong): {other}")
    for line in lines:
        Console().print(line, markup=False, highlight=False)


def _show_tokens(summary: "TokenSummary") -> None:
    from drift.cli.show import show_table
    from drift.weak import token_table

    show_table(*token_table(summary))
    print(f"Coverage, overlap and conflict are shares of {summary.tokens.coverage.of:,} words.")
