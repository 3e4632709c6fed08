"""Text and label columns are guessed if the choice is clear; otherwise it is an error."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.data.columns import find_column, guess_label_column, guess_text_column, looks_multilabel
from drift.data.tables import Chunk, read_chunks
from drift.errors import ConfigError

PROSE = ["the cat sat on the mat and slept", "rain is expected in the north tonight"] * 10
OTHER_PROSE = ["a very long line of words that mean little", "yet another long line of words, as it is"] * 10
KEYS = [f"https://example.org/a-long-address/{row:08d}" for row in range(20)]
CLASSES = ["x", "y", None, "x"] * 5
NUMBERS = [float(row) + 0.5 for row in range(20)]


def text_of(**columns: list[Any]) -> str:
    return guess_text_column(list(columns), Chunk(columns, 0))


def label_of(text: str, /, **columns: list[Any]) -> str | None:
    return guess_label_column(list(columns), Chunk(columns, 0), text)


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"id": KEYS, "Text": ["short"] * 20, "label": CLASSES}, "Text"),
        ({"title": PROSE, "body": OTHER_PROSE}, "body"),
        ({"body": PROSE, "text": PROSE}, "text"),
        ({"text": NUMBERS, "notes": PROSE}, "notes"),
        ({"id": KEYS, "notes": PROSE, "kind": CLASSES, "score": NUMBERS}, "notes"),
        ({"title": ["short"] * 20, "abstract": PROSE}, "abstract"),
        ({"title": ["short"] * 20, "kind": CLASSES}, "title"),
        ({"anything": ["short"] * 20}, "anything"),
        ({"文": ["这是一个没有空格的相当长的中文句子，用来测试。"] * 20, "kind": CLASSES}, "文"),
    ],
)
def test_the_text_column(columns: dict[str, list[Any]], text: str) -> None:
    assert text_of(**columns) == text


def test_several_text_columns_or_none_are_an_error() -> None:
    with pytest.raises(
        ConfigError, match=r"2 columns hold texts \(title, abstract\).*--text COLUMN.*title, abstract, k$"
    ):
        text_of(title=PROSE, abstract=OTHER_PROSE, k=CLASSES)
    with pytest.raises(ConfigError, match=r"no column holds long texts; .*--text COLUMN\. Columns: f1, kind"):
        text_of(f1=NUMBERS, kind=CLASSES)
    with pytest.raises(ConfigError, match="no column holds long texts"):
        text_of(f1=[None] * 20)


def test_only_the_given_names_are_candidates() -> None:
    sample = Chunk({"text": PROSE, "label": PROSE, "kind": CLASSES}, 0)
    assert guess_text_column(["label", "kind"], sample) == "label"
    assert guess_label_column(["text", "kind"], sample, "text") == "kind"


@pytest.mark.parametrize(
    ("columns", "label"),
    [
        ({"text": PROSE, "Label": KEYS, "kind": CLASSES}, "Label"),
        ({"text": PROSE, "sentiment": CLASSES, "topic": CLASSES}, "topic"),
        ({"text": PROSE, "kind": CLASSES, "id": KEYS, "score": NUMBERS}, "kind"),
        ({"text": PROSE, "kind": [0, 1] * 10}, "kind"),
        ({"text": PROSE, "kind": [0.0, 1.0, float("nan"), 1.0] * 5}, "kind"),
        ({"text": PROSE, "split": ["train"] * 20}, None),
        ({"text": PROSE, "kind": ["x", "y"] + [""] * 18}, None),
        ({"text": PROSE, "tags": [["x"], ["y"]] * 10}, None),
        ({"text": PROSE}, None),
    ],
)
def test_the_label_column(columns: dict[str, list[Any]], label: str | None) -> None:
    assert label_of("text", **columns) == label


def test_the_text_is_never_the_label() -> None:
    assert label_of("topic", topic=PROSE, kind=CLASSES) == "kind"


def test_several_label_columns_are_an_error() -> None:
    with pytest.raises(ConfigError, match=r"2 columns could be the label \(kind, sort\).*--label COLUMN"):
        label_of("text", text=PROSE, kind=CLASSES, sort=[1, 2] * 10)


def test_a_wanted_column_is_found_or_the_nearest_is_named() -> None:
    names = ["Body", "topic"]
    assert find_column("topic", names, "data.csv") == "topic"
    with pytest.raises(ConfigError, match=r"^data\.csv has no column 'bdy'; did you mean 'Body'\?$"):
        find_column("bdy", names, "data.csv")
    with pytest.raises(ConfigError, match=r"did you mean 'Body'"):
        find_column("body", names, "data.csv")
    with pytest.raises(ConfigError, match=r"^the DataFrame has no column 'zzz' \(there are: Body, topic\)$"):
        find_column("zzz", names, "the DataFrame")


@pytest.mark.parametrize(
    ("values", "example"),
    [
        ([None, ["a"], ["a", "b"]], "['a']"),
        ([None, ("a", "b")], "('a', 'b')"),
        (["a", "['a', 'b']"], "['a', 'b']"),
        (["a", '["a", "b"]'], '["a", "b"]'),
        (["a", "b", "c"] * 3 + ["a|b"], "a|b"),
        (["a", "b", "c"] * 3 + ["a; d", "a; b; c"], "a; b; c"),
        (["sci", "tech"] * 3 + ["sci/tech"], "sci/tech"),
    ],
)
def test_several_labels_per_row_are_detected(values: list[Any], example: str) -> None:
    assert looks_multilabel(values) == example


@pytest.mark.parametrize(
    "values",
    [
        ["World", "Sports", "Business", "Sci/Tech"] * 50,
        ["New York, NY", "Albany, NY", "Boston, MA"] * 50 + ["NY"] * 50,
        ["Sports|Football", "Sports|Tennis", "Sports"] * 50,
        ["a", "b"] * 2 + ["a|b"],
        ["[a, b]", "[unclear]", "[]", "['x']", "[{[]: 1}]", "[" * 5000 + "]"] * 5,
        [0, 1, None, 2.5, True, float("nan")] * 5,
        ["|", ";", "", " , "] * 5,
        [],
    ],
)
def test_one_label_per_row_is_accepted(values: list[Any]) -> None:
    assert looks_multilabel(values) is None


@given(st.lists(st.none() | st.text("ab|;,/ []'", max_size=8) | st.integers()))
def test_an_example_is_one_of_the_values(values: list[Any]) -> None:
    example = looks_multilabel(values)
    assert example is None or example in [value.strip() for value in values if isinstance(value, str)]


@pytest.mark.skipif("DRIFT_DATA" not in os.environ, reason="DRIFT_DATA is not set")
@pytest.mark.parametrize("folder", ["agnews", "yelp"])
def test_real_tables(folder: str) -> None:
    sample = next(read_chunks(Path(os.environ["DRIFT_DATA"]) / folder / "train.jsonl.gz"))
    names = list(sample.columns)
    assert guess_text_column(names, sample) == "text"
    assert guess_label_column(names, sample, "text") == "label"
    assert looks_multilabel(sample.columns["label"]) is None
    renamed = Chunk({"a": sample.columns["text"], "b": sample.columns["label"]}, 0)
    assert guess_text_column(["a", "b"], renamed) == "a"
    assert guess_label_column(["a", "b"], renamed, "a") == "b"
