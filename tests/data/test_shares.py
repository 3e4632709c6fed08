"""One function reads every prior: as shares or counts, in class order or by name."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.data.shares import prior_shares
from drift.errors import ConfigError

CLASSES = ["ant", "mole", "zebra"]


@pytest.mark.parametrize(
    ("prior", "shares"),
    [
        ([0.2, 0.3, 0.5], (0.2, 0.3, 0.5)),
        ((0.333, 0.333, 0.333), (0.333, 0.333, 0.333)),
        ({"zebra": 0.5, "ant": 0.2, "mole": 0.3}, (0.2, 0.3, 0.5)),
        ([1, 2, 3], (1.0, 2.0, 3.0)),
        ({"zebra": 30, "ant": 1, "mole": 20}, (1.0, 20.0, 30.0)),
    ],
    ids=str,
)
def test_shares_and_counts_come_in_class_order(prior: Any, shares: tuple[float, ...]) -> None:
    assert prior_shares(prior, CLASSES) == shares


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([0.9, 0.2], "method.prior has 2 shares, the labels have 3 classes; .* in this order: ant, mole, zebra"),
        ([0.9, 0.2, 0.1], "the shares in method.prior sum to 1.2, not 1; divide each by the sum, or give whole-number"),
        ([0.333, 0.333, 0.332], "sum to 0.998, not 1"),
        ([1.5, 2, 3], "sum to 6.5, not 1"),
        ([0.5, 0.5, 0.0], "every class needs a positive share"),
        ([2, 1, -1], "every class needs a positive share"),
        ([0.5, 0.5, float("nan")], "every class needs a positive share"),
        ({"ant": 0.5, "mole": 0.5}, "method.prior has no share for class 'zebra'"),
        ({"ant": 0.5, "mole": 0.3, "bee": 0.2}, "has a share for 'bee', which is not a class; .* 'ant', 'mole'"),
        ([0.5, 0.5, None], "give one number per class"),
        (0.5, "give one number per class"),
    ],
    ids=str,
)
def test_anything_else_is_refused_in_one_line(prior: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        prior_shares(prior, CLASSES, name="method.prior")
    assert "\n" not in str(error.value)


def test_a_message_about_many_classes_is_short() -> None:
    with pytest.raises(ConfigError) as error:
        prior_shares([1.0], [f"class {number}" for number in range(2000)])
    assert len(str(error.value)) < 300


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=20))
def test_counts_and_their_shares_are_both_accepted(counts: Sequence[int]) -> None:
    names = [str(number) for number in range(len(counts))]
    assert prior_shares(counts, names) == tuple(map(float, counts))
    shares = [count / sum(counts) for count in counts]
    assert prior_shares(shares, names) == tuple(shares)
