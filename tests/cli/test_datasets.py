"""`drift datasets`: the paper's tables 6 and 7, beside what is on disk."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from drift.paper.bench.datasets import count_folder
from tests.cli.conftest import Call


def write(folder: Path, **parts: list[Any]) -> Path:
    folder.mkdir(parents=True)
    for part, rows in parts.items():
        with gzip.open(folder / f"{part}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return folder


def lines_of(shown: str) -> dict[str, str]:
    return {line.split()[0]: line for line in shown.splitlines() if line.strip()}


def test_texts_are_counted_with_their_weak_labels(tmp_path: Path) -> None:
    train = [
        {"text": "a", "label": "pos", "weak": "pos"},
        {"text": "b", "label": "neg", "weak": "pos"},
        {"text": "c", "label": "neg", "weak": None},
        {"text": "d", "label": None, "weak": "neg"},
    ]
    found = count_folder(write(tmp_path / "imdb", train=train, dev=train[:2]))
    assert found.rows == {"train": 4, "dev": 2}
    assert found.classes == {"pos", "neg"}
    assert found.weak_text() == "75 %, 50 % right"


def test_words_are_counted_one_by_one_and_o_is_no_class(tmp_path: Path) -> None:
    train = [
        {"tokens": ["a", "b", "c"], "labels": ["B-PER", "I-PER", "O"], "weak": ["B-PER", "O", None]},
        {"tokens": ["d"], "labels": None, "weak": ["B-LOC"]},
    ]
    found = count_folder(write(tmp_path / "wikigold", train=train))
    assert found.classes == {"PER", "LOC"}
    assert found.weak_text() == "75 %, 50 % right"


def test_what_is_found_stands_beside_the_paper(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_DATA", str(tmp_path))
    write(tmp_path / "imdb", train=[{"text": "a", "label": "pos", "weak": None}], test=[])
    (tmp_path / "yelp").mkdir()
    (tmp_path / "yelp" / "train.jsonl.gz").write_bytes(b"not gzip")
    write(tmp_path / "amazon", train=["just text"])
    code, shown, _ = call("datasets")
    lines = lines_of(shown)
    assert code == 0
    assert "20k / 2.5k / 2.5k" in lines["IMDB"]
    assert "1 / not found / 0" in lines["IMDB"]
    assert "cannot be read" in lines["Yelp"]
    assert "cannot be read" in lines["Amazon"]
    assert "not found" in lines["AGNews"]
    assert "2,708" in lines["Cora"]
    assert "not found" in lines["Cora"]


def test_without_a_folder_the_paper_stands_alone(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRIFT_DATA", raising=False)
    code, shown, _ = call("datasets")
    assert code == 0
    assert "DRIFT_DATA is not set" in shown
    assert "108k / 12k / 7.6k" in shown


def test_damaged_graphs_are_told(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_DATA", str(tmp_path))
    (tmp_path / "planetoid" / "Cora" / "raw").mkdir(parents=True)
    code, shown, _ = call("datasets")
    assert code == 0
    assert "cannot be read" in lines_of(shown)["Cora"]
    assert "ind.cora.allx" in shown.splitlines()[-1]
