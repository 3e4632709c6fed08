"""What a demonstration hands to whoever shows it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from drift.report.page import Table

Bar = Callable[[str, int], AbstractContextManager[Callable[[], None]]]
"""Opens a progress bar from a title and a number of ticks."""


@dataclass(frozen=True)
class Shown:
    """Tables and findings in plain words, the page written, and what to try next (command, why)."""

    tables: Sequence[Table]
    findings: Sequence[str]
    page: Path
    next_steps: Sequence[tuple[str, str]]
