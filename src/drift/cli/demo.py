"""`drift demo`: demonstrations that need no download."""

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path

import typer


class Demo(StrEnum):
    topics = "topics"
    moons = "moons"
    digits = "digits"
    text = "text"


def demo(
    name: Demo = typer.Argument(Demo.topics, help="The demonstration to run."),
    out: Path = typer.Option(
        Path("drift-demo"), "--out", "-o", file_okay=False, help="Folder for figures and the report page."
    ),
    quiet: bool = typer.Option(False, "--quiet", help="Show no progress bar."),
) -> None:
    """See it work on texts of this machine: a classifier from class names, from five labels per class, and from rules.

    `topics`, the default, trains on docstrings of installed packages: which subject is a text about? It takes about a
    minute and needs the extra `text`. `moons` is the paper's first example: two half-moons with 12 labels per class, 10
    trials as in the paper and 100 for statistical power. `digits` uses `DriftClassifier` on scikit-learn's handwritten
    digits with 5 labels per class. `text` compares supervised learning, DRIFT with a detached teacher, and DRIFT on
    docstrings.

    Examples:

        drift demo

        drift demo moons

        drift demo digits -o figures
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from drift.errors import FileError
    from drift.paper.demos import Bar, DemoResult, digits, moons_demo, text_demo, topics_demo
    from drift.training.progress import progress
    from drift.training.threads import keep_freed_memory

    keep_freed_memory()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"the folder {out} cannot be created ({error.strerror}); give another with --out") from error
    demos: dict[Demo, Callable[[Path, Bar], DemoResult]] = {
        Demo.topics: partial(topics_demo.demo, quiet=quiet),
        Demo.moons: moons_demo.demo,
        Demo.digits: digits.demo,
        Demo.text: text_demo.demo,
    }
    result = demos[name](out, lambda title, total: progress(title, total, shown=not quiet))

    console = Console()
    for table in result.tables:
        if table.caption:  # not as a title, which is broken where the table ends
            console.print(f"[bold]{escape(table.caption)}[/bold]", highlight=False)
        view = Table(box=None, pad_edge=False)
        for column, heading in enumerate(table.headings):
            view.add_column(heading, justify="left" if column == 0 else "right")
        for row in table.rows:
            view.add_row(*row)
        console.print(view)
        console.print()
    for line in result.findings:
        console.print(escape(line), highlight=False)
    # soft_wrap: a path broken over two lines cannot be copied.
    console.print(f"\nReport: [bold]{escape(str(result.page))}[/bold]", highlight=False, soft_wrap=True)
    console.print("\nTry next:")
    for command, explanation in result.next_steps:
        console.print(f"  [bold]{escape(command)}[/bold]  {explanation}", highlight=False, soft_wrap=True)
