"""A progress bar for a person at a terminal; nothing at all for a pipe or a log."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Tick(Protocol):
    """One unit of work is done. shown: what to write beside the bar, such as the loss."""

    def __call__(self, shown: str = "") -> None: ...


@contextmanager
def progress(title: str, total: int, *, done: int = 0, shown: bool = True) -> Iterator[Tick]:
    """A bar over `total` ticks on standard error, `done` of them behind it; the block gets the function that ticks."""
    if not (shown and sys.stderr.isatty()):
        yield lambda shown="": None
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
            settled = task.speed and (task.elapsed or 0) > 1  # the first ticks come in no time at all
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

        def tick(shown: str = "") -> None:
            if shown:
                bar.update(task, beside=shown)
            bar.advance(task)

        yield tick
