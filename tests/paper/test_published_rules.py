"""The published rules, converted to our format, reproduce the published weak labels."""

import gzip
import json
import os
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from drift.errors import DataError, PackageError
from drift.paper.published_rules import convert_published
from drift.weak import PythonRule, RuleSet, label

DATA = Path(os.environ.get("DRIFT_DATA") or "not there")
needs_data = pytest.mark.skipif(not (DATA / "agnews").is_dir(), reason="DRIFT_DATA is not set to a folder with agnews")


def published(name: str) -> RuleSet:
    return convert_published(json.loads((DATA / name / "rules.json").read_text()))


def agreement(name: str, rules: RuleSet, rows: int | None = None) -> float:
    with gzip.open(DATA / name / "train.jsonl.gz", "rt", encoding="utf-8") as file:
        examples: list[dict[str, Any]] = [json.loads(line) for line in islice(file, rows)]
    labels = label([row["text"] for row in examples], rules).labels
    same = [mine == row["weak"] for mine, row in zip(labels, examples, strict=True)]
    return sum(same) / len(same)


@needs_data
def test_agnews_on_every_row_also_after_yaml(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(published("agnews").to_yaml())
    rules = RuleSet.from_yaml(tmp_path / "rules.yaml")
    assert agreement("agnews", rules) == 1


@needs_data
def test_imdb() -> None:
    assert agreement("imdb", published("imdb"), 3000) > 0.995


@needs_data
def test_yelp_without_the_textblob_rule() -> None:
    rules = published("yelp")
    without = [each for each in rules.rules if not isinstance(each, PythonRule)]
    assert len(without) == len(rules.rules) - 1
    assert agreement("yelp", RuleSet(without, rules.classes), 5000) > 0.97


@needs_data
def test_yelp_with_the_textblob_rule() -> None:
    pytest.importorskip("textblob", reason="textblob is not installed")
    assert agreement("yelp", published("yelp"), 500) > 0.985


POLARITY = {
    "classes": ["negative", "positive"],
    "rules": [{"name": "blob", "type": "textblob polarity: < -0.5 neg, > 0.5 pos"}],
}


def test_textblob() -> None:
    pytest.importorskip("textblob", reason="textblob is not installed")
    weak_labels = label(["a great, perfect day", "the worst", "a table"], convert_published(POLARITY))
    assert weak_labels.labels == ["positive", "negative", None]


def test_without_textblob_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textblob", None)
    with pytest.raises(PackageError, match="pip install textblob"):
        label(["a great day"], convert_published(POLARITY))


@pytest.mark.parametrize("content", [None, {}, {"classes": ["a", "b"], "rules": [{"name": "r"}]}])
def test_other_files_are_refused(content: Any) -> None:
    with pytest.raises(DataError, match="these are not published rules"):
        convert_published(content)
