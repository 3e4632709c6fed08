"""`drift.check` and `drift.curve` on small tables: every issue is found where it is, and bad input is one line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drift
from drift.errors import ConfigError, DataError, FileError, LabelError
from tests.cli.conftest import Call, call  # noqa: F401
from tests.runs.small import WORDS, small_encoder, small_table, write_csv
from tests.runs.small_tokens import small_sentences

pandas = pytest.importorskip("pandas")
transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def checked(table: Any, encoder: str, **options: Any) -> Any:
    return drift.check(table, encoder=encoder, max_length=32, quiet=True, **options)


def rows_of(found: Any, issue: str) -> list[int]:
    return [finding.row for finding in found.of(issue)]


def test_every_issue_is_found_in_its_row(encoder: str, tmp_path: Path) -> None:
    table = small_table(60)
    table["topic"][7] = "money"  # of sport
    table["body"][20] = table["body"][18]  # a copy, with the same label
    table["body"][30] = table["body"][33]
    table["topic"][30] = "money"  # a copy with another label
    table["body"][40] = "  "
    table["body"][50] = " ".join(WORDS["money"] * 5)  # longer than the encoder reads
    table["body"][52] = "das ist nicht der text und auch nicht die antwort auf eine frage"
    for row in (10, 11, 12):
        table["body"][row] = "this is not the text that we have for you " + table["body"][row]
    test = {"body": [table["body"][4], "another"], "topic": ["money", "sport"]}
    found = checked(
        pandas.DataFrame(table), encoder, test=pandas.DataFrame(test), out=tmp_path / "f.csv", page=tmp_path / "f.html"
    )
    assert 8 in rows_of(found, "label")
    assert found.of("label")[0].suggested != found.of("label")[0].label
    assert rows_of(found, "duplicate") == [21]
    assert set(rows_of(found, "conflict")) == {31, 34}
    assert rows_of(found, "leak") == [5]
    assert found.of("leak")[0].others == "test 1"
    assert rows_of(found, "empty") == [41]
    assert rows_of(found, "truncated") == [51]
    assert rows_of(found, "language") == [53]
    assert (found.rows, found.labeled, list(found.classes), sum(found.counts)) == (60, 60, ["money", "sport"], 60)
    written = pandas.read_csv(tmp_path / "f.csv")
    assert list(zip(written["issue"], written["row"], strict=True)) == [(f.issue, f.row) for f in found.findings]
    assert "Suspected wrong labels" in (tmp_path / "f.html").read_text()


def test_labels_are_judged_only_where_there_are_enough(encoder: str) -> None:
    table = small_table(20)
    table["topic"][:2] = ["rare", "rare"]
    found = checked(pandas.DataFrame(table), encoder)
    assert not {1, 2} & set(rows_of(found, "label"))
    assert any("labels of 'rare' are not judged" in note for note in found.notes)
    unlabelled = checked(pandas.DataFrame(table)[["body"]], encoder)
    assert unlabelled.estimated_errors is None
    assert any("labels are not judged" in note for note in unlabelled.notes)


def test_an_encoder_reads_no_more_tokens_than_it_can(encoder: str) -> None:
    table = pandas.DataFrame(small_table(60))
    table.loc[0, "body"] = "team " * 80
    found = drift.check(table, encoder=encoder, quiet=True)  # 256 tokens by default; the encoder takes 64
    assert [(each.row, each.detail) for each in found.of("truncated")] == [(1, "longer than 64 tokens")]
    assert drift.curve(table, encoder=encoder, quiet=True).labels == 60


def test_texts_that_were_cut_when_they_were_stored(encoder: str) -> None:
    table = small_table(20)
    for row in range(6):
        table["body"][row] = (table["body"][row] + " win" * 40)[:80]
    assert set(rows_of(checked(pandas.DataFrame(table), encoder), "truncated")) == {1, 2, 3, 4, 5, 6}


def test_feature_vectors() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = 5 * np.eye(3)[y] + rng.normal(size=(120, 3))
    X[100] = X[1]
    wrong = y.copy()
    wrong[5] = (y[5] + 1) % 3
    found = drift.check(X, wrong, quiet=True)
    assert 6 in rows_of(found, "label")
    assert rows_of(found, "duplicate" if y[100] == y[1] else "conflict")[-1] == 101
    drawn = drift.curve(X, y, quiet=True)
    assert drawn.labels == 120
    for function in (drift.check, drift.curve):
        with pytest.raises(ConfigError, match="without labels"):
            function(X)
        with pytest.raises(DataError, match="119 labels"):
            function(X, y[:-1])
        with pytest.raises(DataError, match="not finite"):
            function(np.where(X.min() + 1 > X, np.nan, X), y)


def test_sentences() -> None:
    table = small_sentences(40)
    rows = [row for row, words in enumerate(table["tokens"]) if "paris" in words]
    place = table["tokens"][rows[-1]].index("paris")
    table["ner_tags"][rows[-1]][place] = "O"
    found = drift.check(pandas.DataFrame(table), task="tokens", quiet=True)
    assert rows_of(found, "missing") == [rows[-1] + 1]
    assert found.of("missing")[0].suggested == "LOC"
    with pytest.raises(LabelError, match="no sentence has tags"):
        drift.check(pandas.DataFrame(small_sentences(5, labeled=0)), task="tokens", quiet=True)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"text": "bdy"}, ConfigError, "did you mean 'body'"),
        ({"out": "f.docx"}, FileError, "docx"),
        ({"task": "nodes"}, ConfigError, "--task nodes cannot be checked"),
        ({"task": "nothing"}, ConfigError, "nothing"),
    ],
)
def test_bad_input_is_one_line(encoder: str, options: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        checked(pandas.DataFrame(small_table(10)), encoder, **options)
    assert "\n" not in str(caught.value)


def test_curves(encoder: str, tmp_path: Path) -> None:
    table = pandas.DataFrame(small_table(60, labeled=40))
    drawn = drift.curve(table, encoder=encoder, max_length=32, out=tmp_path / "curve.png", quiet=True)
    assert drawn.labels == 40
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(FileError, match=r"curve\.txt is not a picture"):
        drift.curve(table, encoder=encoder, out=tmp_path / "curve.txt")
    with pytest.raises(LabelError, match="none of the 60 rows has a label"):
        drift.curve(table[["id", "body"]], encoder=encoder, quiet=True)
    with pytest.raises(ConfigError, match="--task tokens"):
        drift.curve(table, task="tokens")


def test_the_commands(call: Call, encoder: str, tmp_path: Path) -> None:  # noqa: F811
    table = small_table(60)
    table["body"][20] = table["body"][18]
    path = write_csv(tmp_path / "t.csv", table)
    options = ["--encoder", encoder, "--max-length", "32", "--quiet"]
    code, output, errors = call("check", path, *options, "-o", str(tmp_path / "f.jsonl"))
    assert (code, errors) == (0, "")
    assert "60 texts, 60 with a label" in output
    assert "other copies" in output
    written = [json.loads(line) for line in (tmp_path / "f.jsonl").read_text().splitlines()]
    assert any(each["row"] == 21 and each["others"].startswith("19") for each in written)
    code, output, errors = call("curve", path, *options)
    assert (code, errors) == (0, "")
    assert output.startswith("60 labels of 2 classes")
    assert "extrapolated" in output
    code, _, errors = call("check", str(tmp_path / "none.csv"))
    assert code == 2
    assert errors.count("\n") == 1
