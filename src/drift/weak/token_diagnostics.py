"""How good rules for tokens are: votes by token, spans by rule and by type, scored strictly where gold tags exist."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from drift.data.tags import OUTSIDE, Span, spans_of
from drift.errors import LabelError
from drift.weak.diagnostics import RuleSummary, Share, Summary, summarize
from drift.weak.given import as_list


@dataclass(frozen=True)
class SpanScore:
    """Spans found and spans that are right: a span is right if its start, its end and its type are."""

    found: int = 0
    judged: int = 0  # of those found, in sentences and on tokens with gold tags
    gold: int = 0
    right: int = 0

    @property
    def precision(self) -> Share:
        return Share(self.right, self.judged)

    @property
    def recall(self) -> Share:
        return Share(self.right, self.gold)

    @property
    def f1(self) -> Share:
        return Share(2 * self.right, self.judged + self.gold)

    def as_dict(self) -> dict[str, Any]:
        shares = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return {"found": self.found, **{name: asdict(share) for name, share in shares.items()}}

    def __add__(self, other: "SpanScore") -> "SpanScore":
        return SpanScore(
            self.found + other.found, self.judged + other.judged, self.gold + other.gold, self.right + other.right
        )


Scores = dict[str, SpanScore]  # by type


class Gold:
    """The right tags of a sentence, in IOB2, None where they are not known, and the entities that they spell."""

    def __init__(self, given: Any, *, length: int, number: int) -> None:
        """given: the tags. length: of the sentence. number: which it is, for messages."""
        self.tags = as_list(given, f"sentence {number}: gold tags")
        if len(self.tags) != length:
            raise LabelError(f"sentence {number}: {len(self.tags)} gold tags for {length} tokens; give one a token")
        if other := [tag for tag in self.tags if not isinstance(tag, str | None)]:
            raise LabelError(f"sentence {number}: gold tag {other[0]!r} is no string; give tags by name, or None")
        try:
            self.spans = frozenset(spans_of(self.tags))
        except LabelError as error:
            raise LabelError(f"sentence {number}: gold tag {error}") from error


@dataclass(frozen=True)
class TokenSummary:
    """What votes, spans and tags amount to; the summaries of pieces add up to that of the whole."""

    tokens: Summary  # coverage, overlap and conflict are shares of all tokens
    rules: dict[str, Scores]  # the spans of each rule
    types: Scores  # the spans of the weak tags

    @property
    def together(self) -> SpanScore:
        """The weak tags, all types together."""
        return _total(self.types.values())

    def of_rule(self, name: str) -> SpanScore:
        """One rule; gold spans of a type that it has not found anywhere are not held against it."""
        return _total(score for score in self.rules[name].values() if score.found)

    def __add__(self, other: "TokenSummary") -> "TokenSummary":
        rules = {name: _added(scores, other.rules[name]) for name, scores in self.rules.items()}
        return TokenSummary(self.tokens + other.tokens, rules, _added(self.types, other.types))

    def as_dict(self) -> dict[str, Any]:
        """Counts with their denominators, for JSON."""
        shares = ("coverage", "overlap", "conflict")
        return {
            "tokens": {name: asdict(getattr(self.tokens, name)) for name in (*shares, "labeled")},
            "together": self.together.as_dict(),
            "types": {kind: score.as_dict() for kind, score in self.types.items()},
            "rules": {
                rule.name: {
                    "tokens": {name: asdict(getattr(rule, name)) for name in shares},
                    "together": self.of_rule(rule.name).as_dict(),
                    "types": {kind: score.as_dict() for kind, score in self.rules[rule.name].items()},
                }
                for rule in self.tokens.rules
            },
        }


def summarize_tokens(
    votes: np.ndarray,
    codes: np.ndarray,
    *,
    found: Sequence[Sequence[Sequence[Span]]],
    chosen: Sequence[Sequence[Span]],
    gold: Sequence[Gold | None],
    names: Sequence[str],
    classes: Sequence[str],
) -> TokenSummary:
    """What rules amount to on sentences whose tokens stand one after the other in votes (T, M) and weak codes (T,).

    found: the spans of each sentence, by rule. chosen: those of its weak tags. names: of the rules. classes: of codes.
    """
    by_rule = {name: _scores([spans[place] for spans in found], gold) for place, name in enumerate(names)}
    return TokenSummary(summarize(votes, codes, names=names, classes=classes), by_rule, _scores(chosen, gold))


def token_table(summary: TokenSummary) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of strings, for a terminal or a page; scores only where gold is known.

    A row a rule, a row for the weak tags, and one for each of their types.
    """
    headings = ["rule", "votes for", "coverage", "overlap", "conflict", "spans"]
    judged = any(score.gold or score.judged for score in summary.types.values())
    if judged:
        headings += ["precision", "recall", "F1"]

    def row(name: str, votes_for: Iterable[str], shares: Iterable[str], score: SpanScore) -> list[str]:
        scores = [str(score.precision), str(score.recall), str(score.f1)] if judged else []
        return [name, ", ".join(votes_for) or "-", *shares, f"{score.found:,}", *scores]

    def rates(of: RuleSummary | Summary) -> list[str]:
        return [f"{share.rate:.1%}" for share in (of.coverage, of.overlap, of.conflict)]

    tokens = summary.tokens
    rows = [row(rule.name, rule.polarity, rates(rule), summary.of_rule(rule.name)) for rule in tokens.rules]
    rows.append(row("together", tokens.labels, rates(tokens), summary.together))
    for kind, score in summary.types.items():
        tagged = Share(tokens.labels.get(kind, 0), tokens.coverage.of)
        rows.append(row("", [kind], [f"{tagged.rate:.1%}", "", ""], score))
    return headings, rows


def _scores(found: Sequence[Sequence[Span]], gold: Sequence[Gold | None]) -> Scores:
    """By type, in sorted order. found: the spans of each sentence."""
    tally: dict[str, Counter[str]] = defaultdict(Counter)
    for spans, truth in zip(found, gold, strict=True):
        for span in spans:
            if span.type != OUTSIDE:
                judged = truth is not None and None not in truth.tags[span.start : span.end]
                right = truth is not None and span in truth.spans
                tally[span.type].update(found=1, judged=judged, right=right)
        for span in truth.spans if truth else ():
            tally[span.type].update(gold=1)
    return {kind: SpanScore(**tally[kind]) for kind in sorted(tally)}


def _total(scores: Iterable[SpanScore]) -> SpanScore:
    return sum(scores, SpanScore())


def _added(one: Scores, two: Scores) -> Scores:
    return {kind: one.get(kind, SpanScore()) + two.get(kind, SpanScore()) for kind in sorted({*one, *two})}
