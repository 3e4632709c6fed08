"""Choosing which rows keep their labels, and which are taken at all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.data.splits import sample_per_class, some_rows
from drift.errors import LabelError

labelings = st.lists(st.integers(0, 3), min_size=1, max_size=60)


@given(labels=labelings, n=st.integers(1, 5), seed=st.integers(0, 99))
def test_n_rows_of_each_class_or_an_error_that_names_the_class(labels: list[int], n: int, seed: int) -> None:
    y = np.array(labels)
    kinds, counts = np.unique(y, return_counts=True)
    if counts.min() < n:
        with pytest.raises(LabelError, match=rf"has {counts[counts < n][0]} rows, {n} were asked for"):
            sample_per_class(y, n, seed=seed)
        return
    rows = sample_per_class(y, n, seed=seed)
    assert np.array_equal(rows, np.unique(rows))  # sorted, none twice
    assert np.array_equal(np.unique(y[rows], return_counts=True), (kinds, np.full(len(kinds), n)))
    assert np.array_equal(rows, sample_per_class(y, n, seed=seed))


def test_another_seed_chooses_others_and_the_global_generator_is_left_alone() -> None:
    y = np.repeat(["a", "b"], 50)
    before = np.random.get_state()[1].copy()
    chosen = {tuple(sample_per_class(y, 5, seed=seed)) for seed in range(20)}
    assert len(chosen) == 20
    assert np.array_equal(before, np.random.get_state()[1])


def test_every_row_can_be_chosen() -> None:
    y = np.repeat([0, 1], 10)
    seen = np.concatenate([sample_per_class(y, 3, seed=seed) for seed in range(50)])
    assert np.array_equal(np.unique(seen), np.arange(20))


@given(rows=st.integers(0, 30), wanted=st.none() | st.integers(1, 40), seed=st.integers(0, 99))
def test_some_rows_are_different_ones_or_all_as_they_are(rows: int, wanted: int | None, seed: int) -> None:
    chosen = some_rows(rows, wanted, seed=seed)
    if wanted is None or wanted >= rows:
        assert chosen is None
        return
    assert len(np.unique(chosen)) == wanted
    assert chosen.min() >= 0
    assert chosen.max() < rows
