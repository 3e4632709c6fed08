"""Confident learning, against a reference in plain loops, and cross-fitted probabilities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.errors import LabelError, ShapeError
from drift.quality.crossfit import judged, out_of_fold, votes
from drift.quality.label_errors import confident_joint, find_label_errors
from drift.quality.neighbours import nearest


def reference_joint(codes: list[int], p: np.ndarray) -> np.ndarray:
    """Q of Northcutt et al., row by row."""
    classes = p.shape[1]
    t = [np.mean([p[i, j] for i in range(len(codes)) if codes[i] == j]) for j in range(classes)]
    joint = np.zeros((classes, classes))
    for i, label in enumerate(codes):
        sure = [j for j in range(classes) if p[i, j] >= t[j] - 1e-6]
        if sure:
            joint[label, max(sure, key=lambda j: p[i, j])] += 1
    for label in range(classes):
        if joint[label].sum() == 0:
            joint[label, label] = 1
        joint[label] *= codes.count(label) / joint[label].sum()
    return joint


@given(st.integers(0, 10_000))
def test_the_joint_is_that_of_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(3), rng.integers(0, 3, 20)])
    p = rng.dirichlet(np.ones(3), len(codes))
    joint = confident_joint(codes, p)
    assert joint == pytest.approx(reference_joint(codes.tolist(), p))
    assert joint.sum(1) == pytest.approx(np.bincount(codes))


def test_flipped_labels_are_found_and_nothing_else_if_classes_are_clear() -> None:
    codes = np.repeat([0, 1, 2], 20)
    p = np.full((60, 3), 0.05)
    p[np.arange(60), codes] = 0.9
    assert len(find_label_errors(codes, p).rows) == 0
    wrong = codes.copy()
    wrong[[3, 25]] = [1, 2]
    errors = find_label_errors(wrong, p)
    assert sorted(errors.rows) == [3, 25]
    assert dict(zip(errors.rows.tolist(), errors.suggested.tolist(), strict=True)) == {3: 0, 25: 1}
    assert errors.estimated == pytest.approx(2, abs=0.3)


def test_the_order_is_by_margin_and_no_row_is_suspected_that_is_most_likely_right() -> None:
    rng = np.random.default_rng(0)
    codes, p = rng.integers(0, 4, 300), rng.dirichlet(np.ones(4), 300)
    errors = find_label_errors(codes, p)
    assert len(errors.rows)
    assert (np.diff(errors.margin) <= 0).all()
    assert (p[errors.rows].argmax(1) != codes[errors.rows]).all()


def test_a_class_without_labels_is_never_suggested() -> None:
    codes = np.array([0, 1] * 10)
    p = np.tile([0.1, 0.2, 0.7], (20, 1))
    assert confident_joint(codes, p)[:, 2].sum() == 0


def test_shapes_and_codes_are_checked() -> None:
    with pytest.raises(ShapeError, match="3 labels"):
        find_label_errors(np.zeros(3, dtype=int), np.zeros((2, 2)))
    with pytest.raises(LabelError, match="below 2"):
        find_label_errors(np.array([0, 2]), np.zeros((2, 2)))


def blobs(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = np.arange(rows) % 3
    return (4 * np.eye(3)[codes] + rng.normal(size=(rows, 3))).astype(np.float32), codes


def test_a_label_does_not_judge_itself() -> None:
    """The probabilities of a row, and of its copies, are the same whatever its own label is."""
    x, codes = blobs(60)
    x[1] = x[0]
    for row in (0, 1):
        changed = codes.copy()
        changed[[0, 1]] = [(codes[row] + 1) % 3] * 2
        fold = out_of_fold(x, changed, 3, seed=0)
        assert fold.sum(1) == pytest.approx(np.ones(60))
        assert fold[0] == pytest.approx(fold[1])
    near = nearest(x, k=5)
    one = codes.copy()
    one[0] = (codes[0] + 1) % 3
    assert votes(near, one, 3)[0] == pytest.approx(votes(near, codes, 3)[0])
    assert votes(near, one, 3)[1] == pytest.approx(votes(near, codes, 3)[1])  # its copy does not vote for it


def test_flipped_labels_of_separated_classes_are_judged_wrong() -> None:
    x, codes = blobs(150)
    wrong = codes.copy()
    wrong[:10] = (codes[:10] + 1) % 3
    errors = find_label_errors(wrong, judged(x, wrong, 3, seed=0))
    assert len(set(errors.rows) & set(range(10))) >= 9
    assert len(errors.rows) <= 20


def test_one_class_cannot_be_cross_fitted() -> None:
    with pytest.raises(LabelError, match="1 classes"):
        out_of_fold(np.zeros((5, 2)), np.zeros(5, dtype=int), 1, seed=0)
