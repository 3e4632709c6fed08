"""Progress bars for a person at a terminal; nothing is drawn into a pipe or a log."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Tick(Protocol):
    """Report one unit of work as done. text: what to write beside the bar, such as the loss."""

    def __call__(self, text: str = "") -> None: ...


@contextmanager
def progress(title: str, total: int, *, done: int = 0, shown: bool = True) -> Iterator[Tick]:
    """Draw a bar of `total` ticks on standard error, `done` of them already taken; yields the function that ticks."""
    if not (shown and sys.stderr.isatty()):
        yield lambda text="": None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as RichProgress
    from rich.text import Text

    class Speed(ProgressColumn):
        def render(self, task: Task) -> Text:
            settled = task.speed and (task.elapsed or 0) > 1  # the rate of the first ticks means nothing
            return Text(f"{task.speed:.3g}/s" if settled else "", style="progress.data.speed")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[beside]}"),
        Speed(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=10) as bar:
        task = bar.add_task(title, total=total, completed=done, beside="")

        def tick(text: str = "") -> None:
            if text:
                bar.update(task, beside=text)
            bar.advance(task)

        yield tick
