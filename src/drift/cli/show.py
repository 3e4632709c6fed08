"""What a run came to, in a few lines at the terminal."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

NEXT = {
    "text": "predict RUN new.csv -o out.csv",
    "tokens": "predict RUN new.jsonl -o out.jsonl",
    "nodes": "predict RUN GRAPH -o predicted.csv",
}
WIDE = 160  # columns of a table that goes into a file or a pipe

if TYPE_CHECKING:
    from drift.runs.result import Run


def show_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table of words in the first two columns and numbers in the others."""
    view = Table(box=None, pad_edge=False)
    for place, heading in enumerate(headings):
        view.add_column(heading, justify="left" if place < 2 else "right")
    for row in rows:
        view.add_row(*map(escape, row))
    console = Console()
    (console if console.is_terminal else Console(width=WIDE)).print(view)


def show_run(console: Console, run: "Run") -> None:
    """Scores with their spread, what they cost in labels, and where everything is."""
    from drift.runs.report import spread
    from drift.runs.report_use import KINDS
    from drift.runs.result import REPORT

    metrics = run.metrics
    how = escape(metrics["model"]) if metrics["kind"] == "factory" else KINDS[metrics["kind"]]
    if metrics["kind"] == "frozen":
        how += " (--finetune trains all of it)"
    console.print(
        f"[bold]{escape(metrics['method'])}[/bold] on {metrics['training_rows']:,} {metrics['unit']}; {how}",
        highlight=False,
    )
    scored = [name for name in ("dev", "test") if name in metrics]
    if scored:
        view = Table(box=None, pad_edge=False)
        for heading in ("", metrics["unit"], *metrics["measures"].values()):
            view.add_column(heading, justify="right" if heading else "left")
        for name in scored:
            view.add_row(
                name,
                f"{metrics[name]['rows']:,}",
                *(spread(metrics[name]["scores"], measure) for measure in metrics["measures"]),
            )
        console.print(view)
        count = len(metrics["seeds"])
        if count > 1:
            console.print(
                f"mean ± standard deviation of {count} seeds; kept: seed {metrics['kept_seed']},"
                f" {metrics['kept_because']}",
                highlight=False,
            )
    else:
        asked = "data.dev_nodes or data.test_nodes" if metrics["task"] == "nodes" else "--dev or --test"
        console.print(f"No dev and no test set: nothing to score. Give {asked} to know how good it is.")
    budget = metrics["label_budget"]
    console.print(
        f"Label budget: {budget['total']:,} gold labels ({budget['train']:,} to train, {budget['dev']:,} dev)",
        highlight=False,
    )
    for note in run.notes:
        console.print(escape(note), highlight=False)
    if run.path is not None:
        console.print(f"Run: [bold]{escape(str(run.path))}[/bold]", highlight=False, soft_wrap=True)
        console.print(f"Report: [bold]{escape(str(run.path / REPORT))}[/bold]", highlight=False, soft_wrap=True)
        command = NEXT[metrics["task"]].replace("RUN", shlex.quote(str(run.path)))
        if metrics["kind"] == "factory":  # no code is imported that is not named
            command += f" --model {shlex.quote(metrics['model'])}"
        console.print(f"Try next: [bold]drift {escape(command)}[/bold]", highlight=False, soft_wrap=True)
