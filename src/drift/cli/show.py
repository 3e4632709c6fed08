"""What commands print: tables, plans, and the result of a run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

MOST_LIMITS = 3  # of what limits a result
WIDE = 160  # columns of a table that is written to a file or a pipe

if TYPE_CHECKING:
    from drift.runs.result import Run
    from drift.tasks.record import RunRecord
    from drift.training.plan import Plan


def show_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], console: Console | None = None, *, names: int = 2
) -> None:
    """A table with text in the first columns and numbers in the others, split if the terminal is too narrow.

    names: how many columns hold text.
    """
    from drift.report.terminal import fitted

    console = console or Console()
    console = console if console.is_terminal else Console(width=WIDE, file=console.file)
    for part, (own_headings, own_rows) in enumerate(fitted(headings, rows, console.width, names=names)):
        view = Table(box=None, pad_edge=False)
        left = names if part == 0 else 1
        for column, heading in enumerate(own_headings):
            view.add_column(heading, justify="left" if column < left else "right", no_wrap=column >= left)
        for row in own_rows:
            view.add_row(*map(escape, row))
        if part:
            console.print()
        console.print(view)


def show_plan(plan: "Plan") -> None:
    """A plan, one fact per line."""
    console = Console()
    for line in plan.lines():
        console.print(line, highlight=False)


def show_run(run: "Run", console: Console | None = None) -> None:
    """Scores with their spread, their cost in labels and time, and where everything is."""
    from drift.runs.summary import cost

    console = console or Console()
    record, kind = run.record, run.task.kinds[run.record.kind]
    model = escape(record.model) if kind.from_user_code else kind.title
    tip = f" ({kind.tip})" if kind.tip else ""
    console.print(
        f"[bold]{escape(record.method)}[/bold] on {record.training_rows:,} {record.unit}; {model}{tip}",
        highlight=False,
    )
    _show_scores(run, console)
    for headings, rows in run.task.source_tables(record):
        show_table(headings, rows, console)
    budget = record.label_budget
    console.print(
        f"Label budget: {budget.total:,} gold labels ({budget.train:,} to train, {budget.dev:,} dev)", highlight=False
    )
    console.print(cost(record), highlight=False)
    for note in run.notes:
        console.print(escape(note), highlight=False)
    _show_end(record, console)
    if run.path is not None:
        from drift.runs.result import REPORT
        from drift.runs.usage_report import use_commands

        console.print(f"Run: [bold]{escape(str(run.path))}[/bold]", highlight=False, soft_wrap=True)
        console.print(f"Report: [bold]{escape(str(run.path / REPORT))}[/bold]", highlight=False, soft_wrap=True)
        command = use_commands(run.path, run.task, record)[0]
        console.print(f"Try next: [bold]{escape(command)}[/bold]", highlight=False, soft_wrap=True)


def _show_end(record: "RunRecord", console: Console) -> None:
    """The result in one line, and what limits it."""
    from drift.runs.summary import limits, result

    console.print()
    if line := result(record):
        console.print(f"[bold]Result:[/bold] {escape(line)}", highlight=False)
    confusion = getattr(record, "confusion", None)
    if limiting := limits(record, confusion):
        console.print(f"[bold]Limited by:[/bold] {escape('; '.join(limiting[:MOST_LIMITS]))}", highlight=False)


def _show_scores(run: "Run", console: Console) -> None:
    from drift.runs.summary import advice, caption, score_rows

    record = run.record
    rows = score_rows(record)
    if rows:
        view = Table(box=None, pad_edge=False)
        for heading in ("", record.unit, *record.measures.values()):
            view.add_column(heading, justify="right" if heading else "left")
        for row in rows:
            view.add_row(*map(escape, row))
        console.print(view)
        if explained := caption(record):
            console.print(explained, highlight=False)
    else:
        console.print(
            f"No dev and no test set: nothing to score. Give {run.task.ask_for_scores} to know how good it is."
        )
    for line in advice(record):
        console.print(escape(line), highlight=False)
