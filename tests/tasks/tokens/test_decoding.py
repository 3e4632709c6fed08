"""Constrained decoding against all valid sequences of tags."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from drift.data.tags import faults
from drift.tasks.tokens.decoding import decoded

TAGS = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]


def best_of_all(probabilities: np.ndarray, tags: list[str]) -> float:
    """The highest log-probability of a valid sequence, by trying every one."""
    log_p = np.log(probabilities)
    valid = (
        codes
        for codes in product(range(len(tags)), repeat=len(log_p))
        if not faults([tags[code] for code in codes], "IOB2")
    )
    return max(sum(log_p[word, code] for word, code in enumerate(codes)) for codes in valid)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.integers(0, 10**6), st.permutations(TAGS))
def test_tags_are_valid_and_nothing_valid_is_more_likely(sizes: list[int], seed: int, tags: list[str]) -> None:
    probabilities = np.random.default_rng(seed).dirichlet(np.ones(5), sum(sizes))
    codes = decoded(probabilities, np.array(sizes), tags)
    bounds = np.cumsum(sizes)[:-1]
    for rows, sentence in zip(np.split(probabilities, bounds), np.split(codes, bounds), strict=True):
        if len(rows):
            assert not faults([tags[code] for code in sentence], "IOB2")
            got = float(np.log(rows[np.arange(len(rows)), sentence]).sum())
            np.testing.assert_allclose(got, best_of_all(rows, tags))


def test_valid_answers_are_left_as_they_are() -> None:
    codes = np.array([1, 2, 2, 0, 3, 4, 1])
    np.testing.assert_array_equal(decoded(np.eye(5)[codes], np.array([4, 3]), TAGS), codes)


def test_probabilities_of_zero_do_no_harm() -> None:
    codes = decoded(np.eye(5)[[0, 2, 2]], np.array([3]), TAGS)
    assert not faults([TAGS[code] for code in codes], "IOB2")
