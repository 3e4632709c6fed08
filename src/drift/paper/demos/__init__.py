"""Demonstrations for `drift demo`. Each has a function `demo(out, bar)` that returns a `DemoResult`."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from drift.report.page import Table

Bar = Callable[[str, int], AbstractContextManager[Callable[[], None]]]
"""Opens a progress bar from a title and a number of ticks."""


@dataclass(frozen=True)
class DemoResult:
    """The result of a demonstration.

    findings: sentences that sum up the tables. page: the report that was written.
    next_steps: commands to try, each with an explanation.
    """

    tables: Sequence[Table]
    findings: Sequence[str]
    page: Path
    next_steps: Sequence[tuple[str, str]]
