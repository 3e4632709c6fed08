"""`label`: texts or a table in, votes, labels and a summary out."""

from pathlib import Path
from typing import Any

import pytest

from drift import weak
from drift.data.table_writer import TableWriter
from drift.errors import ConfigError, DataError, DriftError, FileError
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
    weak_labels = label(TEXTS, RULES, gold=["pos", "pos", None, "neg", "neg", ""])
    assert weak_labels.labels == ["pos", "neg", "pos", None, None, None]  # two votes against one of weight 2
    assert weak_labels.votes.shape == (6, 3)
    assert weak_labels.classes == ("pos", "neg")
    assert (weak_labels.summary.labeled, weak_labels.summary.accuracy) == (Share(3, 6), Share(1, 2))
    assert label(TEXTS, RULES, ties="order").labels[3] == "pos"


def tables() -> list[Any]:
    pandas = pytest.importorskip("pandas")
    columns = {"body": TEXTS, "label": ["pos"] * 6}
    return [columns, pandas.DataFrame(columns)]


@pytest.mark.parametrize("number", [0, 1], ids=["dict", "DataFrame"])
def test_tables(number: int) -> None:
    weak_labels = label(tables()[number], RULES, text="body", gold="label")
    assert weak_labels.labels == label(TEXTS, RULES).labels
    assert weak_labels.summary.accuracy == Share(2, 3)
    with pytest.raises(DataError, match="no column 'bodi'; did you mean 'body'"):
        label(tables()[number], RULES, text="bodi")


def test_a_dataset() -> None:
    datasets = pytest.importorskip("datasets")
    columns = {"text": TEXTS, "gold": [1, 1, -1, 0, 0, -1]}
    dataset = datasets.Dataset.from_dict(columns).cast_column("gold", datasets.ClassLabel(names=["neg", "pos"]))
    weak_labels = label(dataset, RULES, gold="gold")
    assert weak_labels.labels == label(TEXTS, RULES).labels
    assert weak_labels.summary.accuracy == Share(1, 2)


def test_rules_by_path(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES.to_yaml())
    assert label(TEXTS, tmp_path / "rules.yaml").labels == label(TEXTS, RULES).labels


def test_a_column_of_texts_with_another_name_is_detected() -> None:
    reviews = ["a good film", "a bad film", "none of it, really"] * 20
    assert label({"id": [*range(60)], "review": reviews}, RULES).labels == label(reviews, RULES).labels
    with pytest.raises(ConfigError, match=r"no column holds long texts; .* Columns: a, b"):
        label({"a": [1], "b": [2]}, RULES)


FILES = ["t.csv", "t.tsv", "t.jsonl", "t.csv.gz", "t.jsonl.gz", "t.parquet"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("as_path", [str, Path])
def test_files(tmp_path: Path, name: str, as_path: Any) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    gold = ["pos", "pos", None, "neg", "neg", None]
    with TableWriter(tmp_path / name) as table:
        table.write({"body": TEXTS, "topic": gold, "old": ["neg", None, None, None, "pos", None]})
    rules = RuleSet([*RULES.rules, {"name": "older", "column": "old"}], RULES.classes, ties="random")
    columns = {"body": TEXTS, "old": ["neg", None, None, None, "pos", None]}
    expected = label(columns, rules, text="body", gold=gold, seed=3)
    for truth in ("topic", gold):
        weak_labels = label(as_path(tmp_path / name), rules, gold=truth, seed=3)
        assert weak_labels.labels == expected.labels
        assert weak_labels.votes.tolist() == expected.votes.tolist()
        assert weak_labels.summary == expected.summary
    assert label(as_path(tmp_path / name), rules, seed=3).summary.accuracy == Share(0, 0)


def test_a_file_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("text\ngood café\n".encode("cp1252"))
    assert label(tmp_path / "t.csv", RULES, encoding="cp1252").labels == ["pos"]
    with pytest.raises(DataError, match="byte 0xe9 is not utf-8"):
        label(tmp_path / "t.csv", RULES)


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        ("none.csv", {}, FileError, "none.csv is not there"),
        ("t.csv", {"text": "bodi"}, ConfigError, "t.csv has no column 'bodi'; did you mean 'body'?"),
        ("t.csv", {"gold": "topics"}, ConfigError, "t.csv has no column 'topics'; did you mean 'topic'?"),
        ("t.csv", {"gold": ["pos", "neg"]}, DriftError, "gold labels for 2 texts do not fit together"),
        ("a text\nof two lines", {}, DataError, r"texts: 'a text\nof two lines' is not the path of a table (.csv, "),
        ("good " * 2000, {}, DataError, "good good ' is not the path of a table"),
        (Path("texts.doc"), {}, FileError, "texts.doc: the name does not end in a format known here"),
    ],
)
def test_errors_about_files_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Any, options: Any, error: type[Exception], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("body,topic\na good film indeed,pos\n")
    with pytest.raises(error) as caught:
        label(source, RULES, **options)
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_list_of_strings_is_texts_even_if_they_look_like_paths() -> None:
    assert label(["good.csv", "bad.csv"], RULES).labels == ["pos", "neg"]


