"""Summaries of rules for tokens: votes per token, and spans per rule and type, scored strictly against gold tags."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from drift.data.tags import OUTSIDE, Span, spans_of
from drift.errors import LabelError
from drift.weak.arguments import as_list
from drift.weak.diagnostics import RuleSummary, Share, Summary, summarize


@dataclass(frozen=True)
class SpanScore:
    """Counts of spans. A span is right if its start, end and type all are."""

    found: int = 0
    judged: int = 0  # spans found on tokens that all have a gold tag
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
        """The number of spans found, and precision, recall and F1 as counts, for JSON."""
        shares = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return {"found": self.found, **{name: asdict(share) for name, share in shares.items()}}

    def __add__(self, other: "SpanScore") -> "SpanScore":
        return SpanScore(
            self.found + other.found, self.judged + other.judged, self.gold + other.gold, self.right + other.right
        )


Scores = dict[str, SpanScore]  # by type


class Gold:
    """The gold tags of a sentence in IOB2, None where unknown, and the entities that they mark.

    tags: one per token. length: the number of tokens. number: the number of the sentence, for error messages.
    """

    def __init__(self, tags: Any, *, length: int, number: int) -> None:
        self.tags = as_list(tags, f"sentence {number}: gold tags")
        if len(self.tags) != length:
            raise LabelError(f"sentence {number}: {len(self.tags)} gold tags for {length} tokens; give one per token")
        if other := [tag for tag in self.tags if not isinstance(tag, str | None)]:
            raise LabelError(f"sentence {number}: gold tag {other[0]!r} is not a string; give tags by name, or None")
        try:
            self.spans = frozenset(spans_of(self.tags))
        except LabelError as error:
            raise LabelError(f"sentence {number}: gold tag {error}") from error


@dataclass(frozen=True)
class TokenSummary:
    """The summary of a rule set for tokens. The summaries of parts add up to the summary of the whole."""

    tokens: Summary  # coverage, overlap and conflict are shares of all tokens
    rules: dict[str, Scores]  # the spans of each rule
    types: Scores  # the spans of the weak tags

    @property
    def together(self) -> SpanScore:
        """The score of the weak tags over all types."""
        return _total(self.types.values())

    def of_rule(self, name: str) -> SpanScore:
        """The score of one rule. Gold spans of types that the rule never finds are not counted as missed."""
        return _total(score for score in self.rules[name].values() if score.found)

    def __add__(self, other: "TokenSummary") -> "TokenSummary":
        rules = {name: _added(scores, other.rules[name]) for name, scores in self.rules.items()}
        return TokenSummary(self.tokens + other.tokens, rules, _added(self.types, other.types))

    def as_dict(self) -> dict[str, Any]:
        """All shares as counts with their denominators, for JSON."""
        shares = ("coverage", "overlap", "conflict")
        return {
            "tokens": {name: asdict(getattr(self.tokens, name)) for name in (*shares, "labeled")},
            "together": self.together.as_dict(),
            "types": {entity_type: score.as_dict() for entity_type, score in self.types.items()},
            "rules": {
                rule.name: {
                    "tokens": {name: asdict(getattr(rule, name)) for name in shares},
                    "together": self.of_rule(rule.name).as_dict(),
                    "types": {entity_type: score.as_dict() for entity_type, score in self.rules[rule.name].items()},
                }
                for rule in self.tokens.rules
            },
        }


def summarize_tokens(
    votes: np.ndarray,
    codes: np.ndarray,
    *,
    rule_spans: Sequence[Sequence[Sequence[Span]]],
    weak_spans: Sequence[Sequence[Span]],
    gold: Sequence[Gold | None],
    names: Sequence[str],
    classes: Sequence[str],
) -> TokenSummary:
    """Summarize the votes of rules on the T tokens of all sentences, and the weak tags made from them.

    votes: (T, M). codes: (T,), the weak type of each token. rule_spans: for each sentence, the spans of each rule.
    weak_spans: for each sentence, the spans of its weak tags. gold: for each sentence, its gold tags or None.
    names: the names of the rules. classes: the types, by code.
    """
    by_rule = {name: _scores([spans[rule] for spans in rule_spans], gold) for rule, name in enumerate(names)}
    return TokenSummary(summarize(votes, codes, names=names, classes=classes), by_rule, _scores(weak_spans, gold))


def token_table(summary: TokenSummary) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of strings, for a terminal or a page. The scores are there only with gold tags.

    One row per rule, one for the weak tags, and one for each type of the weak tags.
    """
    headings = ["rule", "votes for", "coverage", "overlap", "conflict", "spans"]
    judged = any(score.gold or score.judged for score in summary.types.values())
    if judged:
        headings += ["precision", "recall", "F1"]

    def row(name: str, votes_for: Iterable[str], shares: Iterable[str], score: SpanScore) -> list[str]:
        scores = [str(score.precision), str(score.recall), str(score.f1)] if judged else []
        return [name, ", ".join(votes_for) or "-", *shares, f"{score.found:,}", *scores]

    def rates(part: RuleSummary | Summary) -> list[str]:
        return [f"{share.rate:.1%}" for share in (part.coverage, part.overlap, part.conflict)]

    tokens = summary.tokens
    rows = [row(rule.name, rule.polarity, rates(rule), summary.of_rule(rule.name)) for rule in tokens.rules]
    rows.append(row("together", tokens.labels, rates(tokens), summary.together))
    for entity_type, score in summary.types.items():
        tagged = Share(tokens.labels.get(entity_type, 0), tokens.coverage.of)
        rows.append(row("", [entity_type], [f"{tagged.rate:.1%}", "", ""], score))
    return headings, rows


def _scores(sentence_spans: Sequence[Sequence[Span]], gold: Sequence[Gold | None]) -> Scores:
    """The scores by type, in sorted order. sentence_spans: the spans of each sentence."""
    tally: dict[str, Counter[str]] = defaultdict(Counter)
    for spans, truth in zip(sentence_spans, gold, strict=True):
        for span in spans:
            if span.type != OUTSIDE:
                judged = truth is not None and None not in truth.tags[span.start : span.end]
                right = truth is not None and span in truth.spans
                tally[span.type].update(found=1, judged=judged, right=right)
        for span in truth.spans if truth else ():
            tally[span.type].update(gold=1)
    return {entity_type: SpanScore(**tally[entity_type]) for entity_type in sorted(tally)}


def _total(scores: Iterable[SpanScore]) -> SpanScore:
    return sum(scores, SpanScore())


def _added(one: Scores, two: Scores) -> Scores:
    return {name: one.get(name, SpanScore()) + two.get(name, SpanScore()) for name in sorted({*one, *two})}
