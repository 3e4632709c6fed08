"""Tables to training data: classes, labels and rows; and what a run must never look at."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drift.data.labels import UNLABELED
from drift.errors import ConfigError, DriftError, FileError, LabelError
from drift.tasks.text.data import TextData, read_text_data
from drift.tasks.text.settings import TextDataSettings
from drift.weak import RuleSet
from tests.runs.small import small_table, write_csv

datasets = pytest.importorskip("datasets", reason="needs datasets: pip install 'drift-ssl[text]'")
pandas = pytest.importorskip("pandas")

RULES = """\
classes: [money, sport]
rules:
  - {name: games, label: sport, has: [team, goal, coach, win]}
  - {name: banks, label: money, has: [bank, stock, fund, trade]}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))


def read(train: Any, *, seed: int = 0, sources: dict[str, Any] | None = None, **settings: Any) -> TextData:
    def table(source: Any) -> Any:
        return pandas.DataFrame(source) if isinstance(source, dict) else source

    tables = {part: table(source) for part, source in {"train": train, **(sources or {})}.items()}
    return read_text_data(TextDataSettings(text="body", **settings), tables, seed=seed)


def with_noise(table: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The table with a column `crowd` that is right in three of four rows."""
    other = {"money": "sport", "sport": "money"}
    noisy = [other[topic] if row % 4 == 3 else topic for row, topic in enumerate(table["topic"])]
    return {**table, "crowd": noisy}


def test_classes_are_sorted_and_blank_rows_unlabelled() -> None:
    data = read(small_table(10, labeled=4))
    assert data.classes == ["money", "sport"]
    assert data.gold.tolist() == [0, 1, 0, 1] + [UNLABELED] * 6
    assert data.weak is None
    assert data.labeled_rows(None, 0).tolist() == [0, 1, 2, 3]
    assert list(data.texts["text"]) == small_table(10)["body"]


def test_the_unlabelled_table_comes_after_train_and_its_labels_are_not_read() -> None:
    more = small_table(6, seed=1)
    data = read(small_table(10), sources={"unlabeled": {**more, "topic": ["nonsense"] * 6}})
    assert list(data.texts["text"]) == small_table(10)["body"] + more["body"]
    assert data.gold[10:].tolist() == [UNLABELED] * 6
    assert data.classes == ["money", "sport"]
    del more["topic"]
    assert len(read(small_table(10), sources={"unlabeled": more}).gold) == 16


def test_dev_and_test_are_their_labelled_rows() -> None:
    data = read(small_table(10), sources={"dev": small_table(8, seed=1, labeled=5), "test": small_table(7, seed=2)})
    assert data.dev is not None
    assert data.test is not None
    assert list(data.dev.texts["text"]) == small_table(8, seed=1)["body"][:5]
    assert data.dev.codes.tolist() == [0, 1, 0, 1, 0]
    assert len(data.test.codes) == 7


def test_numbered_classes_of_a_dataset_are_read_by_name() -> None:
    names = ["sport", "money"]  # not in the order in which classes are numbered here

    def numbered(table: dict[str, list[Any]]) -> Any:
        codes = [-1 if topic is None else names.index(topic) for topic in table["topic"]]
        dataset = datasets.Dataset.from_dict({**table, "topic": codes})
        return dataset.cast_column("topic", datasets.ClassLabel(names=names))

    train, dev = small_table(10, labeled=4), small_table(8, seed=1, labeled=5)
    data, expected = read(numbered(train), sources={"dev": numbered(dev)}), read(train, sources={"dev": dev})
    assert data.classes == expected.classes
    assert data.gold.tolist() == expected.gold.tolist()
    assert data.dev is not None
    assert expected.dev is not None
    assert data.dev.codes.tolist() == expected.dev.codes.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"topic": ["money"] * 12}, "every label is 'money'; a classifier needs at least two classes"),
        ({"topic": [None] * 12}, "none of the 12 rows has a label; name their column with --label"),
    ],
)
def test_train_needs_two_classes(change: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(LabelError) as error:
        read({**small_table(12), **change}, label="topic")
    assert message in str(error.value)


def test_a_class_that_train_does_not_have_is_refused_in_dev_with_its_row() -> None:
    other = {**small_table(3), "topic": ["money", "weather", "sport"]}
    with pytest.raises(LabelError, match=r"row 2: label 'weather' is not among the training labels \(money, sport\)"):
        read(small_table(10), sources={"dev": other})


@pytest.mark.parametrize("part", ["dev", "test"])
def test_dev_and_test_need_a_label_to_score_against(part: str) -> None:
    other = {**small_table(3), "topic": ["money", "weather", "sport"]}
    with pytest.raises(LabelError, match="none of the 3 rows has a label to score against"):
        read(small_table(10), sources={part: {**other, "topic": [None] * 3}})


def test_labels_per_class_keeps_as_many_by_seed() -> None:
    data = read(small_table(40))
    chosen = [data.labeled_rows(5, seed) for seed in range(4)]
    assert all(np.bincount(data.gold[rows]).tolist() == [5, 5] for rows in chosen)
    assert len({tuple(rows) for rows in chosen}) == 4
    assert (data.labeled_rows(5, 2) == chosen[2]).all()


def test_more_labels_than_a_class_has_are_refused_by_its_name() -> None:
    with pytest.raises(LabelError, match=r"class 'sport' has 5 labelled rows, 6 were asked for; ask for fewer"):
        read(small_table(30, labeled=11), labels_per_class=6)


def test_fewer_rows_are_a_choice_by_seed() -> None:
    everything = {"dev": small_table(30, seed=1), "test": small_table(30, seed=2)}
    data, again, other = (
        read(small_table(40), sources=everything, seed=seed, train_rows=20, dev_rows=6, test_rows=7)
        for seed in (0, 0, 1)
    )
    assert (len(data.gold), len(data.dev.codes), len(data.test.codes)) == (20, 6, 7)
    assert list(data.texts["text"]) == list(again.texts["text"]) != list(other.texts["text"])
    topic = dict(zip(small_table(40)["body"], small_table(40)["topic"], strict=True))
    assert [data.classes[code] for code in data.gold] == [topic[text] for text in data.texts["text"]]
    with pytest.raises(LabelError, match=r"fewer than two classes; raise data\.train_rows"):
        read(small_table(40, labeled=4), train_rows=1)


def test_rows_that_are_in_two_tables_give_a_warning() -> None:
    train, test = small_table(10), small_table(6, seed=1)
    test["body"][:2] = train["body"][3:5]
    notes = read(train, sources={"test": test, "dev": small_table(6, seed=2)}).notes
    assert "warning: 2 training rows are in test too, word for word; scores on it are too good" in notes
    assert not any("in dev" in note for note in notes)


def test_a_written_blank_is_taken_for_a_class_with_a_warning() -> None:
    data = read({**small_table(9), "topic": ["a", "b", "nan"] * 3})
    assert data.classes == ["a", "b", "nan"]
    assert any("'nan' is taken for a class" in note for note in data.notes)


def test_a_number_written_in_two_ways_is_refused_with_a_hint() -> None:
    train, test = ({**small_table(6), "topic": topics * 3} for topics in (["0.0", "1.0"], ["0", "1"]))
    with pytest.raises(LabelError, match=r"label '0' is not among .*; if it is '0.0', write both alike"):
        read(train, sources={"test": test})


def test_classes_that_differ_only_by_case_give_a_warning() -> None:
    notes = read({**small_table(9), "topic": ["Sport", "sport", "money"] * 3}).notes
    assert "warning: 'Sport' and 'sport' are taken for two classes; write them alike if they are one" in notes


def test_weak_labels_are_trained_on_and_gold_ones_only_measure() -> None:
    table = with_noise(small_table(12))
    data = read(table, weak="crowd", label="topic")
    assert data.weak is not None
    assert [data.classes[code] for code in data.weak] == table["crowd"]
    assert [data.classes[code] for code in data.gold] == table["topic"]
    assert data.labeled_rows(2, 0).tolist() == list(range(12))  # a budget is of gold labels


def test_gold_labels_change_nothing_in_a_weak_run_but_what_is_measured(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    table = with_noise(small_table(12))
    flipped = {**table, "topic": ["elsewhere", None, "sport"] * 4}  # a class that no weak label names, too
    for settings in ({"weak": "crowd"}, {"rules": str(tmp_path / "rules.yaml")}):
        one, other = (read(each, label="topic", **settings) for each in (table, flipped))
        assert one.classes == other.classes
        assert one.weak is not None
        assert one.weak.tolist() == other.weak.tolist()
        assert list(one.texts["text"]) == list(other.texts["text"])
        assert (one.gold != other.gold).any()


def test_without_a_label_column_named_a_weak_run_looks_for_none() -> None:
    table = {**with_noise(small_table(20)), "country": ["de", "fr"] * 10, "source": ["a", "b"] * 10}
    data = read(table, weak="crowd")
    assert (data.gold == UNLABELED).all()
    noisy_dev = {name: values for name, values in with_noise(small_table(20)).items() if name in ("body", "crowd")}
    with pytest.raises(ConfigError, match="no column that looks like labels; name it with --label"):
        read(table, weak="crowd", sources={"dev": noisy_dev})


def test_rules_see_the_text_and_any_column_in_the_files_encoding(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES + "  - {name: crowd, column: text}\n")
    table = small_table(8)
    table["body"] = ["nothing", "é team", "nothing", "bank", "", "é", "goal", "x"]
    table["text"] = ["sport", "", "money", "", "sport", "", "", ""]  # a column, though not the one with the texts
    path = write_csv(tmp_path / "t.csv", table, encoding="cp1252")
    data = read(path, rules=str(tmp_path / "rules.yaml"), encoding="cp1252")
    assert data.weak is not None
    names = [None if code == UNLABELED else data.classes[code] for code in data.weak]
    assert names == ["sport", "sport", "money", "money", "sport", None, "sport", None]
    assert data.sources is not None
    assert data.sources.rules is not None


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (RULES.replace("label: sport", "label: sprot"), "'sprot' is not among the classes; did you mean 'sport'?"),
        (RULES.replace("has: [team, goal, coach, win]", "matches: '(['"), "re2 cannot read the pattern '(['"),
        (RULES + "  - {name: crowd, column: corwd}\n", "has no column 'corwd'; did you mean 'crowd'?"),
        (RULES.replace("bank, stock, fund, trade", "zebra"), "every weak label is 'sport'"),
        ("classes: [a, b]\nrules:\n  - {name: z, label: a, has: [zebra]}\n", "none of the 12 rows has a weak label"),
    ],
)
def test_rules_that_do_not_fit_are_one_line(tmp_path: Path, rules: str, message: str) -> None:
    (tmp_path / "rules.yaml").write_text(rules)
    path = write_csv(tmp_path / "t.csv", with_noise(small_table(12)))
    with pytest.raises(DriftError) as error:
        read(path, rules=str(tmp_path / "rules.yaml"))
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_extra_columns_are_in_the_order_of_the_texts() -> None:
    table, more = (
        {**each, "translated": [f"{text}!" for text in each["body"]]} for each in (small_table(12), small_table(5))
    )
    settings = TextDataSettings(text="body", label="topic", train_rows=8)
    sources = {"train": pandas.DataFrame(table), "unlabeled": pandas.DataFrame(more)}
    data = read_text_data(settings, sources, seed=3, extra_columns=["translated"])
    assert list(data.extra_columns["translated"]["text"]) == [f"{text}!" for text in data.texts["text"]]
    assert len(data.texts) == 13
    lacking = {**sources, "unlabeled": pandas.DataFrame(small_table(5))}
    with pytest.raises(DriftError, match="translated"):
        read_text_data(settings, lacking, seed=3, extra_columns=["translated"])


def test_named_classes_need_no_labelled_row() -> None:
    settings = TextDataSettings(text="body", label="topic")
    blank = {"train": pandas.DataFrame({**small_table(6), "topic": [None] * 6})}
    data = read_text_data(settings, blank, seed=0, named_classes=["sport", "money"])
    assert data.classes == ["money", "sport"]
    assert data.gold.tolist() == [UNLABELED] * 6
    assert not len(data.labeled_rows(None, 0))
    more = read_text_data(settings, {"train": pandas.DataFrame(small_table(6))}, seed=0, named_classes=["art", "sport"])
    assert more.classes == ["art", "money", "sport"]
    with pytest.raises(LabelError, match="class 'art' has 0 labelled rows, 2 were asked for"):
        read_text_data(
            settings.model_copy(update={"labels_per_class": 2}),
            {"train": pandas.DataFrame(small_table(6))},
            seed=0,
            named_classes=["art", "sport"],
        )


@pytest.mark.parametrize("part", ["unlabeled", "dev", "test"])
def test_other_tables_are_read_after_the_classes_of_train_are_known(part: str) -> None:
    with pytest.raises(LabelError, match="every label is 'money'"):
        read({**small_table(6), "topic": ["money"] * 6}, sources={part: "no such file.csv"}, label="topic")
    with pytest.raises(FileError, match="no such file"):
        read(small_table(6), sources={part: "no such file.csv"}, label="topic")


def test_rules_may_be_an_object(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    table = pandas.DataFrame(small_table(12))
    from_file = read(table, rules=str(tmp_path / "rules.yaml"))
    rules = RuleSet.from_file(tmp_path / "rules.yaml")
    from_object = read(table, sources={"rules": rules}, rules="a RuleSet")
    assert from_file.weak is not None
    assert from_object.weak is not None
    assert from_object.weak.tolist() == from_file.weak.tolist()
