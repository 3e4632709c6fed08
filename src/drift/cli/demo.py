"""`drift demo`: see it work, with nothing to download."""

from enum import StrEnum
from pathlib import Path

import typer


class Demo(StrEnum):
    moons = "moons"
    digits = "digits"
    text = "text"


def demo(
    name: Demo = typer.Argument(Demo.moons, help="Which demonstration."),
    out: Path = typer.Option(
        Path("drift-demo"), "--out", "-o", file_okay=False, help="Folder for figures and the report page."
    ),
    quiet: bool = typer.Option(False, "--quiet", help="No progress bar."),
) -> None:
    """Show supervised learning, Self-training and DRIFT side by side, in under a minute (`text`: three).

    `moons` is the paper's warm-up: two half-moons, 12 labels a class, 10 trials as the paper has and 100 for power.
    `digits` is scikit-learn's handwritten digits with 5 labels a class, through `DriftClassifier`. `text` asks which
    library wrote a docstring: 10 labels a library, then keyword rules alone, through `drift fit`.

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
        raise FileError(f"{out} cannot be made a folder ({error.strerror}); give another with --out") from error
    show = {Demo.moons: moons_demo.demo, Demo.digits: digits.demo, Demo.text: text_demo.demo}[name]
    shown = show(out, lambda title, total: progress(title, total, shown=not quiet))

    console = Console()
    for table in shown.tables:
        view = Table(title=table.caption, title_justify="left", title_style="bold", box=None, pad_edge=False)
        for place, heading in enumerate(table.headings):
            view.add_column(heading, justify="left" if place == 0 else "right")
        for row in table.rows:
            view.add_row(*row)
        console.print(view)
        console.print()
    for line in shown.findings:
        console.print(escape(line), highlight=False)
    # soft_wrap: a path broken over two lines cannot be copied.
    console.print(f"\nReport: [bold]{escape(str(shown.page))}[/bold]", highlight=False, soft_wrap=True)
    console.print("\nTry next:")
    for command, why in shown.next_steps:
        console.print(f"  [bold]{escape(command)}[/bold]  {why}", highlight=False, soft_wrap=True)
