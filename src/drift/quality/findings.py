"""What a check of a table finds: one `Finding` per row and issue, and the `TableCheck` that holds them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

# Issues, the most important first, with a title for a reader.
ISSUES = {
    "label": "suspected wrong labels",
    "conflict": "copies with different labels",
    "leak": "copies of rows in the test table",
    "inconsistent": "mentions tagged unlike most of their copies",
    "missing": "suspected missing entities",
    "duplicate": "other copies",
    "empty": "rows without text",
    "truncated": "truncated texts",
    "language": "texts in another language",
    "outlier": "outliers",
}
LENGTH = 200  # characters of a text that are kept


@dataclass(frozen=True)
class Finding:
    """One row with one issue.

    row: counted from 1, as in messages. issue: one of `ISSUES`. text: the beginning of its text. label: in the table.
    suggested: the likelier label. score: larger is worse; comparable within an issue. others: the rows it is a copy of,
    such as "12" or "test 7". detail: what was seen.
    """

    row: int
    issue: str
    text: str = ""
    label: str | None = None
    suggested: str | None = None
    score: float | None = None
    others: str = ""
    detail: str = ""


@dataclass(frozen=True)
class TableCheck:
    """The result of a check.

    name: of the table. unit: what its rows are, in the plural. rows, labeled: their numbers. classes, counts: the
    labels and how often each occurs. findings: ordered by issue, then the worst first. joint: estimated number of
    labels `(C, C)` by label and true class. notes: messages for the user.
    """

    name: str
    unit: str
    rows: int
    labeled: int
    classes: Sequence[str]
    counts: Sequence[int]
    findings: Sequence[Finding]
    joint: np.ndarray | None = None
    notes: Sequence[str] = field(default=())

    def of(self, issue: str) -> list[Finding]:
        """The findings of one issue, the worst first."""
        return [finding for finding in self.findings if finding.issue == issue]

    @property
    def found(self) -> dict[str, int]:
        """The number of findings by issue, of those that were found."""
        counts = {issue: len(self.of(issue)) for issue in ISSUES}
        return {issue: count for issue, count in counts.items() if count}

    @property
    def estimated_errors(self) -> float | None:
        """The estimated share of wrong labels, found or not; None if labels were not judged."""
        if self.joint is None or not self.joint.sum():
            return None
        return float(1 - np.trace(self.joint) / self.joint.sum())

    def confusions(self) -> list[tuple[str, str, float]]:
        """Label, true class, and estimated number of such labels, the most frequent first; below half a row is none."""
        if self.joint is None:
            return []
        pairs = [
            (self.classes[label], self.classes[other], float(self.joint[label, other]))
            for label in range(len(self.classes))
            for other in range(len(self.classes))
            if label != other and self.joint[label, other] >= 0.5
        ]
        return sorted(pairs, key=lambda pair: -pair[2])


def by_issue(findings: Sequence[Finding]) -> list[Finding]:
    """Findings ordered by issue, as in `ISSUES`; within an issue as they are."""
    order = {issue: place for place, issue in enumerate(ISSUES)}
    return sorted(findings, key=lambda finding: order[finding.issue])


def shortened(text: str) -> str:
    """A text in one line, cut to `LENGTH` characters."""
    line = " ".join(text.split())
    return line if len(line) <= LENGTH else line[: LENGTH - 4] + " ..."
