"""`drift label`: weak labels for a table of texts or sentences, from rules."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from drift.cli.parts import CLUSTER, check_one_table, show_parts
from drift.cli.predict import SPREADSHEET
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
        ..., help="Table: .csv, .tsv, .jsonl (each also .gz), .parquet; with --task tokens also CoNLL. Or a folder."
    ),
    rules: Path | None = typer.Option(
        None, "--rules", "-r", help="Rule file: YAML, or Python with a RuleSet in the variable `rules`."
    ),
    classes: str | None = typer.Option(
        None, "--classes", metavar="NAMES|FILE", help="In place of rules: names of classes, as for `drift fit`."
    ),
    model: str = typer.Option("default", "--model", help="Encoder that compares texts with --classes."),
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
    spreadsheet: bool = SPREADSHEET,
    jobs: int = typer.Option(1, "--jobs", "-j", min=-1, help="Number of processes; -1 for one per core."),
    cluster: str | None = CLUSTER,
    quiet: bool = typer.Option(False, "--quiet", help="No progress bar."),
) -> None:
    """Label texts by rules or by the names of classes, and measure how good they are.

    All columns are kept. The column `weak` is added; it is empty where no rule votes or the votes tie, or where texts
    are too far from the names of the classes. --classes also shows what each name caught, and adds a column `nearest`.

    Examples:

        drift label texts.csv --rules rules.yaml

        drift label texts.csv --classes "sports, politics, business"

        drift label texts.csv --rules rules.yaml -o weak.parquet --label topic

        drift label texts.csv --rules rules.py -o weak.csv --votes --ties order --jobs -1

        drift label sentences.jsonl --task tokens --rules rules.yaml -o weak.jsonl
    """
    from drift.errors import ConfigError
    from drift.weak import RuleSet, label_sentence_table, label_table
    from drift.weak.casting import TEXTS_PER_BATCH

    policy: Any = None if ties is None else ties.value
    if (rules is None) == (classes is None):
        wanted = "both were given; drift fit combines them" if rules else "neither was given"
        raise ConfigError(f"give --rules or --classes: {wanted}")
    if classes is not None:
        if task is Task.tokens:
            raise ConfigError("--classes is for texts; for --task tokens give --rules, which may list words")
        options = {"text": text, "gold": gold, "column": column, "model": model, "encoding": encoding}
        _label_by_names(table, classes, out, quiet=quiet, spreadsheet=spreadsheet, **options)
        return
    assert rules is not None
    written: dict[str, Any] = {"text": text, "gold": gold, "column": column, "votes": votes, "ties": policy}
    written |= {"seed": seed, "encoding": encoding, "spreadsheet": spreadsheet}
    if table.is_dir():
        workers = None if jobs < 0 else jobs
        _label_parts(table, rules, out, cluster, workers, quiet=quiet, tokens=task is Task.tokens, **written)
        return
    check_one_table(cluster, None)
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
            summary = label_table(table, rule_set, out, n_jobs=jobs, tick=lambda rows: batch_done(), **written)
        _show_texts(summary)
    if out is not None:
        print(f"Written: {out}")


def _label_parts(
    folder: Path,
    rules: Path,
    out: Path | None,
    cluster: str | None,
    jobs: int | None,
    *,
    quiet: bool,
    tokens: bool,
    **options: Any,
) -> None:
    from drift.errors import ConfigError
    from drift.runs.parts import label_parts

    if tokens or out is None:
        raise ConfigError("a folder of tables is labelled with --out FOLDER, and without --task tokens")
    show_parts(
        lambda tick: label_parts(rules, folder, out, cluster=cluster, n_jobs=jobs, tick=tick, **options),
        out,
        quiet=quiet,
    )


def _label_by_names(table: Path, classes: str, out: Path | None, *, quiet: bool, **options: Any) -> None:
    from functools import partial

    from rich.console import Console

    from drift.cli.show import show_table
    from drift.tasks.text.labeling import label_by_names
    from drift.tasks.text.source_report import caught_table, shortened
    from drift.training.progress import progress

    done = label_by_names(table, classes, out, progress=partial(progress, shown=not quiet), **options)
    headings, rows = caught_table(done.found)
    show_table(headings, [[row[0], shortened(row[1]), *row[2:]] for row in rows])
    lines = [f"Labelled: {done.coverage} texts, the most certain half of each class"]
    if done.accuracy.of:
        lines.append(f"Accuracy of the labels: {done.accuracy} that have a gold label")
    lines += [*done.notes, *([] if out is None else [f"Written: {out}"])]
    for line in lines:
        Console().print(line, markup=False, highlight=False)


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