def test_jobs_is_the_deprecated_name_of_n_jobs() -> None:
    with pytest.warns(FutureWarning, match="^jobs is deprecated; use n_jobs$") as warned:
        assert label(TEXTS, RULES, jobs=1).labels == label(TEXTS, RULES, n_jobs=1).labels
    assert (len(warned), warned[0].filename) == (1, __file__)


@pytest.mark.parametrize(
    ("old", "new"),
    [("Labeled", "drift.weak.WeakLabels"), ("convert_published", "drift.paper.published_rules.convert_published")],
)
def test_old_names_of_the_package_still_work(old: str, new: str) -> None:
    with pytest.warns(FutureWarning, match=f"^drift.weak.{old} is deprecated; use {new}$") as warned:
        renamed = getattr(weak, old)
    assert (renamed.__name__, warned[0].filename) == (new.rpartition(".")[2], __file__)
    assert old not in weak.__all__


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match=r"'drift\.weak' has no attribute 'labels'"):
        weak.labels  # noqa: B018


def test_invalid_texts_are_refused() -> None:
    with pytest.raises(DataError, match="gold='label' names a column"):
        label(TEXTS, RULES, gold="label")
    for value in (None, 3):
        with pytest.raises(DataError, match=f"^texts: {value} is not a list; give a list$"):
            label(value, RULES)
    with pytest.raises(DataError, match=r"^column 'text': 'abc' is not a list; give a list$"):
        label({"text": "abc"}, RULES)
    with pytest.raises(DataError, match=r"^gold: 3 is not a list; give a list$"):
        label(TEXTS, RULES, gold=3)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"no column 'text'.*there are: 1"):
        label({1: TEXTS}, RULES)


def test_rules_in_a_list() -> None:
    assert label(TEXTS, [*RULES.rules]).labels == label(TEXTS, RULES).labels
    assert label(["good"], [{"name": "r", "label": "pos", "has": ["good"]}]).labels == ["pos"]
    with pytest.raises(ConfigError, match=r"^rules: rule number 1: give keys and values, not 3$"):
        label(TEXTS, [3])  # type: ignore[list-item]


@pytest.mark.parametrize(
    "value", [None, 3, {"name": "r"}, TokenRuleSet([{"name": "r", "type": "X", "phrases": ["a"]}])]
)
def test_invalid_rules_are_refused(value: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"^rules: .* is not a RuleSet; give one, a list of rules, or the path of a file$"
    ):
        label(TEXTS, value)


def test_invalid_ties_and_seeds_are_refused() -> None:
    with pytest.raises(ConfigError, match="ties='' is not one of"):
        label(TEXTS, RULES, ties="")  # type: ignore[arg-type]
    for seed in ("x", -1):
        with pytest.raises(
            ConfigError, match=f"seed={seed!r} is not a seed; give an integer >= 0 or a NumPy generator"
        ):
            label(TEXTS, RULES, ties="random", seed=seed)  # type: ignore[arg-type]
