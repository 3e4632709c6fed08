"""Combine the spans that rules find into the spans of the weak tags: by votes for spans, or for each token."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np

from drift.data.tags import OUTSIDE, Span, tags_of
from drift.weak.casting import ABSTAIN
from drift.weak.schema import Ties


def choose_spans(
    rule_spans: Sequence[Sequence[Span]], weights: Sequence[float], *, ties: Ties, rng: np.random.Generator
) -> list[Span]:
    """Choose spans of one sentence that do not overlap: first those with the most votes, then the longest.

    Spans tie if they overlap and have equal votes and lengths.

    rule_spans: the spans of each rule. weights: the weight of each rule.
    ties: "abstain" leaves all tokens of tied spans without a tag; "order" prefers the spans of the first rule, and of
    those the leftmost; "random" draws.
    """
    score: defaultdict[Span, float] = defaultdict(float)  # in the order of the rules
    for spans, weight in zip(rule_spans, weights, strict=True):
        for span in spans if weight else ():
            score[span] += weight
    candidates = list(score)
    if ties == "random":
        candidates = [candidates[index] for index in rng.permutation(len(candidates))]

    def rank(span: Span) -> tuple[float, int]:
        # Rounded to nine significant digits: weights of 0.1 + 0.2 and of 0.3 are a tie.
        return -float(f"{score[span]:.9g}"), span.start - span.end

    chosen: list[Span] = []
    taken: set[int] = set()
    for _, group in groupby(sorted(candidates, key=rank), key=rank):
        free = [span for span in group if taken.isdisjoint(range(span.start, span.end))]
        claims = Counter(token for span in free for token in range(span.start, span.end))
        for span in free:
            tokens = range(span.start, span.end)
            if ties == "abstain" and any(claims[token] > 1 for token in tokens):
                taken.update(tokens)  # otherwise a span with fewer votes would win the disputed tokens
            elif taken.isdisjoint(tokens):
                chosen.append(span)
                taken.update(tokens)
    return sorted(chosen)


def split_outside(spans: Iterable[Span]) -> list[Span]:
    """Split spans of type O into single tokens: tokens outside of entities do not belong together."""
    split: list[Span] = []
    for span in spans:
        whole = span.type != OUTSIDE
        split += [span] if whole else [Span(token, token + 1, OUTSIDE) for token in range(span.start, span.end)]
    return split


def vote_matrix(
    rule_spans: Sequence[Sequence[Sequence[Span]]], lengths: Sequence[int], classes: Sequence[str], n_rules: int
) -> tuple[np.ndarray, np.ndarray]:
    """Votes (T, M) of M rules on the T tokens of all sentences, and whether each says that an entity begins there.

    rule_spans: for each sentence, the spans of each rule. lengths: the number of tokens per sentence. classes: the
    types, by code.
    """
    codes = {name: code for code, name in enumerate(classes)}
    votes = np.full((sum(lengths), n_rules), ABSTAIN, dtype=np.int16)
    begins = np.zeros(votes.shape, dtype=bool)
    first = 0
    for by_rule, length in zip(rule_spans, lengths, strict=True):
        for rule, spans in enumerate(by_rule):
            for span in spans:
                votes[first + span.start : first + span.end, rule] = codes[span.type]
                begins[first + span.start, rule] = True
        first += length
    return votes, begins


def join_tokens(
    codes: np.ndarray,
    votes: np.ndarray,
    begins: np.ndarray,
    weights: np.ndarray,
    lengths: Sequence[int],
    classes: Sequence[str],
) -> list[list[Span]]:
    """Join tokens of the same type into spans, for each sentence.

    A token continues the entity before it unless most of the votes for its type say that an entity begins.

    codes: (T,), the type of each token, or `ABSTAIN`. Other parameters: as in `vote_matrix`.
    """
    agrees = votes == codes[:, None]
    for_inside, for_begin = (agrees & ~begins) @ weights, (agrees & begins) @ weights
    # Not >=: weights of 0.1 + 0.2 and of 0.3 are equal.
    continues = (for_inside > for_begin) | np.isclose(for_inside, for_begin, rtol=1e-9, atol=0)
    joined: list[list[Span]] = []
    first = 0
    for length in lengths:
        spans: list[Span] = []
        for token in range(length):
            code = codes[first + token]
            if code == ABSTAIN:
                continue
            entity_type = classes[code]
            before = spans[-1] if spans else None
            touches = before is not None and (before.end, before.type) == (token, entity_type)
            if before is not None and touches and continues[first + token] and entity_type != OUTSIDE:
                spans[-1] = Span(before.start, token + 1, entity_type)
            else:
                spans.append(Span(token, token + 1, entity_type))
        joined.append(spans)
        first += length
    return joined


def tags_from_spans(spans: Sequence[Span], length: int) -> list[str | None]:
    """The IOB2 tags of a sentence: O only where a span says so, None for tokens without a span."""
    tags: list[str | None] = list(tags_of((span for span in spans if span.type != OUTSIDE), length))
    covered = {token for span in spans for token in range(span.start, span.end)}
    return [tag if token in covered else None for token, tag in enumerate(tags)]
