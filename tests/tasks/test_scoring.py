"""Scores against scikit-learn's."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from drift.tasks.scoring import classification_scores, mean_and_spread


@given(rows=st.integers(1, 40), classes=st.integers(2, 6), seed=st.integers(0, 999))
def test_scores_are_scikit_learns(rows: int, classes: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    probabilities = draw.dirichlet(np.ones(classes), rows)
    labels = draw.integers(0, classes, rows)
    found = classification_scores(probabilities, labels)
    predicted = probabilities.argmax(1)
    assert found["accuracy"] == pytest.approx(accuracy_score(labels, predicted))
    assert found["macro_f1"] == pytest.approx(f1_score(labels, predicted, average="macro", zero_division=0))


def test_accuracy_comes_first_for_it_is_chosen_by() -> None:
    assert next(iter(classification_scores(np.eye(2), np.array([0, 1])))) == "accuracy"


def test_known_values() -> None:
    probabilities = np.array([[0.9, 0.1, 0.0], [0.8, 0.2, 0.0], [0.3, 0.7, 0.0], [0.6, 0.4, 0.0]])
    labels = np.array([0, 1, 1, 2])
    found = classification_scores(probabilities, labels)
    assert found["accuracy"] == 0.5
    assert found["macro_f1"] == pytest.approx((0.5 + 2 / 3 + 0.0) / 3)


def test_a_class_never_predicted_counts_as_zero_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = classification_scores(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0, 1]))
    assert found["macro_f1"] == pytest.approx(1 / 3)


def test_mean_and_sample_deviation_come_in_percent() -> None:
    assert mean_and_spread([0.8, 0.9]) == "85.00 ± 7.07"


def test_one_score_has_no_spread() -> None:
    assert mean_and_spread([0.5]) == "50.00"
