"""`drift check`: what is suspicious in a table."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from drift.cli.predict import SPREADSHEET
from drift.cli.table_options import ENCODER, ENCODING, LABEL, MAX_LENGTH, QUIET

if TYPE_CHECKING:
    from drift.quality.findings import TableCheck

SHOWN = 5  # findings of the first issues
DETAILED = ("label", "conflict", "leak", "inconsistent", "missing", "language")


def check(
    table: str = typer.Argument(..., metavar="TABLE", help="CSV, TSV, JSON lines (also .gz), Parquet, CoNLL columns."),
    test: str | None = typer.Option(None, metavar="TABLE", help="Report rows that are copies of rows of this table."),
    out: Path | None = typer.Option(
        None, "--out", "-o", dir_okay=False, help="Write all findings to this table, one row per finding."
    ),
    page: Path | None = typer.Option(None, dir_okay=False, help="Write all findings as an HTML page."),
    task: str = typer.Option("text", help="text: one label per text; tokens: tagged sentences."),
    text: str | None = typer.Option(None, help="Column with the texts or words; an obvious one is recognised."),
    label: str | None = LABEL,
    encoder: str = ENCODER,
    max_length: int = MAX_LENGTH,
    encoding: str = ENCODING,
    spreadsheet: bool = SPREADSHEET,
    seed: int = typer.Option(0, min=0, help="Seed of the folds."),
    quiet: bool = QUIET,
) -> None:
    """Find wrong labels, copies, outliers, empty and truncated texts, and texts in other languages.

    Nothing is changed, and the exit code is 0 whatever is found. Labels are judged by models that did not see them.
    For tokens, mentions of the same phrase are compared.

    Examples:

        drift check reviews.csv --label topic

        drift check reviews.csv --test test.csv -o findings.csv --page findings.html

        drift check sentences.jsonl --task tokens
    """
    options = dict(locals())
    from drift.runs.check import check as check_table

    _show(check_table(options.pop("table"), **options))
    for path in (out, page):
        if path is not None:
            typer.echo(f"Written: {path}")


def _show(checked: "TableCheck") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from drift.quality.findings import ISSUES

    console = Console()
    console.print(f"{checked.rows:,} {checked.unit}, {checked.labeled:,} with a label", highlight=False)
    for note in checked.notes:
        console.print(escape(note), highlight=False)
    if checked.classes:
        total = max(1, sum(checked.counts))
        listed = [
            f"{name} {count:,} ({count / total:.0%})"
            for name, count in zip(checked.classes[:20], checked.counts[:20], strict=True)
        ]
        console.print(escape(f"classes: {', '.join(listed)}{', ...' * (len(checked.classes) > 20)}"), highlight=False)
    if checked.estimated_errors is not None:
        console.print(f"estimated share of wrong labels: {checked.estimated_errors:.1%}", highlight=False)
    if not checked.found:
        console.print("nothing suspicious was found")
        return
    view = Table(box=None, pad_edge=False)
    view.add_column("issue")
    view.add_column(checked.unit, justify="right")
    view.add_column("share", justify="right")
    for issue, count in checked.found.items():
        view.add_row(ISSUES[issue], f"{count:,}", f"{count / checked.rows:.1%}")
    console.print(view)
    for issue in checked.found:
        if issue in DETAILED:
            _show_examples(console, checked, issue)


def _show_examples(console: "object", checked: "TableCheck", issue: str) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from drift.quality.findings import ISSUES

    assert isinstance(console, Console)
    findings = checked.of(issue)
    view = Table(box=None, pad_edge=False, expand=True)
    view.add_column("row", justify="right")
    view.add_column("label", no_wrap=True)
    view.add_column("suggested" if any(each.suggested for each in findings) else "copies", no_wrap=True)
    view.add_column("text", no_wrap=True, ratio=1)
    for each in findings[:SHOWN]:
        view.add_row(str(each.row), escape(each.label or ""), escape(each.suggested or each.others), escape(each.text))
    first = f", the first {SHOWN}" if len(findings) > SHOWN else ""
    console.print(f"\n{ISSUES[issue].capitalize()}{first}:", highlight=False)
    console.print(view)
