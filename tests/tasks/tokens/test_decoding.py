"""Constrained decoding against all valid sequences of tags."""

from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from drift.data.tags import faults
from drift.tasks.tokens.decoding import decoded, restart_odds

TAGS = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]


def score(log_p: np.ndarray, codes: Sequence[int], tags: list[str], restart: float) -> float:
    """The sum of log-probabilities, and of the log-odds of every entity right after another one of its type."""
    names = [tags[code] for code in codes]
    again = sum(after[0] == "B" and before[1:] == after[1:] for before, after in pairwise(names))
    return float(sum(log_p[word, code] for word, code in enumerate(codes)) + restart * again)


def best_of_all(log_p: np.ndarray, tags: list[str], restart: float) -> float:
    """The highest score of a valid sequence, by trying every one."""
    valid = (
        codes
        for codes in product(range(len(tags)), repeat=len(log_p))
        if not faults([tags[code] for code in codes], "IOB2")
    )
    return max(score(log_p, codes, tags, restart) for codes in valid)


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=5),
    st.integers(0, 10**6),
    st.permutations(TAGS),
    st.sampled_from([0.0, -0.5, -4.0]),
)
def test_tags_are_valid_and_nothing_valid_is_more_likely(
    sizes: list[int], seed: int, tags: list[str], restart: float
) -> None:
    probabilities = np.random.default_rng(seed).dirichlet(np.ones(5), sum(sizes))
    codes = decoded(probabilities, np.array(sizes), tags, restart)
    bounds = np.cumsum(sizes)[:-1]
    for rows, sentence in zip(np.split(probabilities, bounds), np.split(codes, bounds), strict=True):
        if len(rows):
            assert not faults([tags[code] for code in sentence], "IOB2")
            log_p = np.log(rows)
            np.testing.assert_allclose(score(log_p, sentence, tags, restart), best_of_all(log_p, tags, restart))


def test_valid_answers_are_left_as_they_are() -> None:
    codes = np.array([1, 2, 2, 0, 3, 4, 1])
    np.testing.assert_array_equal(decoded(np.eye(5)[codes], np.array([4, 3]), TAGS), codes)


def test_probabilities_of_zero_do_no_harm() -> None:
    codes = decoded(np.eye(5)[[0, 2, 2]], np.array([3]), TAGS)
    assert not faults([TAGS[code] for code in codes], "IOB2")


def test_the_odds_of_two_entities_in_a_row_are_counted() -> None:
    codes = np.array([1, 2, 1, 0, 3, 1, -1, 1, 1, 3])  # LOC goes on once and begins again once within a sentence
    sizes = np.array([5, 3, 0, 2])
    assert restart_odds(codes, sizes, TAGS) == 0.0  # (1 + 1) of (1 + 1)
    assert restart_odds(np.array([1, 2, 2, 2]), np.array([4]), TAGS) == np.log(1 / 4)
    assert restart_odds(np.array([-1, -1]), np.array([2]), TAGS) == 0.0


def test_names_in_a_row_stay_one_entity_if_that_is_usual() -> None:
    unsure = np.array([[0.0, 0.9, 0.1, 0.0, 0.0], [0.0, 0.6, 0.4, 0.0, 0.0]])
    assert decoded(unsure, np.array([2]), TAGS).tolist() == [1, 1]
    assert decoded(unsure, np.array([2]), TAGS, -2.0).tolist() == [1, 2]
    assert decoded(unsure, np.array([1, 1]), TAGS, -2.0).tolist() == [1, 1]


SLOTS = ["O", "Dish", "Item", "I-names"]  # plain names, whatever they begin with


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=5),
    st.integers(0, 10**6),
    st.permutations(SLOTS),
    st.sampled_from([0.0, -0.5, -4.0]),
)
def test_no_tags_of_slots_are_more_likely(sizes: list[int], seed: int, tags: list[str], restart: float) -> None:
    def score_of(codes: Sequence[int]) -> float:
        pairs = pairwise(tags[code] for code in codes)
        changes = sum("O" not in pair and pair[0] != pair[1] for pair in pairs)
        return float(sum(log_p[word, code] for word, code in enumerate(codes)) + restart * changes)

    probabilities = np.random.default_rng(seed).dirichlet(np.ones(4), sum(sizes))
    codes = decoded(probabilities, np.array(sizes), tags, restart, entities=False)
    bounds = np.cumsum(sizes)[:-1]
    for rows, sentence in zip(np.split(probabilities, bounds), np.split(codes, bounds), strict=True):
        log_p = np.log(rows)
        best = max(map(score_of, product(range(4), repeat=len(rows))))
        np.testing.assert_allclose(score_of(sentence), best)


def test_the_odds_of_two_slots_in_a_row_are_counted() -> None:
    codes = np.array([1, 1, 1, 2, 0, 2, -1, 1, 1, 0])  # Dish goes on twice; another one follows it once
    odds = restart_odds(codes, np.array([8, 2]), SLOTS, entities=False)
    assert odds == np.log((1 + 1) / (2 + 1))
