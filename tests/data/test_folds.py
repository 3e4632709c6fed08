"""Labels that are left out for cross-fitting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.data.folds import FOLDS, LeftOut, left_out


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(2, 12), st.integers(0, 5))
def test_trials_leave_out_equally_many_and_never_the_only_label_of_a_class(
    labels: list[int], trials: int, seed: int
) -> None:
    codes = np.array(labels)
    folds = left_out(codes, trials, seed=seed)
    counts = np.bincount(codes)
    if folds is None:
        assert (counts[codes] > 1).sum() < 2
        return
    assert folds.shape[0] == trials
    assert folds.shape[1] >= 1
    for fold in folds:
        assert len(set(fold.tolist())) == len(fold)
        remaining = np.delete(codes, fold)
        assert set(remaining.tolist()) == set(labels)  # every class keeps a label to train on


@pytest.mark.parametrize("per_class", [5, 10, 15])
def test_classes_are_left_out_in_proportion_and_every_label_equally_often(per_class: int) -> None:
    codes = np.repeat([0, 1, 2], per_class)
    folds = left_out(codes, 10, seed=0)
    assert folds is not None
    for fold in folds:
        assert np.bincount(codes[fold]).tolist() == [per_class // FOLDS] * 3
    assert np.bincount(folds.ravel()).tolist() == [2] * len(codes)


def test_one_trial_leaves_out_nothing() -> None:
    assert left_out(np.array([0, 0, 1, 1]), 1, seed=0) is None


def test_labels_that_several_trials_left_out_count_once() -> None:
    rows, labels = np.array([[4, 7], [4, 9]]), np.array([[0, 1], [0, 1]])
    left = LeftOut.of(rows, labels)
    assert left.codes.tolist() == [0, 1, 1]
    assert left.mean(np.array([1.0, 0.0, 0.0, 1.0])).tolist() == [0.5, 0.0, 1.0]
    assert left.weights([]).tolist() == pytest.approx([1 / 3] * 3)
    assert left.weights([(0.9, 0.1), (0.7, 0.3)]).tolist() == pytest.approx([0.8, 0.1, 0.1])
