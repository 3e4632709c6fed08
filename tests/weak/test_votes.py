"""One label from many votes: ties, weights and seeds, compared with a simple count."""

import random
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from drift.errors import ConfigError, PackageError, ShapeError
from drift.weak import ABSTAIN, label_model, majority

VOTES = np.array([[0, 1, 1], [1, 0, -1], [-1, -1, 2], [-1, -1, -1], [2, 1, 0]], dtype=np.int8)


def test_the_three_policies_for_ties() -> None:
    assert majority(VOTES, 3).tolist() == [1, ABSTAIN, 2, ABSTAIN, ABSTAIN]
    assert majority(VOTES, 3, ties="order").tolist() == [1, 1, 2, ABSTAIN, 2]
    drawn = majority(VOTES, 3, ties="random", seed=1)
    assert drawn[[0, 2, 3]].tolist() == [1, 2, ABSTAIN]
    assert drawn[1] in (0, 1)


def test_the_first_rule_decides_among_tied_classes_only() -> None:
    assert majority(np.array([[2, 0, 1, 1, 0]]), 3, ties="order").tolist() == [0]


def test_weights() -> None:
    assert majority(VOTES, 3, weights=np.array([3.0, 1, 1])).tolist() == [0, 1, 2, ABSTAIN, 2]
    # The sums are equal, though 0.1 + 0.2 is not 0.3 in floating point.
    assert majority(np.array([[0, 0, 1]]), 2, weights=np.array([0.1, 0.2, 0.3])).tolist() == [ABSTAIN]
    # A rule of weight 0 has no influence, not even on ties.
    assert majority(np.array([[0, -1], [0, 1]]), 2, weights=np.array([0.0, 1])).tolist() == [ABSTAIN, 1]
    assert majority(np.array([[0, 1, 0, 1]]), 2, ties="order", weights=np.array([0.0, 1, 1, 1])).tolist() == [1]


def by_hand(row: list[int], ties: str) -> int:
    counts = Counter(vote for vote in row if vote != ABSTAIN)
    best = [vote for vote in counts if counts[vote] == max(counts.values())]
    if not best or (len(best) > 1 and ties == "abstain"):
        return ABSTAIN
    return next(vote for vote in row if vote in best)


@given(
    rows=st.integers(1, 5).flatmap(
        lambda m: st.lists(st.lists(st.integers(-1, 3), min_size=m, max_size=m), min_size=1)
    ),
    ties=st.sampled_from(["abstain", "order"]),
)
def test_majority_matches_a_simple_count(rows: list[list[int]], ties: Any) -> None:
    assert majority(np.array(rows), 4, ties=ties).tolist() == [by_hand(row, ties) for row in rows]


def test_random_ties_are_fair_repeatable_and_independent_of_chunks() -> None:
    votes = np.tile(np.array([[0, 2, 2, 0, 1], [1, 1, 0, 0, -1], [2, -1, -1, -1, -1]]), (1000, 1))
    whole = majority(votes, 3, ties="random", seed=7)
    rng = np.random.default_rng(7)
    parts = [majority(part, 3, ties="random", seed=rng) for part in np.split(votes, [1, 1000, 1007])]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert not np.array_equal(majority(votes, 3, ties="random", seed=8), whole)
    assert set(whole[0::3]) == {0, 2}
    assert abs((whole[1::3] == 1).mean() - 0.5) < 0.08  # five standard deviations
    assert (whole[2::3] == 2).all()


def test_no_texts_and_no_rules() -> None:
    assert majority(np.empty((0, 3), dtype=np.int8), 2).tolist() == []
    assert majority(np.empty((2, 0), dtype=np.int8), 2, ties="order").tolist() == [ABSTAIN, ABSTAIN]


@pytest.mark.parametrize(
    ("votes", "options", "error"),
    [
        (np.zeros(3, dtype=int), {}, ShapeError),
        (np.zeros((3, 2)), {}, ShapeError),
        (np.full((1, 1), 2), {}, ShapeError),
        (np.full((1, 1), -2), {}, ShapeError),
        (np.zeros((1, 2), dtype=int), {"weights": np.ones(3)}, ShapeError),
        (np.zeros((1, 2), dtype=int), {"weights": np.array([1, -1])}, ShapeError),
        (np.zeros((1, 2), dtype=int), {"weights": ["a", "b"]}, ShapeError),
        (np.zeros((1, 2), dtype=int), {"ties": "first"}, ConfigError),
        (None, {}, ShapeError),
        ([[0, 1], [0]], {}, ShapeError),
    ],
)
def test_invalid_votes_are_refused(votes: Any, options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        majority(votes, 2, **options)


def test_lists_are_accepted() -> None:
    assert majority([[0, 1], [1, ABSTAIN]], np.int64(2), weights=[1, 2]).tolist() == [1, 1]  # type: ignore[arg-type]


@pytest.mark.parametrize("n_classes", [0, None, "2"])
def test_invalid_n_classes_is_refused(n_classes: Any) -> None:
    with pytest.raises(ConfigError, match="is not a number of classes"):
        majority(np.zeros((1, 2), dtype=int), n_classes)


def test_the_label_model_trusts_rules_that_agree_and_leaves_uncovered_texts_alone() -> None:
    pytest.importorskip("snorkel", reason="snorkel is not installed")
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 2000)
    right = rng.random((2000, 5)) < np.array([0.9, 0.9, 0.9, 0.55, 0.55])
    votes = np.where(right, truth[:, None], 1 - truth[:, None])
    votes[:10] = ABSTAIN
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    labels = label_model(votes, 2, seed=0)
    assert (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == before
    np.testing.assert_array_equal(label_model(votes, 2, seed=0), labels)
    assert (labels[:10] == ABSTAIN).all()
    assert (labels == truth)[10:].mean() > (majority(votes, 2) == truth)[10:].mean()


def test_without_snorkel_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "snorkel.labeling.model", None)
    with pytest.raises(PackageError, match="pip install snorkel"):
        label_model(VOTES, 3)
