"""`label`: texts or a table in, votes, labels and a summary out."""

from pathlib import Path
from typing import Any

import pytest

from drift.errors import ConfigError, DataError
from drift.weak import RuleSet, Share, TokenRuleSet, label

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
    for given in (None, 3):
        with pytest.raises(DataError, match=f"^texts: {given} is no list; give one$"):
            label(given, RULES)
    with pytest.raises(DataError, match=r"^column 'text': 'abc' is no list; give one$"):
        label({"text": "abc"}, RULES)
    with pytest.raises(DataError, match=r"^gold: 3 is no list; give one$"):
        label(TEXTS, RULES, gold=3)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"no column 'text'.*there are: 1"):
        label({1: TEXTS}, RULES)


def test_rules_in_a_list() -> None:
    assert label(TEXTS, [*RULES.rules]).labels == label(TEXTS, RULES).labels
    assert label(["good"], [{"name": "r", "label": "pos", "has": ["good"]}]).labels == ["pos"]
    with pytest.raises(ConfigError, match=r"^rules: rule number 1: give keys and values, not 3$"):
        label(TEXTS, [3])  # type: ignore[list-item]


@pytest.mark.parametrize(
    "given", [None, 3, {"name": "r"}, TokenRuleSet([{"name": "r", "type": "X", "phrases": ["a"]}])]
)
def test_what_is_no_rules_is_refused(given: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"^rules: .* is no RuleSet; give one, a list of rules, or the path of a file$"
    ):
        label(TEXTS, given)


def test_ties_and_seeds_that_are_none() -> None:
    with pytest.raises(ConfigError, match="ties='' is not one of"):
        label(TEXTS, RULES, ties="")  # type: ignore[arg-type]
    for seed in ("x", -1):
        with pytest.raises(ConfigError, match=f"seed={seed!r} is no seed; give an integer from 0 up, or a generator"):
            label(TEXTS, RULES, ties="random", seed=seed)  # type: ignore[arg-type]
