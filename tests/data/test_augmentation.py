"""Word replacement by TF-IDF against a simple reference, and the settings of augmentation."""

import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.data.augmentation import WORD, AugmentationSettings, _chances, replaced_words
from drift.errors import ConfigError

TEXTS = [
    "The bank lent money, and the bank failed.",
    "the team won; the coach smiled",
    "Profit!",
    "",
    "...",
    "the money of the team:  the money",
    "a goal is a goal is a goal",
]


def numbered(texts: list[str]) -> tuple[np.ndarray, np.ndarray, list[str]]:
    words = [WORD.findall(text) for text in texts]
    vocabulary = list(dict.fromkeys(word for own in words for word in own))
    flat = np.array([vocabulary.index(word) for own in words for word in own])
    return flat, np.array([len(own) for own in words]), vocabulary


def reference(texts: list[str]) -> tuple[list[list[float]], dict[str, float]]:
    """Computed with dictionaries: the chance of each word to be replaced, and of each word to be a replacement."""
    split = [WORD.findall(text) for text in texts]
    idf = {w: math.log(len(texts) / sum(w in own for own in split)) for own in split for w in own}
    importance: dict[str, float] = defaultdict(float)
    chances = []
    for own in split:
        score = {word: count / len(own) * idf[word] for word, count in Counter(own).items()}
        for word, value in score.items():
            importance[word] += value
        below = [max(score.values()) - score[word] for word in own]
        chances.append([len(own) * value / sum(below) if sum(below) else 0.0 for value in below])
    most = max(importance.values())
    total = sum(most - value for value in importance.values())
    return chances, {word: (most - value) / total for word, value in importance.items()}


def test_chances_are_those_of_the_definition() -> None:
    words, sizes, vocabulary = numbered(TEXTS)
    chances, unimportance = _chances(words, sizes, len(vocabulary))
    expected, of_words = reference(TEXTS)
    assert np.allclose(chances, [chance for own in expected for chance in own])
    assert np.allclose(unimportance, [of_words[word] for word in vocabulary])


def test_the_share_of_replaced_words_and_their_replacements() -> None:
    """Frequencies against the chances, for one text repeated among others (alone its idf would be 0)."""
    texts = ["alpha beta gamma delta"] * 3000 + ["alpha beta gamma"] * 500 + ["alpha beta"] * 500 + ["alpha"] * 500
    words, sizes, vocabulary = numbered(texts)
    chances, unimportance = _chances(words, sizes, len(vocabulary))
    views = replaced_words(texts, 0.3, seed=0)
    split = [view.split() for view in views[:3000]]
    for place in range(4):
        drawn = [own[place] for own in split]
        itself = unimportance[place]  # a word may be replaced by itself
        changed = np.mean([word != vocabulary[place] for word in drawn])
        assert abs(changed - min(1, 0.3 * chances[place]) * (1 - itself)) < 0.03


@given(st.lists(st.text(max_size=30), max_size=8), st.integers(0, 5))
def test_the_characters_between_words_stay(texts: list[str], seed: int) -> None:
    views = replaced_words(texts, 1.0, seed=seed)
    assert len(views) == len(texts)
    vocabulary = {word for text in texts for word in WORD.findall(text)}
    for text, view in zip(texts, views, strict=True):
        assert WORD.split(view)[::2] == WORD.split(text)[::2]
        assert set(WORD.findall(view)) <= vocabulary


def test_texts_without_replaceable_words_stay_unchanged() -> None:
    texts = [*TEXTS, "alone", "twice twice"]
    for seed in range(20):
        views = replaced_words(texts, 1.0, seed=seed)
        assert [views[place] for place in (2, 3, 4, 7, 8)] == ["Profit!", "", "...", "alone", "twice twice"]
    assert replaced_words(["only one text here"], 1.0, seed=0) == ["only one text here"]
    assert replaced_words([], 1.0, seed=0) == []


def test_the_most_important_word_of_a_text_stays() -> None:
    for seed in range(20):
        assert WORD.findall(replaced_words(TEXTS, 1.0, seed=seed)[0])[1] == "bank"


def test_the_seed_determines_the_words() -> None:
    assert replaced_words(TEXTS, 0.5, seed=(3, 0)) == replaced_words(TEXTS, 0.5, seed=(3, 0))
    assert replaced_words(TEXTS, 0.5, seed=(3, 0)) != replaced_words(TEXTS, 0.5, seed=(3, 1))


@pytest.mark.parametrize(
    ("values", "mode"),
    [
        ({}, "tfidf"),
        ({"column": "german"}, "column"),
        ({"column": ["german", "russian"], "augment": "column"}, "column"),
        ({"translation": ["en-de", "de-en"]}, "translate"),
    ],
)
def test_the_given_settings_determine_the_mode(values: dict[str, Any], mode: str) -> None:
    settings = AugmentationSettings.read(values)
    assert settings.augment == mode
    assert AugmentationSettings.read(settings.model_dump(mode="json")) == settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"augment": "column"}, "column is not given"),
        ({"augment": "translate"}, "translation is not given"),
        ({"augment": "tfidf", "column": "german"}, "set augment to column"),
        ({"column": "german", "translation": ["a", "b"]}, "set augment to translate"),
        ({"translation": ["one"]}, "translation"),
        ({"replace": 0}, "replace=0"),
        ({"views": 0}, "views=0"),
        ({"colum": "german"}, "did you mean 'column'"),
    ],
)
def test_contradictory_settings_are_refused_in_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        AugmentationSettings.read(settings, "method")
    assert "\n" not in str(caught.value)
