"""Scores against scikit-learn."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from drift.tasks.calibration import calibration_error
from drift.tasks.scoring import classification_scores, evaluation_scores, mean_and_spread, scores_by_class

CLASSES = ["cat", "dog"]


@given(rows=st.integers(1, 40), classes=st.integers(2, 6), seed=st.integers(0, 999))
def test_scores_are_those_of_scikit_learn(rows: int, classes: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    probabilities = draw.dirichlet(np.ones(classes), rows)
    labels = draw.integers(0, classes, rows)
    scores = classification_scores(probabilities, labels)
    predicted = probabilities.argmax(1)
    assert scores["accuracy"] == pytest.approx(accuracy_score(labels, predicted))
    assert scores["macro_f1"] == pytest.approx(f1_score(labels, predicted, average="macro", zero_division=0))


def test_accuracy_comes_first_because_model_selection_uses_it() -> None:
    assert next(iter(classification_scores(np.eye(2), np.array([0, 1])))) == "accuracy"


def test_known_values() -> None:
    probabilities = np.array([[0.9, 0.1, 0.0], [0.8, 0.2, 0.0], [0.3, 0.7, 0.0], [0.6, 0.4, 0.0]])
    labels = np.array([0, 1, 1, 2])
    scores = classification_scores(probabilities, labels)
    assert scores["accuracy"] == 0.5
    assert scores["macro_f1"] == pytest.approx((0.5 + 2 / 3 + 0.0) / 3)


def test_a_class_that_is_never_predicted_counts_as_zero_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = classification_scores(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0, 1]))
    assert scores["macro_f1"] == pytest.approx(1 / 3)


def test_mean_and_sample_deviation_come_in_percent() -> None:
    assert mean_and_spread([0.8, 0.9]) == "85.00 ± 7.07"


def test_one_score_has_no_spread() -> None:
    assert mean_and_spread([0.5]) == "50.00"


def test_scores_of_confident_rows() -> None:
    probabilities, labels = np.array([[0.9, 0.1], [0.55, 0.45], [0.2, 0.8], [0.4, 0.6]]), np.array([0, 1, 0, 1])
    scores = evaluation_scores(probabilities, labels, CLASSES, abstain_below=0.8)
    assert (scores["covered"], scores["accuracy_where_sure"]) == (0.5, 0.5)
    assert evaluation_scores(probabilities, labels, CLASSES, abstain_below=0.95)["accuracy_where_sure"] is None
    plain = evaluation_scores(probabilities, labels, CLASSES)
    assert set(plain) == {"accuracy", "interval", "macro_f1", "by_class", "calibration_error"}
    assert plain["calibration_error"] == calibration_error(probabilities, labels)


def test_scores_by_class_count_rows_of_an_unknown_class_as_errors() -> None:
    predicted, labels = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2])
    scores = scores_by_class(predicted, labels, CLASSES)
    assert scores["cat"] == {"f1": pytest.approx(2 / 3), "precision": 0.5, "recall": 1.0, "true": 1}
    assert scores["dog"] == {"f1": 0.5, "precision": 0.5, "recall": 0.5, "true": 2}
