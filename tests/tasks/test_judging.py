"""Judging the kept classifier, against scikit-learn and counts by hand."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from drift.tasks.calibration import calibration_error, reliability
from drift.tasks.judging import (
    EXAMPLES,
    EXCERPT,
    confident_mistakes,
    excerpt,
    judge_changes,
    judge_classes,
    weak_label_shares,
)
from drift.training.flips import Flips

CLASSES = ["a", "b", "c"]


def random_predictions(rows: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities `(rows, 3)` and labels."""
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 3, rows)
    return draw.dirichlet([0.5] * 3, rows).astype(np.float32), labels


def text_of(row: int) -> str:
    return f"row {row}\n " + "long " * (row % 2) * EXCERPT


def mistakes_of(probabilities: np.ndarray, labels: np.ndarray, temperature: float) -> list[dict[str, Any]]:
    return confident_mistakes(probabilities, labels, temperature, CLASSES, lambda row: excerpt(text_of(row)))


def test_the_confusion_matrix_is_that_of_scikit_learn() -> None:
    probabilities, labels = random_predictions()
    judged = judge_classes(probabilities, labels, 1.0, CLASSES)
    assert judged["confusion"] == confusion_matrix(labels, probabilities.argmax(-1)).tolist()


def test_a_class_without_rows_has_its_row_and_column() -> None:
    probabilities, labels = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]]), np.array([0, 0])
    assert judge_classes(probabilities, labels, 1.0, CLASSES)["confusion"] == [[1, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_mistakes_are_wrong_and_the_most_confident_come_first() -> None:
    probabilities, labels = random_predictions()
    mistakes = mistakes_of(probabilities, labels, 2.0)
    wrong = probabilities.argmax(-1) != labels
    assert len(mistakes) == EXAMPLES
    assert all(one["confidence"] >= two["confidence"] for one, two in pairwise(mistakes))
    for each in mistakes:
        row = int(each["text"].split()[1])
        assert wrong[row]
        assert (each["label"], each["predicted"]) == (CLASSES[labels[row]], CLASSES[probabilities[row].argmax()])
        assert "\n" not in each["text"]
        assert len(each["text"]) <= EXCERPT + 1
        rescaled = np.sqrt(probabilities[row].astype(float))  # a temperature of 2 halves log-probabilities
        assert each["confidence"] == pytest.approx(rescaled.max() / rescaled.sum(), rel=1e-5)


def test_changes_are_counted_and_the_first_are_listed() -> None:
    draw = np.random.default_rng(1)
    before, after, gold = (draw.integers(0, 3, 60) for _ in range(3))
    gold[::4] = -1
    judged = judge_changes(Flips(np.arange(100, 160), before, after, gold), CLASSES, lambda row: f"row {row}")
    changed = [place for place in range(60) if before[place] != after[place]]
    known = [place for place in changed if gold[place] >= 0]
    assert (judged["watched"], judged["changed"], judged["known"]) == (60, len(changed), len(known))
    assert judged["right_before"] == sum(before[place] == gold[place] for place in known)
    assert judged["right_after"] == sum(after[place] == gold[place] for place in known)
    assert judged["examples"] == [
        {
            "text": f"row {100 + place}",
            "before": CLASSES[before[place]],
            "after": CLASSES[after[place]],
            "label": CLASSES[gold[place]] if gold[place] >= 0 else None,
        }
        for place in changed[:EXAMPLES]
    ]
    unknown = judge_changes(Flips(np.arange(60), before, after, None), CLASSES, str)
    assert (unknown["changed"], unknown["known"]) == (len(changed), 0)


def test_no_mistake_is_an_empty_list() -> None:
    probabilities, _ = random_predictions(5)
    assert mistakes_of(probabilities, probabilities.argmax(-1), 1.0) == []


def test_bins_hold_every_row_once_and_add_up_to_the_calibration_error() -> None:
    probabilities, labels = random_predictions()
    bins = reliability(probabilities, labels)
    assert sum(each["rows"] for each in bins) == len(labels)
    right = (probabilities.argmax(-1) == labels).sum()
    assert sum(each["rows"] * each["accuracy"] for each in bins) == pytest.approx(right)
    gaps = [each["rows"] / 200 * abs(each["accuracy"] - each["confidence"]) for each in bins]
    assert calibration_error(probabilities, labels) == pytest.approx(sum(gaps))


def test_a_temperature_of_one_changes_nothing() -> None:
    probabilities, labels = random_predictions()
    calibration = judge_classes(probabilities, labels, 1.0, CLASSES)["calibration"]
    assert calibration["error_after"] == pytest.approx(calibration["error_before"], abs=1e-6)


def test_weak_labels_are_judged_only_where_gold_is_known() -> None:
    weak, gold = np.array([0, 1, -1, 2, 0]), np.array([0, 2, 1, -1, -1])
    assert weak_label_shares(weak, gold) == {"labeled": {"count": 4, "of": 5}, "accuracy": {"count": 1, "of": 2}}
