"""`label`: texts or a table in, votes, labels and a summary out."""

from pathlib import Path
from typing import Any

import pytest

from drift.errors import DataError
from drift.weak import RuleSet, Share, label

RULES = RuleSet(
    [
        {"name": "good", "label": "pos", "has": ["good"], "weight": 2},
        {"name": "bad", "label": "neg", "has": ["bad"]},
        {"name": "awful", "label": "neg", "has": ["awful"]},
    ]
)
TEXTS = ["good", "bad", "good but awful", "good, bad, awful", "", None]


def test_texts() -> None:
    found = label(TEXTS, RULES, gold=["pos", "pos", None, "neg", "neg", ""])
    assert found.labels == ["pos", "neg", "pos", None, None, None]  # two votes against one of weight 2
    assert found.votes.shape == (6, 3)
    assert found.classes == ("pos", "neg")
    assert (found.summary.labeled, found.summary.accuracy) == (Share(3, 6), Share(1, 2))
    assert label(TEXTS, RULES, ties="order").labels[3] == "pos"


def tables() -> list[Any]:
    pandas = pytest.importorskip("pandas")
    columns = {"body": TEXTS, "label": ["pos"] * 6}
    return [columns, pandas.DataFrame(columns)]


@pytest.mark.parametrize("kind", [0, 1], ids=["dict", "DataFrame"])
def test_tables(kind: int) -> None:
    found = label(tables()[kind], RULES, text="body", gold="label")
    assert found.labels == label(TEXTS, RULES).labels
    assert found.summary.accuracy == Share(2, 3)
    with pytest.raises(DataError, match="no column 'bodi'; did you mean 'body'"):
        label(tables()[kind], RULES, text="bodi")


def test_a_dataset() -> None:
    datasets = pytest.importorskip("datasets")
    columns = {"text": TEXTS, "gold": [1, 1, -1, 0, 0, -1]}
    dataset = datasets.Dataset.from_dict(columns).cast_column("gold", datasets.ClassLabel(names=["neg", "pos"]))
    found = label(dataset, RULES, gold="gold")
    assert found.labels == label(TEXTS, RULES).labels
    assert found.summary.accuracy == Share(1, 2)


def test_rules_by_path(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES.to_yaml())
    assert label(TEXTS, tmp_path / "rules.yaml").labels == label(TEXTS, RULES).labels


def test_what_is_no_texts_is_refused() -> None:
    with pytest.raises(DataError, match=r"'texts\.csv' is one string"):
        label("texts.csv", RULES)
    with pytest.raises(DataError, match="gold='label' names a column"):
        label(TEXTS, RULES, gold="label")
