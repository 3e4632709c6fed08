"""Tables as users have them: columns with other names in each table, weak columns, unknown labels, one file for all."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score

from drift.data.labels import UNLABELED
from drift.errors import ConfigError, DataError, DriftError, LabelError
from drift.runs.request import request
from drift.tasks.scoring import classification_scores
from drift.tasks.text.data import TextData, read_text_data
from tests.runs.small import small_encoder, small_fit, small_table, write_csv

pandas = pytest.importorskip("pandas")
pytest.importorskip("datasets", reason="needs datasets: pip install 'drift-ssl[text]'")

Table = dict[str, list[Any]]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))


def table(rows: int, seed: int = 0, **names: str) -> Table:
    """Texts and topics in columns of these names."""
    small = small_table(rows, seed=seed)
    return {new: small[old] for old, new in names.items()}


def read(train: Table, options: dict[str, str] | None = None, **others: Table) -> TextData:
    """What a run on these tables reads."""
    frames = {part: pandas.DataFrame(content) for part, content in others.items()}
    spec = request(pandas.DataFrame(train), **frames, **(options or {}))
    return read_text_data(spec.config.data, spec.sources, seed=0)


TEST = table(8, 1, body="text", topic="label")
TOPICS = [0, 1] * 4


@pytest.mark.parametrize(
    ("train", "options"),
    [
        (table(20, body="text", topic="weak"), {}),
        (table(20, body="text", topic="weak"), {"label": "label"}),
        (table(20, body="text", topic="weak"), {"weak": "weak", "label": "label"}),
        (table(20, body="text", topic="label"), {"weak": "label"}),
        (table(20, body="text", topic="label"), {"weak": "label", "label": "label"}),
        (table(20, body="body", topic="weak"), {"text": "body"}),
        (table(20, body="body", topic="weak"), {"text": "text", "label": "label"}),
        (table(20, body="body", topic="noisy_label"), {}),
        (table(20, body="content", topic="crowd"), {"weak": "crowd"}),
    ],
)
def test_weak_labels_in_train_and_gold_ones_in_test_by_any_names(train: Table, options: dict[str, str]) -> None:
    data = read(train, options, test=TEST)
    assert data.weak is not None
    assert data.weak.tolist() == [0, 1] * 10
    assert (data.gold == UNLABELED).all()
    assert data.test is not None
    assert data.test.codes.tolist() == TOPICS
    assert list(data.test.texts["text"]) == TEST["text"]


@pytest.mark.parametrize(
    ("train", "options", "note"),
    [
        (("body", "topic"), {}, "the DataFrame has no column 'body'; its column 'text' is used"),
        (("body", "topic"), {"text": "body", "label": "topic"}, "has no column 'topic'; its column 'label' is used"),
        (("body", "topic"), {"text": "text", "label": "label"}, "has no column 'text'; its column 'body' is used"),
        (("text", "topic"), {"label": "label"}, "the DataFrame has no column 'label'; its column 'topic' is used"),
    ],
    ids=str,
)
def test_gold_columns_may_have_other_names_in_test(train: tuple[str, str], options: dict[str, str], note: str) -> None:
    data = read(table(20, body=train[0], topic=train[1]), options, test=TEST)
    assert data.weak is None
    assert data.gold.tolist() == [0, 1] * 10
    assert data.test is not None
    assert data.test.codes.tolist() == TOPICS
    assert any(note in each for each in data.notes)


def test_the_unlabelled_table_may_name_its_texts_differently() -> None:
    data = read(table(20, body="body", topic="topic"), {"text": "body"}, unlabeled=table(6, 2, body="text"))
    assert list(data.texts["text"])[20:] == small_table(6, seed=2)["body"]


@pytest.mark.parametrize(
    ("train", "options", "test", "message"),
    [
        (
            table(20, body="text", topic="topic"),
            {"label": "labell"},
            TEST,
            "has no column 'labell' (there are: text, topic)",
        ),
        (table(20, body="text", topic="topic"), {"text": "txt"}, TEST, "has no column 'txt'; did you mean 'text'?"),
        (table(20, body="text", topic="weak"), {}, table(8, body="text", topic="weak"), "no column that looks like la"),
        (table(20, body="text", topic="label"), {"weak": "label", "label": "label"}, None, "a column of its own"),
        (
            table(20, body="body", topic="topic"),
            {},
            {"one": small_table(8)["body"], "two": small_table(8)["body"], "topic": small_table(8)["topic"]},
            "has no column 'body': 2 columns hold texts (one, two); say which",
        ),
        (
            table(20, body="text", topic="topic"),
            {},
            {"text": small_table(10)["body"], "a": ["x", "y"] * 5, "b": ["x", "y"] * 5},
            "has no column 'topic': 2 columns could be the label (a, b); say which",
        ),
    ],
)
def test_unclear_names_are_one_line(train: Table, options: dict[str, str], test: Table | None, message: str) -> None:
    with pytest.raises(DriftError) as error:
        read(train, options, **({} if test is None else {"test": test}))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_gold_labels_come_before_a_weak_column_and_a_note_says_so() -> None:
    both = {**table(20, body="text", topic="label"), "weak": ["money"] * 20}
    data = read(both)
    assert data.weak is None
    assert data.gold.tolist() == [0, 1] * 10
    assert "column 'weak' is ignored, as 'label' has gold labels; --weak weak uses it instead" in data.notes
    assert read(both, {"weak": "label"}).weak is not None


def test_a_label_column_without_labels_leaves_the_weak_column() -> None:
    data = read({**table(20, body="text", topic="weak"), "label": [None] * 20})
    assert data.weak is not None
    assert "column 'weak' is taken for weak labels; --label weak takes it for gold labels" in data.notes
    gold = read(table(20, body="text", topic="weak"), {"label": "weak"})
    assert gold.weak is None
    assert gold.notes == ["columns taken: text: text"]


def test_a_recognised_weak_column_gives_the_settings_of_weak_labels() -> None:
    frame = pandas.DataFrame(table(20, body="text", topic="weak"))
    found, named = request(frame).described(), request(frame, weak="weak").described()
    assert found["data"].pop("recognised") == ["weak"]
    assert named["data"].pop("recognised") == []
    assert found == named


def test_labels_that_training_lacks_count_as_errors(tmp_path: Path) -> None:
    topics = ["money", "weather", "sport", "art", "money", "art", "sport", "Sport"]
    data = read(table(20, body="text", topic="label"), test={**TEST, "label": topics})
    assert data.test is not None
    assert data.test.unknown == ["Sport", "art", "weather"]
    assert data.notes[-1] == (
        "warning: 4 of 8 labelled rows of the DataFrame have labels that training lacks ('Sport' (if it is 'sport',"
        " write both alike), 'art', 'weather'); they count as errors"
    )
    predicted = np.array([0, 1, 1, 1, 0, 0, 0, 1])
    scores = classification_scores(np.eye(2)[predicted], data.test.codes)
    names = np.array(data.classes)[predicted]
    assert scores["accuracy"] == np.mean(names == np.array(topics))
    assert scores["macro_f1"] == pytest.approx(f1_score(topics, names, average="macro", zero_division=0))


def test_a_run_is_judged_on_labels_that_training_lacks(tmp_path: Path) -> None:
    train = write_csv(tmp_path / "train.csv", table(20, body="text", topic="label"))
    test = write_csv(tmp_path / "test.csv", {**TEST, "label": ["money", "sport", "art", "sport"] * 2})
    run = small_fit(train, small_encoder(tmp_path / "encoder"), test=test, out=tmp_path / "run")
    assert run.record.test is not None
    assert run.record.test.rows == 8
    assert all(seed["accuracy"] <= 0.75 for seed in run.record.test.scores)
    assert sum(map(sum, run.metrics["confusion"])) == 6
    assert any("2 of 8 labelled rows" in note for note in run.record.notes)


@pytest.mark.parametrize(("wrong", "refused"), [(17, False), (18, True), (20, True)])
def test_a_test_table_of_other_labels_is_refused(wrong: int, refused: bool) -> None:
    other = {**table(20, 1, body="text"), "label": [f"id {row}" if row < wrong else "money" for row in range(20)]}
    train = table(20, body="text", topic="label")
    if refused:
        with pytest.raises(
            LabelError, match=f"{wrong} of 20 rows have such labels: name the right column with --label"
        ):
            read(train, test=other)
    else:
        assert read(train, test=other).test is not None


def parts(
    rows: int = 20, name: str = "split", values: tuple[str, ...] = ("train", "train", "Validation", "TEST ")
) -> Table:
    return {**table(rows, body="text", topic="label"), name: [values[row // 2 % len(values)] for row in range(rows)]}


@pytest.mark.parametrize(("name", "option"), [("split", None), ("Subset", None), ("partition", None), ("fold", "fold")])
def test_one_table_with_a_split_column(name: str, option: str | None, tmp_path: Path) -> None:
    everything = parts(24, name)
    rows = {part: [row for row in range(24) if row // 2 % 4 in those] for part, those in PARTS.items()}
    spec = request(write_csv(tmp_path / "all.csv", everything), **({} if option is None else {"split": option}))
    data = read_text_data(spec.config.data, spec.sources, seed=0)
    assert list(data.texts["text"]) == [everything["text"][row] for row in rows["train"]]
    assert data.dev is not None
    assert data.test is not None
    assert list(data.dev.texts["text"]) == [everything["text"][row] for row in rows["dev"]]
    assert list(data.test.texts["text"]) == [everything["text"][row] for row in rows["test"]]
    noted = any(f"column {name!r} says which rows are train, dev and test" in note for note in data.notes)
    assert noted == (option is None)
    again = request(config=spec.described())
    assert again.described() == spec.described()
    assert again.config.data.dev == again.config.data.test == again.config.data.train


PARTS = {"train": (0, 1), "dev": (2,), "test": (3,)}


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (parts(), {"split": ""}),
        (parts(values=("train", "other")), {}),
        (parts(values=("train", "")), {}),
        (parts(values=("train",)), {}),
        (parts(name="fold"), {}),
    ],
    ids=["switched off", "other values", "blanks", "one part", "another name"],
)
def test_other_columns_do_not_split(content: Table, options: dict[str, str]) -> None:
    data = read(content, options)
    assert len(data.gold) == 20
    assert (data.dev, data.test) == (None, None)


@pytest.mark.parametrize(
    ("content", "options", "error", "message"),
    [
        (
            parts(),
            {"test": TEST},
            ConfigError,
            'and --test the DataFrame was given too; leave that out, or give --split ""',
        ),
        (parts(), {"dev": TEST}, ConfigError, "and --dev the DataFrame was given too"),
        (
            parts(values=("train", "other")),
            {"split": "split"},
            DataError,
            "row 3: split is 'other'; write train, dev or",
        ),
        (parts(values=("dev", "test")), {"split": "split"}, ConfigError, "no row of column 'split' says train"),
        (parts(), {"split": "spilt"}, ConfigError, "has no column 'spilt'; did you mean 'split'?"),
    ],
)
def test_unclear_splits_are_one_line(content: Table, options: dict[str, Any], error: Any, message: str) -> None:
    frames = {name: pandas.DataFrame(value) if isinstance(value, dict) else value for name, value in options.items()}
    with pytest.raises(error) as raised:
        request(pandas.DataFrame(content), **frames)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_split_table_is_trained_and_scored_as_its_parts(tmp_path: Path) -> None:
    encoder, everything = small_encoder(tmp_path / "encoder"), parts(40)
    run = small_fit(write_csv(tmp_path / "all.csv", everything), encoder, out=tmp_path / "one")
    files = {}
    for part, those in PARTS.items():
        kept = [row for row in range(40) if row // 2 % 4 in those]
        content = {name: [values[row] for row in kept] for name, values in everything.items() if name != "split"}
        files[part] = write_csv(tmp_path / f"{part}.csv", content)
    apart = small_fit(files["train"], encoder, dev=files["dev"], test=files["test"], out=tmp_path / "apart")
    assert run.metrics["test"] == apart.metrics["test"]
    assert run.metrics["dev"] == apart.metrics["dev"]
    assert run.metrics["label_budget"] == apart.metrics["label_budget"] == {"train": 20, "dev": 10, "total": 30}
