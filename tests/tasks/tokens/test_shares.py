"""Shares of tagged words, and the warning about a tagger that tags nearly all of them."""

from collections.abc import Sequence

import numpy as np
import pytest

from drift.data.sentences import Sentences
from drift.tasks.tokens.data import TokenData
from drift.tasks.tokens.record import TaggedWords
from drift.tasks.tokens.shares import WATCHED, faults, tagged_words

CLASSES = ["O", "B-LOC", "I-LOC"]


def data_of(gold: list[int], weak: list[int] | None) -> TokenData:
    """Sentences of two words."""
    tokens = [["a", "b"]] * (len(gold) // 2)
    none: list[None] = [None] * len(tokens)
    sentences = Sentences("train", tokens, none, none, "IOB2")  # type: ignore[arg-type]
    codes = None if weak is None else np.array(weak)
    return TokenData(CLASSES, True, sentences, np.array(gold), codes, len(gold), None, None, [])


def tag_all(sentences: Sequence[Sequence[str]]) -> list[list[str]]:
    assert len(sentences) <= WATCHED
    return [["B-LOC"] * len(words) for words in sentences]


def test_words_without_a_weak_tag_count_as_outside_and_sentences_without_gold_tags_do_not_count() -> None:
    weak = tagged_words(data_of([-1] * 4, [1, -1, -1, 0]), tag_all)
    assert (weak.labels, weak.model) == (0.25, 1.0)
    gold = tagged_words(data_of([1, 0, -1, -1], None), tag_all)
    assert (gold.labels, gold.model) == (0.5, 1.0)


def test_only_the_first_sentences_are_predicted() -> None:
    codes = [0] * 2 * (WATCHED + 1)
    assert tagged_words(data_of(codes, codes), tag_all).model == 1


@pytest.mark.parametrize(
    ("labels", "model", "warned"), [(0.1, 0.9, True), (0.1, 0.45, False), (0.8, 0.95, False), (0.3, 0.55, False)]
)
def test_a_tagger_that_tags_most_words_is_suspect_unless_its_labels_do(
    labels: float, model: float, warned: bool
) -> None:
    assert bool(faults(TaggedWords(labels=labels, model=model))) == warned
