"""Judging a tagger on known tags: errors by type, examples, the quality of weak tags, and their page."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.data.sentences import Sentences
from drift.data.tags import repaired, spans_of
from drift.tasks.record import VERSION
from drift.tasks.tokens.data import TaggedSentences, TokenData
from drift.tasks.tokens.judging import MOST_WORDS, SAMPLES, errors_by_type, judge, weak_tag_shares
from drift.tasks.tokens.record import TokenRecord
from drift.tasks.tokens.report import type_sections, weak_tag_sections
from tests.runs.small_tokens import CLASSES


def no_picture(*_: Any) -> Any:
    raise AssertionError("these sections have no pictures")


TAGS = st.lists(st.lists(st.sampled_from(CLASSES), min_size=6, max_size=6).map(repaired), min_size=3, max_size=3)


@pytest.mark.parametrize(
    ("truth", "predicted", "expected"),
    [
        ("B-PER I-PER O", "B-PER I-PER O", {"PER": {"right": 1}}),
        ("B-PER I-PER O", "B-PER O O", {"PER": {"bounds": 1}}),
        ("B-PER I-PER O", "O B-LOC I-LOC", {"PER": {"type": 1}}),
        ("B-PER I-PER O", "O O B-LOC", {"LOC": {"made up": 1}, "PER": {"missed": 1}}),
        ("B-PER I-PER O", "B-LOC B-PER O", {"PER": {"bounds": 1}}),  # one part of it has its type
        ("O O O", "O O O", {}),
    ],
)
def test_errors_of_an_entity(truth: str, predicted: str, expected: dict[str, Any]) -> None:
    assert errors_by_type([truth.split()], [predicted.split()], "IOB2") == expected


@given(TAGS, TAGS)
def test_every_true_entity_is_counted_once(truth: list[list[str]], predicted: list[list[str]]) -> None:
    counts = errors_by_type(truth, predicted, "IOB2")
    spans = [(set(spans_of(a)), set(spans_of(b))) for a, b in zip(truth, predicted, strict=True)]
    true = Counter(span.type for true_spans, _ in spans for span in true_spans)
    right = Counter(span.type for true_spans, others in spans for span in true_spans & others)
    for name, counted in counts.items():
        assert sum(counted.values()) - counted.get("made up", 0) == true[name]
        assert counted.get("right", 0) == right[name]
    apart = sum(
        all(b.end <= a.start or a.end <= b.start for a in true_spans) for true_spans, others in spans for b in others
    )  # predicted spans that share no word with a true one
    assert sum(counted.get("made up", 0) for counted in counts.values()) == apart


def test_a_long_sentence_is_counted_in_linear_time() -> None:
    tags = ["B-PER", "O"] * 50_000  # comparing all pairs would take 2.5e9 steps
    assert errors_by_type([tags], [tags], "IOB2") == {"PER": {"right": 50_000}}


class FixedTagger:
    """A tagger that gives the same tags to every sentence."""

    temperature, restart = 2.0, 0.0

    def __init__(self, fixed: list[str]) -> None:
        self.fixed = fixed

    def predict_proba(self, sentences: list[list[str]]) -> list[np.ndarray]:
        return [np.zeros((len(words), len(CLASSES))) for words in sentences]

    def tags(self, probabilities: np.ndarray) -> list[str]:
        return self.fixed[: len(probabilities)]


def data_of(tokens: list[list[str]], gold: list[int], weak: list[int] | None) -> TokenData:
    sentences = Sentences("here", tokens, [None] * len(tokens), [None] * len(tokens))
    codes = None if weak is None else np.array(weak)
    return TokenData(CLASSES, True, sentences, np.array(gold), codes, len(gold), None, None, [])


def test_weak_tags_are_scored_where_all_words_of_a_sentence_are_known() -> None:
    tokens = [["john", "left"], ["ann", "was", "seen"]]
    data = data_of(tokens, [3, 0, 3, -1, 0], [3, -1, 1, 1, 1])
    shares = weak_tag_shares(data)
    assert shares["labeled"] == {"count": 4, "of": 5}
    assert shares["sentences"] == 1
    assert shares["by_type"]["PER"] == {"precision": 1, "recall": 1, "f1": 1, "true": 1}
    assert "by_type" not in weak_tag_shares(data_of(tokens, [-1] * 5, [3, -1, 1, 1, 1]))


def test_example_sentences_are_kept() -> None:
    many = [["john", "left"]] * (SAMPLES + 5)
    long = [["john"] * (MOST_WORDS + 1)]
    plain = [["left", "was"]]  # without an entity
    tokens = long + plain + many
    codes = np.array([3] * len(long[0]) + [0, 0] + [3, 0] * len(many))
    part = TaggedSentences(Sentences("there", tokens, [None] * len(tokens), [None] * len(tokens)), codes)
    train = data_of([["john", "left"], ["ann", "left"]], [3, 0, 3, 0], [3, -1, 1, -1])
    judged = judge(train, part, np.eye(5)[codes] * 0.9 + 0.02, FixedTagger(["B-PER", "O"]), None)  # type: ignore[arg-type]
    assert [sample["words"] for sample in judged["samples"]] == many[:SAMPLES]
    assert judged["samples"][0]["spans"] == {"true": [[0, 1, "PER"]], "model": [[0, 1, "PER"]]}
    assert judged["calibration"]["temperature"] == 2.0
    assert judged["by_type"]["all"]["f1"] == 1
    better = judged["weak_wrong_model_right"]
    assert better["where"] == "training"
    assert [sample["words"] for sample in better["sentences"]] == [["ann", "left"]]
    assert better["sentences"][0]["spans"]["weak"] == [[0, 1, "LOC"]]


def record_of(**fields: Any) -> TokenRecord:
    """A record of a run on words with these fields."""
    required: dict[str, Any] = {
        "version": VERSION,
        "task": "tokens",
        "unit": "words",
        "measures": {"f1": "entity F1"},
        "method": "drift",
        "model": "default",
        "kind": "frozen",
        "classes": CLASSES,
        "entities": True,
        "weak": True,
        "training_rows": 4,
        "sentences": 7,
        "columns": {},
        "label_budget": {"train": 0, "dev": 0, "total": 0},
        "seeds": [0],
        "kept_seed": 0,
        "kept_because": "best on dev",
        "steps": 1,
        "seconds": 0.1,
        "start_on_dev": None,
        "best_steps": None,
    }
    return TokenRecord.model_validate({**required, **fields})


def test_the_page_says_how_words_without_a_weak_tag_are_treated() -> None:
    by_type = {"all": {"precision": 1.0, "recall": 0.5, "f1": 2 / 3, "true": 4}}
    record = record_of(
        weak_labels={"labeled": {"count": 3, "of": 4}, "sentences": 7, "by_type": by_type},
        uncovered={"chosen": "O", "dev": {"ignore": 0.125, "O": 0.5}},
    )
    (section,) = weak_tag_sections(record)
    assert section.tables[0].rows == [["all", "4", "100.00", "50.00", "66.67"]]
    text = " ".join(section.paragraphs)
    assert "75.0% of 4 words have a weak tag." in text
    assert "On 7 sentences with gold tags" in text
    assert "Words without a weak tag are taken for O." in text
    assert "(left out: 12.50, taken for O: 50.00)" in text
    assert weak_tag_sections(record_of()) == []


def test_entities_are_marked_in_their_sentence() -> None:
    spans = {"true": [[0, 2, "PER"], [3, 4, "LOC"]], "model": []}
    record = record_of(
        by_type={"all": {"precision": 0.5, "recall": 0.25, "f1": 1 / 3, "true": 1234}},
        errors={"PER": {"right": 1}},
        samples=[{"words": ["mary", "smith", "in", "london", "."], "spans": spans}],
    )
    types, examples = type_sections(record, no_picture)
    assert types.tables[0].rows == [["all", "1,234", "50.00", "25.00", "33.33"]]
    assert types.tables[1].rows == [["PER", "1", "0", "0", "0", "0"]]
    ((true, model),) = examples.marked
    assert true.pieces == [("mary smith", "PER"), ("in", None), ("london", "LOC"), (".", None)]
    assert (model.whose, model.pieces) == ("model", [("mary smith in london .", None)])
    assert true.color("LOC") != true.color("PER")
    assert type_sections(record_of(), no_picture) == []
