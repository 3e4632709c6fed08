"""Summaries of rules: coverage, overlap and conflict, and accuracy where gold labels are known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drift.errors import ShapeError
from drift.weak.casting import ABSTAIN, is_missing

NO_GOLD, OTHER = -1, -2  # OTHER: a gold label outside the classes of the rules; every vote on such a text is wrong


@dataclass(frozen=True)
class Share:
    """A proportion, kept as two counts so that the denominator is never lost."""

    count: int
    of: int

    @property
    def rate(self) -> float:
        """count / of; NaN if `of` is 0."""
        return self.count / self.of if self.of else float("nan")

    def __str__(self) -> str:
        return f"{self.rate:.1%} of {self.of:,}" if self.of else "-"

    def __add__(self, other: "Share") -> "Share":
        return Share(self.count + other.count, self.of + other.of)


@dataclass(frozen=True)
class RuleSummary:
    """The summary of one rule.

    Coverage, overlap and conflict are shares of all texts. Accuracy is a share of its votes on texts with a gold label.
    """

    name: str
    polarity: dict[str, int]  # number of votes per class; classes without votes are left out
    coverage: Share  # the rule votes
    overlap: Share  # the rule and at least one other rule vote
    conflict: Share  # the rule votes, and another rule votes for a different class
    accuracy: Share

    def __add__(self, other: "RuleSummary") -> "RuleSummary":
        return RuleSummary(
            self.name,
            _added(self.polarity, other.polarity),
            self.coverage + other.coverage,
            self.overlap + other.overlap,
            self.conflict + other.conflict,
            self.accuracy + other.accuracy,
        )


@dataclass(frozen=True)
class Summary:
    """The summary of a rule set. The summaries of the parts of a table add up to the summary of the table.

    Shares are of all texts, except accuracy: its denominator is the texts with both a weak and a gold label.
    """

    rules: tuple[RuleSummary, ...]
    coverage: Share  # at least one vote
    overlap: Share  # at least two votes
    conflict: Share  # at least two votes that differ
    labeled: Share  # a weak label: there are votes, and no tie that abstains
    accuracy: Share
    labels: dict[str, int]  # number of weak labels per class
    other_gold: dict[str, int]  # gold labels outside the classes; every weak label on such a text is wrong

    def __add__(self, other: "Summary") -> "Summary":
        return Summary(
            tuple(one + two for one, two in zip(self.rules, other.rules, strict=True)),
            self.coverage + other.coverage,
            self.overlap + other.overlap,
            self.conflict + other.conflict,
            self.labeled + other.labeled,
            self.accuracy + other.accuracy,
            _added(self.labels, other.labels),
            _added(self.other_gold, other.other_gold),
        )


def summarize(
    votes: np.ndarray,
    labels: np.ndarray,
    *,
    names: Sequence[str],
    classes: Sequence[str],
    gold: Sequence[Any] | None = None,
) -> Summary:
    """Summarize the votes of rules and the weak labels made from them.

    votes: (N, M), class codes or `ABSTAIN`. labels: (N,), weak labels as codes or `ABSTAIN`. names: the names of the M
    rules. classes: the class names, by code. gold: N gold labels by name; None or "" where unknown.
    """
    if votes.shape != (len(labels), len(names)) or (gold is not None and len(gold) != len(labels)):
        raise ShapeError(
            f"votes {votes.shape}, {len(labels)} labels, {len(names)} names and gold labels for"
            f" {len(labels) if gold is None else len(gold)} texts do not fit together"
        )
    truth, other_gold = _gold_codes(gold if gold is not None else [None] * len(labels), classes)
    voted = votes != ABSTAIN
    n_votes = voted.sum(axis=1)
    # Votes differ where the lowest code is not the highest.
    highest = votes.max(axis=1, initial=ABSTAIN)
    lowest = np.where(voted, votes, len(classes)).min(axis=1, initial=len(classes))
    covered, overlapping, conflicting = n_votes > 0, n_votes > 1, (n_votes > 1) & (lowest < highest)

    def of_texts(mask: np.ndarray) -> Share:
        return Share(int(mask.sum()), len(labels))

    def accuracy(codes: np.ndarray) -> Share:
        judged = (codes != ABSTAIN) & (truth != NO_GOLD)
        return Share(int((codes == truth)[judged].sum()), int(judged.sum()))

    def class_counts(codes: np.ndarray) -> dict[str, int]:
        counts = np.bincount(codes[codes != ABSTAIN], minlength=len(classes))
        return {name: int(n) for name, n in zip(classes, counts, strict=True) if n}

    rules = tuple(
        RuleSummary(
            name,
            class_counts(votes[:, rule]),
            of_texts(voted[:, rule]),
            of_texts(voted[:, rule] & overlapping),
            of_texts(voted[:, rule] & conflicting),
            accuracy(votes[:, rule]),
        )
        for rule, name in enumerate(names)
    )
    overall = (of_texts(covered), of_texts(overlapping), of_texts(conflicting), of_texts(labels != ABSTAIN))
    return Summary(rules, *overall, accuracy(labels), class_counts(labels), other_gold)


def table(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of strings, for a terminal or a page. The accuracy column is there only with gold labels."""
    headings = ["rule", "votes for", "coverage", "overlap", "conflict"]
    judged = any(rule.accuracy.of for rule in summary.rules)
    if judged:
        headings.append("accuracy")

    def row(name: str, votes: Mapping[str, int], part: RuleSummary | Summary) -> list[str]:
        shares = [f"{share.rate:.1%}" for share in (part.coverage, part.overlap, part.conflict)]
        return [name, ", ".join(votes) or "-", *shares, *([str(part.accuracy)] if judged else [])]

    rows = [row(rule.name, rule.polarity, rule) for rule in summary.rules]
    return headings, [*rows, row("together", summary.labels, summary)]


def _gold_codes(gold: Sequence[Any], classes: Sequence[str]) -> tuple[np.ndarray, dict[str, int]]:
    """Gold labels as codes, `NO_GOLD` or `OTHER`, and the counts of those outside the classes."""
    codes = {name: code for code, name in enumerate(classes)}
    truth = np.full(len(gold), NO_GOLD)
    other: dict[str, int] = {}
    for row, value in enumerate(gold):
        if not is_missing(value):
            truth[row] = codes.get(str(value), OTHER)
            if truth[row] == OTHER:
                other[str(value)] = other.get(str(value), 0) + 1
    return truth, other


def _added(one: Mapping[str, int], two: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + two.get(name, 0) for name in (*one, *two)}
