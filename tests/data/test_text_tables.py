"""Every source gives the same texts and labels; errors name the position."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from drift.data.text_tables import TextColumns, choose_columns, label_of, read_texts, text_of
from drift.errors import ConfigError, DataError, DriftError, LabelError

datasets = pytest.importorskip("datasets", reason="needs datasets: pip install 'drift-ssl[text]'")
pandas = pytest.importorskip("pandas")

ROWS = 2500  # more than one chunk
TABLE: dict[str, list[Any]] = {
    "id": [str(row) for row in range(ROWS)],
    "body": [f"text number {row}, with a comma" if row % 7 else "" for row in range(ROWS)],
    "topic": [("a", "b", "")[row % 3] for row in range(ROWS)],
}
LABELS = [label or None for label in TABLE["topic"]]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))


def written(folder: Path, content: str) -> str:
    (folder / "t.csv").write_text(content)
    return str(folder / "t.csv")


def in_form(form: str, folder: Path) -> Any:
    frame = pandas.DataFrame(TABLE)
    if form == "DataFrame":
        return frame
    if form == "Dataset":
        return datasets.Dataset.from_dict(TABLE)
    path = folder / f"table.{form}"
    if form == "parquet":
        frame.to_parquet(path)
    elif form == "jsonl.gz":
        lines = (json.dumps(dict(zip(TABLE, row, strict=True))) for row in zip(*TABLE.values(), strict=True))
        path.write_bytes(gzip.compress("\n".join(lines).encode()))
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("form", ["csv", "jsonl.gz", "parquet", "DataFrame", "Dataset"])
def test_every_source_gives_the_same_rows_in_order(form: str, tmp_path: Path) -> None:
    actual = read_texts(in_form(form, tmp_path), TextColumns("body", "topic", weak="topic"))
    assert list(actual.texts["text"]) == TABLE["body"]
    assert actual.labels == actual.weak == LABELS
    assert len(actual) == ROWS


def test_without_label_columns_there_are_no_labels(tmp_path: Path) -> None:
    actual = read_texts(in_form("csv", tmp_path), TextColumns("body"))
    assert actual.labels == actual.weak == [None] * ROWS


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, TextColumns("body", "topic", None, ("text: body", "label: topic"))),
        ({"text": "body"}, TextColumns("body", "topic", None, ("label: topic",))),
        ({"text": "id", "label": "body"}, TextColumns("id", "body")),
        ({"label": ""}, TextColumns("body", None, None, ("text: body",))),
        ({"label": "", "weak": "topic"}, TextColumns("body", None, "topic", ("text: body",))),
    ],
)
def test_columns_are_named_or_guessed(tmp_path: Path, given: dict[str, str], expected: TextColumns) -> None:
    assert choose_columns(in_form("csv", tmp_path), **given) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"text": "bdy"}, "has no column 'bdy'; did you mean 'body'?"),
        ({"label": "topics"}, "has no column 'topics'; did you mean 'topic'?"),
        ({"weak": "crowd"}, "has no column 'crowd'"),
        ({"text": "body", "label": "body"}, "body, body; each must be a column of its own"),
        ({"text": "body", "label": "topic", "weak": "topic"}, "each must be a column of its own"),
    ],
)
def test_invalid_columns(tmp_path: Path, given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        choose_columns(in_form("csv", tmp_path), **given)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "t.csv is empty"),
        ("text,label\n", "t.csv has no rows"),
        ("text,label\na,x\nb,y,z\n", "t.csv:3: 3 fields"),
        ("text,label\na,x\nb,y\nc,x|y\n" * 1 + "a,x\nb,y\nc,x|y\n" * 3, "several labels per row, such as 'x|y'"),
    ],
)
def test_a_table_that_cannot_be_read_is_a_one_line_error(tmp_path: Path, content: str, message: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DriftError) as error:
        read_texts(path, choose_columns(path, text="text", label="label"))
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert not list((tmp_path / "cache").rglob("*.arrow"))


def test_lists_are_several_labels(tmp_path: Path) -> None:
    table = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [["x"], ["y", "z"]]})
    with pytest.raises(LabelError, match="several labels per row"):
        read_texts(table, TextColumns("text", "label"))


def test_a_text_that_is_none_is_named_by_table_and_row() -> None:
    table = pandas.DataFrame({"text": ["fine", None, 7], "label": ["x", "y", "x"]})
    with pytest.raises(DataError, match=r"the DataFrame, row 3: the text is 7, not a string; .*--text"):
        read_texts(table, TextColumns("text", "label"))
    table["text"] = pandas.Series(["fine", "h\ud800lf", "fine"], dtype=object)
    with pytest.raises(DataError, match=r"the DataFrame, row 2: '\\ud800' is half a character"):
        read_texts(table, TextColumns("text", "label"))


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (" a ", "a"),
        ("", None),
        ("  ", None),
        (None, None),
        (float("nan"), None),
        (3, "3"),
        (3.0, "3"),
        (2.5, "2.5"),
        (True, "True"),
        ("0", "0"),
        (0, "0"),
    ],
)
def test_labels_are_strings_and_blanks_none(value: Any, label: str | None) -> None:
    assert label_of(value) == label


def test_integers_with_missing_values_keep_their_names() -> None:
    frame = pandas.DataFrame({"text": ["a", "b", "c"], "label": [1, None, 2]})  # pandas stores these as floats
    assert read_texts(frame, TextColumns("text", "label")).labels == ["1", None, "2"]


@pytest.mark.parametrize("value", [None, float("nan"), ""])
def test_a_blank_text_is_empty(value: Any) -> None:
    assert text_of(value, "table", 0) == ""
