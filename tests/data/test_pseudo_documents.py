"""Pseudo-documents: the words of a class, the distribution fitted to them, and the words of documents."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import vonmises_fisher

from drift.data.pseudo_documents import fitted, nearest_words, pseudo_documents, words_of_labels
from drift.data.word_counts import WordCounts
from drift.data.word_tokens import WordTokenizer
from drift.errors import DataError
from tests.runs.small import WORDS, small_table

TABLE = small_table(200)
TOKENIZER = WordTokenizer([*WORDS["money"], *WORDS["sport"]])
LABELS = np.array([row % 2 for row in range(200)])
EVERYTHING = np.ones(20, bool)


def counts(texts: list[str], words: list[str]) -> WordCounts:
    return WordCounts.of(texts, WordTokenizer(words))


def two_topics() -> np.ndarray:
    """Unit vectors for the twenty words, those of a topic around one axis."""
    noise = np.random.default_rng(0).standard_normal((20, 6)) * 0.1
    noise[:10, 0] += 1
    noise[10:, 1] += 1
    return noise / np.linalg.norm(noise, axis=1, keepdims=True)


def test_words_are_counted_and_unknown_ones_only_in_the_length() -> None:
    actual = counts(["a b a", "b new", ""], ["a", "b"])
    np.testing.assert_array_equal(actual.counts.toarray(), [[2, 1], [0, 1], [0, 0]])
    np.testing.assert_array_equal(actual.lengths, [3, 2, 1])  # a text is never empty
    np.testing.assert_array_equal(actual.totals(), [2, 2])


def test_words_without_a_letter_or_in_most_texts_indicate_no_class() -> None:
    actual = counts(["the goal", "the ,", "the 5", "the bank", "the fund"], ["the", "goal", ",", "5", "bank"])
    np.testing.assert_array_equal(actual.telling(), [False, True, False, False, True])


def test_labelled_texts_name_words_of_their_own_class() -> None:
    rare = [text.split()[0] + f" filler{row}" for row, text in enumerate(TABLE["body"])]
    actual = words_of_labels(WordCounts.of(rare, TOKENIZER), np.arange(200), LABELS, ["money", "sport"], 5)
    for words, topic in zip(actual, ("money", "sport"), strict=True):
        assert len(words) == 5
        assert {TOKENIZER.words[word] for word in words} <= set(WORDS[topic])


def test_a_class_without_typical_words_is_an_error() -> None:
    corpus = counts(["goal bank", "goal bank", *["fund"] * 20], ["goal", "bank", "fund"])  # and fund is too common
    with pytest.raises(DataError, match=r"'money' have no words of their own; give method.seed_words"):
        words_of_labels(corpus, np.array([0, 2, 1]), np.array([0, 0, 1]), ["money", "sport"], 3)


def test_near_words_are_added_until_two_classes_would_share_one() -> None:
    angles = np.radians([0, 10, 20, 90, 80, 50])
    vectors = np.stack([np.cos(angles), np.sin(angles)], 1)
    first, second = nearest_words(vectors, [np.array([0]), np.array([3])], np.ones(6, bool))
    assert (first.tolist(), second.tolist()) == ([0, 1, 2], [3, 4, 5])  # the fourth words would be 5 and 2
    allowed = np.array([True, False, True, True, True, False])
    first, second = nearest_words(vectors, [np.array([0]), np.array([3])], allowed)
    assert (first.tolist(), second.tolist()) == ([0, 2], [3, 4])


def test_all_seed_words_are_kept_and_come_first() -> None:
    first, second = nearest_words(two_topics(), [np.arange(4), np.array([10, 11])], np.zeros(len(EVERYTHING), bool))
    assert (first.tolist(), second.tolist()) == ([0, 1, 2, 3], [10, 11])
    first, second = nearest_words(two_topics(), [np.arange(4), np.array([10, 11])], EVERYTHING)
    assert (first[:4].tolist(), second[:2].tolist()) == ([0, 1, 2, 3], [10, 11])
    assert not set(first) & set(second)


@pytest.mark.parametrize(("dimensions", "kappa"), [(3, 20.0), (100, 130.0)])
def test_a_distribution_is_recovered_from_its_samples(dimensions: int, kappa: float) -> None:
    mean = np.eye(dimensions)[0]
    points = vonmises_fisher(mean, kappa).rvs(5000, random_state=np.random.default_rng(0))
    actual, concentration = fitted(points)
    assert actual @ mean > 0.999
    assert concentration == pytest.approx(kappa, rel=0.05)


def test_a_single_word_is_a_point() -> None:
    mean, concentration = fitted(np.array([[0.6, 0.8]]))
    np.testing.assert_allclose(mean, [0.6, 0.8])
    assert np.isfinite(concentration)
    assert concentration > 1e5


def written(background: float, documents: int = 250, seed: int = 0) -> list[str]:
    corpus = WordCounts.of(TABLE["body"], TOKENIZER)
    return list(
        pseudo_documents(
            corpus,
            two_topics(),
            np.arange(3),
            documents=documents,
            nearest=10,
            background=background,
            seed=np.random.SeedSequence(seed),
        )
    )


def test_without_background_all_words_are_near_the_class() -> None:
    actual = written(0.0)
    assert len(actual) == 250
    assert set(" ".join(actual).split()) <= set(WORDS["money"])
    assert {len(text.split()) for text in actual} == {8}  # as the texts of the corpus
    assert actual == written(0.0)
    assert actual != written(0.0, seed=1)


def test_background_is_the_share_of_words_drawn_by_their_frequency() -> None:
    words = Counter(" ".join(written(0.4, documents=2000)).split())
    others = np.array([words[word] for word in WORDS["sport"]])  # only the background has these
    frequency = np.array([" ".join(TABLE["body"]).split().count(word) for word in WORDS["sport"]])
    expected = 0.4 * frequency / (200 * 8) * words.total()
    np.testing.assert_allclose(others, expected, rtol=0.25)
    assert others.sum() == pytest.approx(expected.sum(), rel=0.05)
