"""`drift demo`: demonstrations that need no download."""

from enum import StrEnum
from pathlib import Path

import typer


class Demo(StrEnum):
    moons = "moons"
    digits = "digits"
    text = "text"


def demo(
    name: Demo = typer.Argument(Demo.moons, help="The demonstration to run."),
    out: Path = typer.Option(
        Path("drift-demo"), "--out", "-o", file_okay=False, help="Folder for figures and the report page."
    ),
    quiet: bool = typer.Option(False, "--quiet", help="Show no progress bar."),
) -> None:
    """See it work on small data. Compares supervised learning, Self-training and DRIFT in a minute (`text`: three).

    `moons` is the paper's first example: two half-moons with 12 labels per class, 10 trials as in the paper and 100 for
    statistical power. `digits` uses `DriftClassifier` on scikit-learn's handwritten digits with 5 labels per class.
    `text` uses `drift fit` to predict which library a docstring is from, with 10 labels per library and then with
    keyword rules only.

    Examples:

        drift demo

        drift demo digits -o figures
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from drift.errors import FileError
    from drift.paper.demos import digits, moons_demo, text_demo
    from drift.training.progress import progress
    from drift.training.threads import keep_freed_memory

    keep_freed_memory()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"the folder {out} cannot be created ({error.strerror}); give another with --out") from error
    run_demo = {Demo.moons: moons_demo.demo, Demo.digits: digits.demo, Demo.text: text_demo.demo}[name]
    result = run_demo(out, lambda title, total: progress(title, total, shown=not quiet))

    console = Console()
    for table in result.tables:
        view = Table(title=table.caption, title_justify="left", title_style="bold", box=None, pad_edge=False)
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
