"""Stop before a bad step is taken: a loss that is no number, or that has exploded."""

import math
from typing import Any

from torch import Tensor

from drift.data.examples import Batch

EXPLODED = 100.0  # times 1 + the average so far
SHOWN = 8  # row numbers in a message; all of them go to the file


class Guard:
    """Knows what losses have been like, and says what is wrong with a new one."""

    def __init__(self) -> None:
        self.average: float | None = None

    def fault(self, loss: float) -> str | None:
        """What is wrong with this loss; None if nothing is, and then it counts towards the average."""
        if not math.isfinite(loss):
            return f"the loss is {loss}"
        if self.average is not None and loss > EXPLODED * (1.0 + self.average):
            return f"the loss has exploded: {loss:.4g}, where it was {self.average:.4g} on average"
        self.average = loss if self.average is None else 0.9 * self.average + 0.1 * loss
        return None


def batch_rows(batches: list[Batch]) -> dict[str, list[Any]]:
    """The row numbers of a step's batches, by kind."""

    def collected(parts: list[Tensor | None]) -> list[Any]:
        return [row for part in parts if part is not None for row in part.flatten().tolist()]

    return {
        "labeled": collected([batch.labeled_rows for batch in batches]),
        "unlabeled": collected([batch.unlabeled_rows for batch in batches]),
    }


def shown(rows: dict[str, list[Any]]) -> str:
    """The first of them, for a message."""
    parts = []
    for kind, numbers in rows.items():
        if numbers:
            listed = ", ".join(str(number) for number in numbers[:SHOWN])
            more = f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
            parts.append(f"{kind} rows {listed}{more}")
    return "; ".join(parts)
