"""What is said of the kept classifier: against scikit-learn, and against counting by hand."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from drift.data.texts import store_texts
from drift.tasks.calibration import calibration_error, reliability
from drift.tasks.judging import EXCERPT, MISTAKES, changes, judge, weak_label_shares
from drift.tasks.text.data import LabeledTexts
from drift.training.flips import Flips

CLASSES = ["a", "b", "c"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path))


def made(rows: int = 200) -> tuple[LabeledTexts, np.ndarray]:
    draw = np.random.default_rng(0)
    texts = store_texts(f"row {row}\n " + "long " * (row % 2) * EXCERPT for row in range(rows))
    return LabeledTexts(texts, draw.integers(0, 3, rows)), draw.dirichlet([0.5] * 3, rows).astype(np.float32)


def test_confusions_are_those_of_scikit_learn() -> None:
    part, probabilities = made()
    found = judge(part, probabilities, 1.0, CLASSES)
    assert found["confusion"] == confusion_matrix(part.codes, probabilities.argmax(-1)).tolist()


def test_mistakes_are_wrong_and_the_surest_come_first() -> None:
    part, probabilities = made()
    mistakes = judge(part, probabilities, 2.0, CLASSES)["mistakes"]
    wrong = probabilities.argmax(-1) != part.codes
    assert len(mistakes) == MISTAKES
    assert all(one["confidence"] >= two["confidence"] for one, two in pairwise(mistakes))
    for each in mistakes:
        row = int(each["text"].split()[1])
        assert wrong[row]
        assert (each["label"], each["predicted"]) == (CLASSES[part.codes[row]], CLASSES[probabilities[row].argmax()])
        assert "\n" not in each["text"]
        assert len(each["text"]) <= EXCERPT + 1


def test_changes_are_counted_and_the_first_are_shown() -> None:
    draw = np.random.default_rng(1)
    before, after, gold = (draw.integers(0, 3, 60) for _ in range(3))
    gold[::4] = -1
    found = changes(Flips(np.arange(100, 160), before, after, gold), CLASSES, lambda thing: f"thing {thing}")
    changed = [place for place in range(60) if before[place] != after[place]]
    known = [place for place in changed if gold[place] >= 0]
    assert (found["watched"], found["changed"], found["known"]) == (60, len(changed), len(known))
    assert found["right_before"] == sum(before[place] == gold[place] for place in known)
    assert found["right_after"] == sum(after[place] == gold[place] for place in known)
    assert found["examples"] == [
        {
            "text": f"thing {100 + place}",
            "before": CLASSES[before[place]],
            "after": CLASSES[after[place]],
            "label": CLASSES[gold[place]] if gold[place] >= 0 else None,
        }
        for place in changed[:MISTAKES]
    ]
    unknown = changes(Flips(np.arange(60), before, after, None), CLASSES, str)
    assert (unknown["changed"], unknown["known"]) == (len(changed), 0)


def test_no_mistake_is_an_empty_list() -> None:
    part, probabilities = made(5)
    right = LabeledTexts(part.texts, probabilities.argmax(-1))
    assert judge(right, probabilities, 1.0, CLASSES)["mistakes"] == []


def test_bins_hold_every_row_once_and_make_the_calibration_error() -> None:
    part, probabilities = made()
    bins = reliability(probabilities, part.codes)
    assert sum(each["rows"] for each in bins) == len(part.codes)
    right = (probabilities.argmax(-1) == part.codes).sum()
    assert sum(each["rows"] * each["accuracy"] for each in bins) == pytest.approx(right)
    gaps = [each["rows"] / 200 * abs(each["accuracy"] - each["confidence"]) for each in bins]
    assert calibration_error(probabilities, part.codes) == pytest.approx(sum(gaps))


def test_a_temperature_of_one_changes_nothing() -> None:
    part, probabilities = made()
    found = judge(part, probabilities, 1.0, CLASSES)["calibration"]
    assert found["error_after"] == pytest.approx(found["error_before"], abs=1e-6)


def test_weak_labels_are_judged_only_where_gold_is_known() -> None:
    weak, gold = np.array([0, 1, -1, 2, 0]), np.array([0, 2, 1, -1, -1])
    assert weak_label_shares(weak, gold) == {"labeled": {"count": 4, "of": 5}, "accuracy": {"count": 1, "of": 2}}
