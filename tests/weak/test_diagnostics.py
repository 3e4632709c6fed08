"""Summaries of rules, compared with counts made row by row."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.errors import ShapeError
from drift.weak import ABSTAIN, Share, majority, summarize
from drift.weak.diagnostics import table

CLASSES = ("a", "b", "c")
VOTES = np.array([[0, 0], [0, 1], [-1, 1], [-1, -1]], dtype=np.int8)
LABELS = np.array([0, -1, 1, -1])
GOLD = ["a", "a", "z", None]


def test_a_small_example_counted_by_hand() -> None:
    summary = summarize(VOTES, LABELS, names=["one", "two"], classes=CLASSES, gold=GOLD)
    one, two = summary.rules
    assert (one.polarity, two.polarity) == ({"a": 2}, {"a": 1, "b": 2})
    assert (one.coverage, one.overlap, one.conflict) == (Share(2, 4), Share(2, 4), Share(1, 4))
    assert (two.coverage, two.overlap, two.conflict) == (Share(3, 4), Share(2, 4), Share(1, 4))
    assert (one.accuracy, two.accuracy) == (Share(2, 2), Share(1, 3))
    assert (summary.coverage, summary.overlap, summary.conflict) == (Share(3, 4), Share(2, 4), Share(1, 4))
    assert (summary.labeled, summary.accuracy) == (Share(2, 4), Share(1, 2))
    assert (summary.labels, summary.other_gold) == ({"a": 1, "b": 1}, {"z": 1})


def test_the_table_has_accuracy_only_with_gold_labels() -> None:
    headings, rows = table(summarize(VOTES, LABELS, names=["one", "two"], classes=CLASSES, gold=GOLD))
    assert headings == ["rule", "votes for", "coverage", "overlap", "conflict", "accuracy"]
    assert rows == [
        ["one", "a", "50.0%", "50.0%", "25.0%", "100.0% of 2"],
        ["two", "a, b", "75.0%", "50.0%", "25.0%", "33.3% of 3"],
        ["together", "a, b", "75.0%", "50.0%", "25.0%", "50.0% of 2"],
    ]
    headings, rows = table(summarize(VOTES, LABELS, names=["one", "two"], classes=CLASSES))
    assert {len(headings), *map(len, rows)} == {5}


ROWS = st.lists(st.tuples(*[st.integers(-1, 2)] * 3, st.sampled_from(["a", "b", "c", "z", None])), min_size=1)


@given(rows=ROWS, cut=st.integers(0, 20))
def test_counts_match_a_row_by_row_count_and_parts_add_up(rows: list[tuple[Any, ...]], cut: int) -> None:
    votes, gold = np.array([row[:3] for row in rows]), [row[3] for row in rows]
    labels = majority(votes, 3)

    def summary(part: slice) -> Any:
        return summarize(votes[part], labels[part], names=["x", "y", "z"], classes=CLASSES, gold=gold[part])

    whole = summary(slice(None))
    assert summary(slice(cut)) + summary(slice(cut, None)) == whole
    cast = [[vote for vote in row[:3] if vote != ABSTAIN] for row in rows]
    assert whole.conflict == Share(sum(len(set(row)) > 1 for row in cast), len(rows))
    for column, rule in enumerate(whole.rules):
        mine = [(row, all_votes) for row, all_votes in zip(rows, cast, strict=True) if row[column] != ABSTAIN]
        assert rule.coverage == Share(len(mine), len(rows))
        assert rule.overlap.count == sum(len(all_votes) > 1 for _, all_votes in mine)
        # A conflict: another rule votes for a different class.
        assert rule.conflict.count == sum(any(vote != row[column] for vote in all_votes) for row, all_votes in mine)
        judged = [row for row, _ in mine if row[3] is not None]
        assert rule.accuracy == Share(sum(CLASSES[row[column]] == row[3] for row in judged), len(judged))


def test_a_share_of_zero_is_nan() -> None:
    assert str(Share(0, 0)) == "-"
    assert np.isnan(Share(0, 0).rate)


def test_mismatched_shapes_are_refused() -> None:
    with pytest.raises(ShapeError, match="do not fit together"):
        summarize(VOTES, LABELS, names=["one"], classes=CLASSES)
    with pytest.raises(ShapeError, match="do not fit together"):
        summarize(VOTES, LABELS, names=["one", "two"], classes=CLASSES, gold=["a"])
