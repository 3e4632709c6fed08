"""How good rules are: what each covers, where rules meet and disagree, and, where gold labels exist, who is right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drift.errors import ShapeError
from drift.weak.casting import ABSTAIN, is_missing

NO_GOLD, OTHER = -1, -2  # OTHER: a gold label that is none of the rules' classes, so that every vote on it is wrong


@dataclass(frozen=True)
class Share:
    """A part of a whole, kept as two counts so that the denominator is never lost."""

    count: int
    of: int

    @property
    def rate(self) -> float:
        return self.count / self.of if self.of else float("nan")

    def __str__(self) -> str:
        return f"{self.rate:.1%} of {self.of:,}" if self.of else "-"

    def __add__(self, other: "Share") -> "Share":
        return Share(self.count + other.count, self.of + other.of)


@dataclass(frozen=True)
class RuleSummary:
    """One rule: coverage, overlap and conflict are shares of all texts, accuracy of its votes on texts with gold."""

    name: str
    polarity: dict[str, int]  # votes for each class; classes without votes are left out
    coverage: Share  # it votes
    overlap: Share  # it votes, and so does another rule
    conflict: Share  # it votes, and another rule votes otherwise
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
    """All rules together: shares of all texts, but accuracy, which is of the labelled texts with gold.

    The summaries of the pieces of a table add up to that of the whole.
    """

    rules: tuple[RuleSummary, ...]
    coverage: Share  # at least one vote
    overlap: Share  # at least two
    conflict: Share  # at least two that differ
    labeled: Share  # a weak label was made: a vote, and no tie that abstains
    accuracy: Share
    labels: dict[str, int]  # weak labels of each class
    other_gold: dict[str, int]  # gold labels that are none of the classes; what is said of such a text is wrong

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
    """What votes (N, M) and the weak labels (N,) made of them amount to.

    names: of the M rules. classes: of the codes. gold: the right classes by name; None or "" where it is not known.
    """
    if votes.shape != (len(labels), len(names)) or (gold is not None and len(gold) != len(labels)):
        raise ShapeError(
            f"votes {votes.shape}, {len(labels)} labels, {len(names)} names and gold labels for"
            f" {len(labels) if gold is None else len(gold)} texts do not fit together"
        )
    truth, other_gold = _gold_codes(gold if gold is not None else [None] * len(labels), classes)
    voted = votes != ABSTAIN
    n_votes = voted.sum(axis=1)
    # Votes differ where the least class voted for is not the greatest.
    greatest = votes.max(axis=1, initial=ABSTAIN)
    least = np.where(voted, votes, len(classes)).min(axis=1, initial=len(classes))
    covered, meets, differs = n_votes > 0, n_votes > 1, (n_votes > 1) & (least < greatest)

    def of_texts(found: np.ndarray) -> Share:
        return Share(int(found.sum()), len(labels))

    def right(codes: np.ndarray) -> Share:
        judged = (codes != ABSTAIN) & (truth != NO_GOLD)
        return Share(int((codes == truth)[judged].sum()), int(judged.sum()))

    def counts(codes: np.ndarray) -> dict[str, int]:
        found = np.bincount(codes[codes != ABSTAIN], minlength=len(classes))
        return {name: int(n) for name, n in zip(classes, found, strict=True) if n}

    rules = tuple(
        RuleSummary(
            name,
            counts(votes[:, place]),
            of_texts(voted[:, place]),
            of_texts(voted[:, place] & meets),
            of_texts(voted[:, place] & differs),
            right(votes[:, place]),
        )
        for place, name in enumerate(names)
    )
    overall = (of_texts(covered), of_texts(meets), of_texts(differs), of_texts(labels != ABSTAIN))
    return Summary(rules, *overall, right(labels), counts(labels), other_gold)


def table(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """The summary as headings and rows of strings, for a terminal or a page; accuracy only where gold is known."""
    headings = ["rule", "votes for", "coverage", "overlap", "conflict"]
    judged = any(rule.accuracy.of for rule in summary.rules)
    if judged:
        headings.append("accuracy")

    def row(name: str, votes: Mapping[str, int], of: RuleSummary | Summary) -> list[str]:
        shares = [f"{share.rate:.1%}" for share in (of.coverage, of.overlap, of.conflict)]
        return [name, ", ".join(votes) or "-", *shares, *([str(of.accuracy)] if judged else [])]

    rows = [row(rule.name, rule.polarity, rule) for rule in summary.rules]
    return headings, [*rows, row("together", summary.labels, summary)]


def _gold_codes(gold: Sequence[Any], classes: Sequence[str]) -> tuple[np.ndarray, dict[str, int]]:
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
