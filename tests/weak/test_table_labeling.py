"""`label_table` and `label_sentence_table`: the labels of a whole table, in chunks, written beside its columns."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from drift.errors import ConfigError, DriftError
from drift.weak import RuleSet, TokenRuleSet, casting, label, label_sentence_table, label_table, label_tokens

RULES = RuleSet(
    [
        {"name": "good", "label": "pos", "has": ["good"]},
        {"name": "bad", "label": "neg", "has": ["bad"]},
        {"name": "older", "column": "old"},
    ],
    ["pos", "neg"],
    ties="random",
)
TEXTS = ["good", "bad", "good and bad", "", "good but bad", "neither", "bad or good"]
OLD = ["", "pos", "", "neg", "", "", ""]
GOLD = ["pos", "pos", "", "neg", "neg", "pos", ""]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = zip(range(7), TEXTS, OLD, GOLD, strict=True)
    path = tmp_path / "t.csv"
    path.write_text("id,text,old,gold\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_labels_and_summary_are_those_of_label_whatever_the_chunks(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_jobs: int
) -> None:
    expected = label({"text": TEXTS, "old": OLD}, RULES, gold=GOLD, seed=5)
    monkeypatch.setattr(casting, "TEXTS_PER_BATCH", 2)
    done: list[int] = []
    options: dict[str, Any] = {"gold": "gold", "seed": 5, "n_jobs": n_jobs}
    summary = label_table(table, RULES, tmp_path / "out.csv", tick=done.append, votes=True, **options)
    assert summary == expected.summary
    assert done == [2, 2, 2, 1]
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["weak"] for row in rows] == [name or "" for name in expected.labels]
    assert [row["id"] for row in rows] == [str(number) for number in range(7)]
    assert list(rows[0]) == ["id", "text", "old", "gold", "weak", "vote_good", "vote_bad", "vote_older"]
    assert [row["vote_older"] for row in rows] == OLD


def test_without_out_it_only_measures(table: Path, tmp_path: Path) -> None:
    assert label_table(table, RULES, gold="gold") == label(table, RULES, gold="gold").summary
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_frames_too(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": TEXTS, "old": [value or None for value in OLD]})
    summary = label_table(frame, RULES, tmp_path / "out.jsonl", seed=5)
    assert summary == label({"text": TEXTS, "old": OLD}, RULES, seed=5).summary
    with pytest.raises(ConfigError, match="the DataFrame has a column 'text' already"):
        label_table(frame, RULES, column="text")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": "txt"}, "has no column 'txt'; did you mean 'text'?"),
        ({"n_jobs": 0}, "n_jobs=0 is not a number of processes"),
        ({"seed": -1}, "seed=-1 is not a seed"),
        ({"ties": "first"}, "ties='first' is not one of"),
        ({"rules": "none.yaml"}, "none.yaml cannot be read"),
        ({"rules": RuleSet([{"name": "r", "column": "odl"}], ["pos"])}, "has no column 'odl'; did you mean 'old'?"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(table: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DriftError) as caught:
        label_table(table, **{"rules": RULES, "out": table.with_name("out.csv"), **options})
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert [path.name for path in table.parent.iterdir()] == ["t.csv"]


TOKEN_RULES = TokenRuleSet([{"name": "a", "token": "a", "type": "X"}, {"name": "b", "token": "b", "type": "O"}])


def test_sentences(tmp_path: Path) -> None:
    (tmp_path / "s.conll").write_text("a B-X\nc O\n\nb O\n")
    summary = label_sentence_table(tmp_path / "s.conll", TOKEN_RULES, tmp_path / "out.jsonl", column="guess")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert rows == [
        {"tokens": ["a", "c"], "labels": ["B-X", "O"], "guess": ["B-X", None]},
        {"tokens": ["b"], "labels": ["O"], "guess": ["O"]},
    ]
    assert summary == label_tokens(tmp_path / "s.conll", TOKEN_RULES).summary
    assert (summary.together.right, summary.together.gold) == (1, 1)
    with pytest.raises(ConfigError, match="tags are lists, which only JSON lines and Parquet hold"):
        label_sentence_table(tmp_path / "s.conll", TOKEN_RULES, tmp_path / "out.csv")


def test_sentences_without_gold(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text('{"tokens": ["a"]}\n')
    label_sentence_table(tmp_path / "s.jsonl", TOKEN_RULES, tmp_path / "out.jsonl.gz")
    assert label_tokens(tmp_path / "out.jsonl.gz", TOKEN_RULES).tags == [["B-X"]]
    label_sentence_table(tmp_path / "s.jsonl", TOKEN_RULES, tmp_path / "out.jsonl")
    assert json.loads((tmp_path / "out.jsonl").read_text()) == {"tokens": ["a"], "weak": ["B-X"]}
