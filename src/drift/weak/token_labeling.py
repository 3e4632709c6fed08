"""Weak tags for sentences, in memory or from a file: rules find spans, spans vote, and votes become tags."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drift.data.sentences import Sentences, read_sentences
from drift.data.tags import OUTSIDE
from drift.errors import ConfigError, DataError
from drift.weak.arguments import SENTENCE_SUFFIXES, as_list, as_rules, is_path
from drift.weak.python_rule import PythonRule
from drift.weak.schema import Ties
from drift.weak.token_diagnostics import Gold, TokenSummary, summarize_tokens
from drift.weak.token_matching import Sentence
from drift.weak.token_rules import TokenRuleSet
from drift.weak.token_schema import TokenRule
from drift.weak.token_votes import choose_spans, join_tokens, split_outside, tags_from_spans, vote_matrix
from drift.weak.votes import check_ties, generator, majority

Tags = Sequence[str | None]


@dataclass(frozen=True)
class TokenWeakLabels:
    """The weak tags of sentences.

    tags: one list of IOB2 tags per sentence. None, which is not `O`, where no rule votes or the votes tie.
    """

    tags: list[list[str | None]]
    summary: TokenSummary


def label_tokens(
    sentences: Any,
    rules: TokenRuleSet | Sequence[Mapping[str, Any] | TokenRule | PythonRule] | str | os.PathLike[str],
    *,
    tokens: str | None = None,
    gold: str | Sequence[Tags | None] | None = None,
    texts: Sequence[str] | None = None,
    ties: Ties | None = None,
    seed: int | np.random.Generator = 0,
    first_row: int = 0,
    encoding: str = "utf-8",
) -> TokenWeakLabels:
    """Tag the tokens of sentences by rules. The setting `votes` of the rules says how votes are counted.

    "span": of spans that overlap, the one with the most votes wins, then the longest.
    "token": each token gets the type with the most votes. It continues the entity before it if that has the same type,
    unless most of the votes for the type say that an entity begins.

    sentences: a list of sentences, each a list of tokens; or the path of a file (CoNLL columns, or a table of tokens or
    texts; see `drift.data.sentences.read_sentences`), a DataFrame or a Dataset. A string is always a path. Sentences
    of a file without tokens are left out.
    rules: a TokenRuleSet, a list of rules, or the path of a rule file.
    tokens: the column with the tokens or texts of a file or table; default: an obvious one.
    gold: gold tags in IOB2, used only to score the rules; None for a sentence or token without one. For a file or
    table, the column that holds them; default: an obvious one, "" for none.
    texts: the texts that the sentences were split from, for patterns; default: the tokens joined by spaces.
    ties: "abstain", "random" or "order"; default: the policy of the rules.
    seed: a seed or a NumPy generator for ties broken at random. A generator keeps its state between calls, so that
    sentences labelled in parts get the same tags as all at once.
    first_row: the number of the first sentence in error messages, if the sentences are part of a longer list.
    encoding: the encoding of a text file.
    """
    rules = as_rules(rules, TokenRuleSet)
    if _is_table(sentences):
        if texts is not None:
            raise ConfigError("texts goes with a list of sentences; a file or table has its own texts")
        column = gold if gold is None or isinstance(gold, str) else ""
        table = read_sentences(sentences, tokens=tokens, label=column, weak="", encoding=encoding)
        sentences, texts = table.tokens, table.texts
        gold = gold_tags(table) if gold is None or isinstance(gold, str) else gold
    checked = _sentences(sentences, texts, first_row)
    truth = _gold(checked, gold)
    rule_spans = [[split_outside(spans) for spans in rules.find(sentence)] for sentence in checked]
    lengths = [len(sentence.tokens) for sentence in checked]
    classes = (*rules.types, OUTSIDE)
    votes, begins = vote_matrix(rule_spans, lengths, classes, len(rules.rules))
    rng = generator(seed)
    ties = rules.ties if ties is None else ties
    check_ties(ties)
    if rules.votes == "token":
        codes = majority(votes, len(classes), ties=ties, seed=rng, weights=rules.weights)
        weak_spans = join_tokens(codes, votes, begins, rules.weights, lengths, classes)
    else:
        weak_spans = [choose_spans(spans, rules.weights.tolist(), ties=ties, rng=rng) for spans in rule_spans]
        codes = vote_matrix([[spans] for spans in weak_spans], lengths, classes, 1)[0][:, 0]
    tags = [tags_from_spans(spans, length) for spans, length in zip(weak_spans, lengths, strict=True)]
    summary = summarize_tokens(
        votes, codes, rule_spans=rule_spans, weak_spans=weak_spans, gold=truth, names=rules.names, classes=classes
    )
    return TokenWeakLabels(tags, summary)


def gold_tags(sentences: Sentences) -> Sequence[Tags | None] | None:
    """The gold tags of sentences, if rules can be scored against them: plain names (scheme IO) have no spans."""
    return sentences.labels if sentences.scheme == "IOB2" else None


def _is_table(sentences: Any) -> bool:
    in_memory = hasattr(sentences, "columns") or hasattr(sentences, "column_names")  # a DataFrame, a Dataset
    return in_memory or is_path(sentences, "sentences", SENTENCE_SUFFIXES)


def _sentences(sentences: Any, texts: Any, first_row: int) -> list[Sentence]:
    """The sentences, checked and numbered."""
    sentences = as_list(sentences, "sentences")
    texts = [None] * len(sentences) if texts is None else as_list(texts, "texts")
    if len(texts) != len(sentences):
        raise DataError(f"{len(texts)} texts for {len(sentences)} sentences; give one per sentence, or none at all")
    checked = []
    for number, (words, text) in enumerate(zip(sentences, texts, strict=True), first_row + 1):
        tokens = as_list(words, f"sentence {number}")
        if other := [token for token in tokens if not isinstance(token, str)]:
            raise DataError(f"sentence {number}: the token {other[0]!r} is not a string; give tokens as strings")
        if not isinstance(text, str | None):
            raise DataError(f"sentence {number}: the text is {text!r}, a {type(text).__name__}; give texts as strings")
        checked.append(Sentence(tokens, text, number))
    return checked


def _gold(sentences: Sequence[Sentence], gold: Any) -> list[Gold | None]:
    """The gold tags of each sentence, checked; None for a sentence without."""
    gold = [None] * len(sentences) if gold is None else as_list(gold, "gold")
    if len(gold) != len(sentences):
        raise DataError(
            f"gold tags for {len(gold)} sentences, not for {len(sentences)}; give None for a sentence without"
        )
    return [
        None if tags is None else Gold(tags, length=len(sentence.tokens), number=sentence.number)
        for sentence, tags in zip(sentences, gold, strict=True)
    ]
