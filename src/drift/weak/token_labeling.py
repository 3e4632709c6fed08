"""Weak tags for sentences in memory: rules find spans, spans vote, and votes become tags."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from drift.data.tags import OUTSIDE, Span, tags_of
from drift.errors import ConfigError, DataError
from drift.weak.casting import ABSTAIN
from drift.weak.given import as_list, as_rules
from drift.weak.python_rule import PythonRule
from drift.weak.schema import Ties
from drift.weak.token_diagnostics import Gold, TokenSummary, summarize_tokens
from drift.weak.token_matching import Sentence
from drift.weak.token_rules import TokenRuleSet
from drift.weak.token_schema import TokenRule
from drift.weak.votes import TIES, generator, majority

Tags = Sequence[str | None]


@dataclass(frozen=True)
class TokenWeakLabels:
    """tags: IOB2, a list a sentence; None where no rule votes or the votes tie, which is not `O`."""

    tags: list[list[str | None]]
    summary: TokenSummary


def label_tokens(
    sentences: Sequence[Sequence[str]],
    rules: TokenRuleSet | Sequence[Mapping[str, Any] | TokenRule | PythonRule] | str | os.PathLike[str],
    *,
    gold: Sequence[Tags | None] | None = None,
    texts: Sequence[str] | None = None,
    ties: Ties | None = None,
    seed: int | np.random.Generator = 0,
    first_row: int = 0,
) -> TokenWeakLabels:
    """Tag sentences by what rules find in them; how their votes are counted is for the rules to say (`votes`).

    "span": of spans that overlap, the one with the most votes wins, of those the longest.
    "token": each token gets the type with the most votes. It goes on with the entity before it if that has its type,
    unless most of the votes for the type say that an entity begins.

    rules: a set of them, a list of what one is made of, or the path of a file. gold: right tags in IOB2, measured
    against only; None where they are not known, of a sentence or of a token. texts: what the sentences were cut from,
    for patterns; if None, the tokens with spaces between them. ties: instead of what the rules say. seed: of ties
    broken at random; a generator goes on from call to call, so that sentences in pieces are labelled as the whole would
    be. first_row: the number of the first sentence, for messages, where they are a part of more.
    """
    rules = as_rules(rules, TokenRuleSet)
    cut = _sentences(sentences, texts, first_row)
    truth = _gold(cut, gold)
    found = [[_outside_token_by_token(spans) for spans in rules.find(sentence)] for sentence in cut]
    lengths = [len(sentence.tokens) for sentence in cut]
    classes = (*rules.types, OUTSIDE)
    votes, begins = _matrix(found, lengths, classes, len(rules.rules))
    rng = generator(seed)
    ties = rules.ties if ties is None else ties
    if ties not in TIES:
        raise ConfigError(f"ties={ties!r} is not one of {', '.join(TIES)}")
    if rules.votes == "token":
        codes = majority(votes, len(classes), ties=ties, seed=rng, weights=rules.weights)
        chosen = _joined(codes, votes, begins, rules.weights, lengths, classes)
    else:
        chosen = [choose_spans(spans, rules.weights.tolist(), ties=ties, rng=rng) for spans in found]
        codes = _matrix([[spans] for spans in chosen], lengths, classes, 1)[0][:, 0]
    tags = [_tags(spans, length) for spans, length in zip(chosen, lengths, strict=True)]
    summary = summarize_tokens(votes, codes, found=found, chosen=chosen, gold=truth, names=rules.names, classes=classes)
    return TokenWeakLabels(tags, summary)


def choose_spans(
    found: Sequence[Sequence[Span]], weights: Sequence[float], *, ties: Ties, rng: np.random.Generator
) -> list[Span]:
    """Spans of one sentence that do not overlap: those with the most votes before others, then the longest.

    found: the spans of each rule. A tie is between spans that overlap, with as many votes and tokens: "abstain" leaves
    all their tokens without a tag, "order" prefers what the first rule found, and of that the leftmost, "random" draws.
    """
    score: defaultdict[Span, float] = defaultdict(float)  # in the order of the rules
    for spans, weight in zip(found, weights, strict=True):
        for span in spans if weight else ():
            score[span] += weight
    candidates = list(score)
    if ties == "random":
        candidates = [candidates[place] for place in rng.permutation(len(candidates))]

    def rank(span: Span) -> tuple[float, int]:
        # Nine digits of it, whatever its size: 0.1 + 0.2 and 0.3 are the same weight.
        return -float(f"{score[span]:.9g}"), span.start - span.end

    chosen: list[Span] = []
    taken: set[int] = set()
    for _, group in groupby(sorted(candidates, key=rank), key=rank):
        free = [span for span in group if taken.isdisjoint(range(span.start, span.end))]
        claims = Counter(place for span in free for place in range(span.start, span.end))
        for span in free:
            places = range(span.start, span.end)
            if ties == "abstain" and any(claims[place] > 1 for place in places):
                taken.update(places)  # else a span with fewer votes would get what is disputed
            elif taken.isdisjoint(places):
                chosen.append(span)
                taken.update(places)
    return sorted(chosen)


def _sentences(given: Any, given_texts: Any, first_row: int) -> list[Sentence]:
    sentences = as_list(given, "sentences")
    texts = [None] * len(sentences) if given_texts is None else as_list(given_texts, "texts")
    if len(texts) != len(sentences):
        raise DataError(f"{len(texts)} texts for {len(sentences)} sentences; give one each, or none")
    made = []
    for number, (words, text) in enumerate(zip(sentences, texts, strict=True), first_row + 1):
        tokens = as_list(words, f"sentence {number}")
        if other := [token for token in tokens if not isinstance(token, str)]:
            raise DataError(f"sentence {number}: the token {other[0]!r} is no string; give tokens as strings")
        if not isinstance(text, str | None):
            raise DataError(f"sentence {number}: the text is {text!r}, a {type(text).__name__}; give texts as strings")
        made.append(Sentence(tokens, text, number))
    return made


def _gold(sentences: Sequence[Sentence], given: Any) -> list[Gold | None]:
    gold = [None] * len(sentences) if given is None else as_list(given, "gold")
    if len(gold) != len(sentences):
        raise DataError(f"gold tags for {len(gold)} sentences, here are {len(sentences)}; None where there are none")
    return [
        None if tags is None else Gold(tags, length=len(sentence.tokens), number=sentence.number)
        for sentence, tags in zip(sentences, gold, strict=True)
    ]


def _outside_token_by_token(spans: Iterable[Span]) -> list[Span]:
    """A vote for O is one for each token by itself: that they are outside does not make them belong together."""
    split: list[Span] = []
    for span in spans:
        whole = span.type != OUTSIDE
        split += [span] if whole else [Span(place, place + 1, OUTSIDE) for place in range(span.start, span.end)]
    return split


def _matrix(
    found: Sequence[Sequence[Sequence[Span]]], lengths: Sequence[int], classes: Sequence[str], n_rules: int
) -> tuple[np.ndarray, np.ndarray]:
    """Votes (tokens of all sentences, rules), and whether they say that an entity begins there."""
    codes = {name: code for code, name in enumerate(classes)}
    votes = np.full((sum(lengths), n_rules), ABSTAIN, dtype=np.int16)
    begins = np.zeros(votes.shape, dtype=bool)
    first = 0
    for by_rule, length in zip(found, lengths, strict=True):
        for rule, spans in enumerate(by_rule):
            for span in spans:
                votes[first + span.start : first + span.end, rule] = codes[span.type]
                begins[first + span.start, rule] = True
        first += length
    return votes, begins


def _joined(
    codes: np.ndarray,
    votes: np.ndarray,
    begins: np.ndarray,
    weights: np.ndarray,
    lengths: Sequence[int],
    classes: Sequence[str],
) -> list[list[Span]]:
    """Spans of tokens that were given a type each."""
    for_it = votes == codes[:, None]
    on, anew = (for_it & ~begins) @ weights, (for_it & begins) @ weights
    goes_on = (on > anew) | np.isclose(on, anew, rtol=1e-9, atol=0)  # 0.1 + 0.2 and 0.3 are the same weight
    joined: list[list[Span]] = []
    first = 0
    for length in lengths:
        spans: list[Span] = []
        for place in range(length):
            code = codes[first + place]
            if code == ABSTAIN:
                continue
            kind = classes[code]
            before = spans[-1] if spans else None
            if before and (before.end, before.type) == (place, kind) and goes_on[first + place] and kind != OUTSIDE:
                spans[-1] = Span(before.start, place + 1, kind)
            else:
                spans.append(Span(place, place + 1, kind))
        joined.append(spans)
        first += length
    return joined


def _tags(spans: Sequence[Span], length: int) -> list[str | None]:
    """Tags of the spans, O where they say so, and None elsewhere."""
    tags: list[str | None] = list(tags_of((span for span in spans if span.type != OUTSIDE), length))
    said = {place for span in spans for place in range(span.start, span.end)}
    return [tag if place in said else None for place, tag in enumerate(tags)]
