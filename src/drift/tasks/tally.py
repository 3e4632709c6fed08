"""Counts of what was predicted, for a summary of a table that is never in memory as a whole."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

MOST_LISTED = 10  # classes
DOUBTFUL = 0.6  # predictions with lower confidence are counted


@dataclass
class Tally:
    """Predictions of a table.

    rows: of the table. labels: predictions by class; None: no label, because the confidence was too low.
    confidence: sum over predictions. doubtful: predictions below `DOUBTFUL`.
    """

    rows: int = 0
    labels: Counter[str | None] = field(default_factory=Counter)
    confidence: float = 0.0
    doubtful: int = 0

    def add(self, rows: int, labels: Iterable[str | None], confidence: Sequence[float]) -> None:
        """Count the predictions of some rows. labels, confidence: one per prediction; a row of words has several."""
        self.rows += rows
        self.labels.update(labels)
        self.confidence += float(sum(confidence))
        self.doubtful += sum(value < DOUBTFUL for value in confidence)

    def merge(self, other: "Tally") -> None:
        """Add what was counted elsewhere."""
        self.rows += other.rows
        self.labels.update(other.labels)
        self.confidence += other.confidence
        self.doubtful += other.doubtful

    def lines(self, unit: str) -> list[str]:
        """A summary for a reader. unit: what the rows are, in the plural."""
        total = self.labels.total()
        if not total:
            return [f"{self.rows:,} {unit}; nothing was found in them"]
        counted = f"{self.rows:,} {unit}" if total == self.rows else f"{self.rows:,} {unit}, {total:,} entities"
        ranked = [(name, count) for name, count in self.labels.most_common() if name is not None]
        listed = ", ".join(f"{name} {_percent(count, total)}" for name, count in ranked[:MOST_LISTED])
        more = f", and {len(ranked) - MOST_LISTED} more classes" if len(ranked) > MOST_LISTED else ""
        lines = [f"{counted}: {listed}{more}" if ranked else f"{counted}: no label"]
        if unlabeled := self.labels[None]:
            lines.append(f"no label for {unlabeled:,} ({_percent(unlabeled, total)}): the confidence is too low")
        lines.append(
            f"mean confidence {100 * self.confidence / total:.0f} %; below {100 * DOUBTFUL:.0f} % in"
            f" {self.doubtful:,} ({_percent(self.doubtful, total)})"
        )
        return lines


def _percent(count: int, of: int) -> str:
    return f"{100 * count / of:.0f} %"
