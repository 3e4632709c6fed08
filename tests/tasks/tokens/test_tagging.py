"""Scores of tags, computed with arrays, against seqeval and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.tasks.tokens.tagging import Tagging

seqeval_metrics = pytest.importorskip("seqeval.metrics")

TAGS = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
SLOTS = ["Dish", "O", "Price"]


@st.composite
def cases(draw: st.DrawFn, tags: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sizes = draw(st.lists(st.integers(1, 7), min_size=1, max_size=5))
    codes = st.lists(st.integers(0, tags - 1), min_size=sum(sizes), max_size=sum(sizes))
    return np.array(sizes), np.array(draw(codes)), np.array(draw(codes))


@given(cases(len(TAGS)))
def test_entities_are_counted_as_seqeval_does_once_repaired(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    from seqeval.scheme import IOB2

    sizes, predicted, labels = case
    tagging = Tagging(TAGS, sizes, entities=True)
    truth, answer = tagging.sentences(labels), tagging.sentences(predicted)
    got = tagging.scores(predicted, labels)
    for name, oracle in (("f1", "f1_score"), ("precision", "precision_score"), ("recall", "recall_score")):
        score = getattr(seqeval_metrics, oracle)
        assert got[name] == pytest.approx(score(truth, answer, mode="strict", scheme=IOB2, zero_division=0))
    # A repaired sequence follows the scheme, so that the lenient score equals the strict one.
    assert got["f1"] == pytest.approx(seqeval_metrics.f1_score(truth, answer, zero_division=0))


@given(cases(len(SLOTS)))
def test_slots_are_counted_by_token(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    from sklearn.metrics import precision_recall_fscore_support

    sizes, predicted, labels = case
    got = Tagging(SLOTS, sizes, entities=False)(np.eye(len(SLOTS))[predicted], labels)
    precision, recall, f1, _ = precision_recall_fscore_support(
        labels, predicted, labels=[0, 2], average="micro", zero_division=0
    )
    assert (got["precision"], got["recall"], got["f1"]) == pytest.approx((precision, recall, f1))
    assert got["accuracy"] == pytest.approx((predicted == labels).mean())


@given(cases(len(TAGS)))
def test_types_are_counted_as_seqeval_does(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    from seqeval.scheme import IOB2

    sizes, predicted, labels = case
    tagging = Tagging(TAGS, sizes, entities=True)
    truth, answer = tagging.sentences(labels), tagging.sentences(predicted)
    got = tagging.by_type(predicted, labels)
    assert list(got) == ["LOC", "PER", "all"]
    if {*predicted, *labels} == {0}:  # seqeval has no report without types
        assert all(set(scores.values()) == {0} for scores in got.values())
        return
    report = seqeval_metrics.classification_report(
        truth, answer, mode="strict", scheme=IOB2, output_dict=True, zero_division=0
    )
    for name, expected in report.items():
        if name not in ("macro avg", "weighted avg"):
            scores = got[{"micro avg": "all"}.get(name, name)]
            wanted = (expected[key] for key in ("precision", "recall", "f1-score", "support"))
            assert tuple(scores[key] for key in ("precision", "recall", "f1", "true")) == pytest.approx(tuple(wanted))


@pytest.mark.parametrize(("tags", "entities"), [(TAGS, True), (SLOTS, False)])
def test_scores_by_type_add_up(tags: list[str], entities: bool) -> None:
    generator = np.random.default_rng(0)
    sizes = generator.integers(1, 9, 200)
    labels = generator.integers(0, len(tags), sizes.sum())
    predicted = np.where(generator.random(len(labels)) < 0.7, labels, generator.integers(0, len(tags), len(labels)))
    tagging = Tagging(tags, sizes, entities)
    scores, by_type = tagging.scores(predicted, labels), tagging.by_type(predicted, labels)
    assert by_type["all"]["f1"] == pytest.approx(scores["f1"])
    assert by_type["all"]["true"] == sum(scores["true"] for name, scores in by_type.items() if name != "all")


def test_an_entity_ends_with_its_sentence() -> None:
    predicted = np.array([1, 2])
    tags = TAGS, np.array([1, 1]), True
    assert Tagging(*tags).sentences(predicted) == [["B-LOC"], ["B-LOC"]]
    assert Tagging(*tags).scores(predicted, np.array([1, 1]))["f1"] == 1.0
