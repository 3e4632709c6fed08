"""All checks of a table of texts with vectors: labels, copies, outliers, empty and truncated texts, languages."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drift.quality.duplicates import find_duplicates
from drift.quality.findings import Finding, shortened
from drift.quality.label_errors import LabelErrors
from drift.quality.languages import other_languages
from drift.quality.neighbours import Nearest, outliers

CUT_ROWS = 5  # rows of exactly the same, greatest length, from which they were probably cut
CUT_LENGTH = 60  # characters; shorter texts often have the same length by chance
OTHERS_LISTED = 5


@dataclass(frozen=True)
class CheckedTexts:
    """Texts of a table, then those of the test table.

    labels: one per text, None if missing. own: number of rows of the table itself. too_long: whether each text is
    longer than the encoder reads, `(n,)`. max_length: tokens that it reads.
    """

    texts: Sequence[str]
    labels: Sequence[str | None]
    own: int
    too_long: np.ndarray
    max_length: int

    def name_of(self, row: int) -> str:
        """A row as a reader knows it, counted from 1."""
        return str(row + 1) if row < self.own else f"test {row - self.own + 1}"

    def finding(self, row: int, issue: str, **fields: object) -> Finding:
        return Finding(row + 1, issue, shortened(self.texts[row]), self.labels[row], **fields)  # type: ignore[arg-type]


def label_findings(data: CheckedTexts, rows: np.ndarray, errors: LabelErrors, classes: Sequence[str]) -> list[Finding]:
    """Suspected wrong labels. rows: row numbers of the labelled texts, to which `errors` refers."""
    return [
        data.finding(
            int(rows[place]),
            "label",
            suggested=classes[suggested],
            score=round(float(margin), 4),
            detail=f"{classes[suggested]} is likelier by {100 * margin:.0f} points",
        )
        for place, suggested, margin in zip(errors.rows, errors.suggested, errors.margin, strict=True)
    ]


def copy_findings(data: CheckedTexts, near: Nearest | None) -> list[Finding]:
    """Copies and near-copies; those with different labels, and those of rows in the test table, are marked."""
    found = []
    duplicates = find_duplicates(data.texts, near)
    for group in duplicates.groups():
        labels = Counter(data.labels[row] for row in group if data.labels[row] is not None)
        own, held_out = [int(row) for row in group if row < data.own], [row for row in group if row >= data.own]
        for place, row in enumerate(own):
            issue = "conflict" if len(labels) > 1 else "leak" if held_out else "duplicate"
            if issue == "duplicate" and not place:
                continue  # the first copy is to be kept
            others = [data.name_of(int(other)) for other in group if other != row]
            found.append(
                data.finding(
                    row,
                    issue,
                    others=_listed(others),
                    detail=("exact copy" if duplicates.exact[row] else "near-copy")
                    + (f"; labels: {_counted(labels)}" if len(labels) > 1 else "")
                    + ("; in the test table too" if held_out else ""),
                )
            )
    return found


def outlier_findings(data: CheckedTexts, near: Nearest) -> list[Finding]:
    """Texts of the table that are far from all others; empty ones are reported as such."""
    rows, mean = outliers(near)
    return [
        data.finding(
            int(row),
            "outlier",
            score=round(1 - float(similar), 4),
            detail=f"mean cosine {similar:.2f} with its {near.rows.shape[1]} nearest neighbours",
        )
        for row, similar in zip(rows, mean, strict=True)
        if row < data.own and data.texts[int(row)].strip()
    ]


def plain_findings(data: CheckedTexts) -> tuple[list[Finding], str | None]:
    """Empty and truncated texts, and texts in another language than most; and the language of most."""
    texts = data.texts[: data.own]
    found = [data.finding(row, "empty") for row, text in enumerate(texts) if not text.strip()]
    found += [
        data.finding(row, "truncated", score=float(len(texts[row])), detail=f"longer than {data.max_length} tokens")
        for row in range(data.own)
        if data.too_long[row]
    ]
    lengths = Counter(map(len, texts))
    longest = max(lengths, default=0)
    if lengths[longest] >= CUT_ROWS and longest >= CUT_LENGTH:
        detail = f"has exactly {longest:,} characters, as {lengths[longest]:,} texts: probably cut when it was stored"
        found += [
            data.finding(row, "truncated", detail=detail) for row, text in enumerate(texts) if len(text) == longest
        ]
    usual, others = other_languages(texts)
    found += [data.finding(row, "language", detail=f"{name}; most are {usual}") for row, name in others.items()]
    return found, usual


def _listed(names: Sequence[str]) -> str:
    more = f", ... ({len(names):,} in all)" if len(names) > OTHERS_LISTED else ""
    return ", ".join(names[:OTHERS_LISTED]) + more


def _counted(labels: Counter[str | None]) -> str:
    return ", ".join(f"{label} ({count})" for label, count in labels.most_common())
