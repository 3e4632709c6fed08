"""Sentence tables as users have them: other column names, weak columns, unknown tags, one file for all parts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drift.errors import ConfigError, DriftError, LabelError
from drift.runs.request import request
from drift.tasks.tokens.data import TokenData, read_token_data
from drift.tasks.tokens.tagging import Tagging
from tests.runs.small_tokens import CLASSES, Table, small_sentences, write_conll, write_jsonl

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")


def table(rows: int, seed: int = 0, **names: str) -> Table:
    small = small_sentences(rows, seed=seed)
    return {new: small[old] for old, new in names.items()}


def read(folder: Path, train: Table, options: dict[str, Any] | None = None, **others: Table) -> TokenData:
    """What a run on files with these tables reads."""
    files = {part: write_jsonl(folder / f"{part}.jsonl", content) for part, content in others.items()}
    spec = request(write_jsonl(folder / "train.jsonl", train), task="tokens", **files, **(options or {}))
    return read_token_data(spec.config.data, spec.sources, seed=0)


def codes(content: Table, column: str) -> list[int]:
    return [CLASSES.index(tag) for tags in content[column] for tag in tags]


TEST = table(8, 1, tokens="tokens", ner_tags="labels")


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (("tokens", "weak"), {}),
        (("tokens", "weak"), {"label": "labels"}),
        (("tokens", "weak"), {"weak": "weak", "label": "labels"}),
        (("tokens", "labels"), {"weak": "labels"}),
        (("tokens", "labels"), {"weak": "labels", "label": "labels"}),
        (("words", "weak_tags"), {}),
        (("words", "weak"), {"tokens": "words"}),
        (("words", "weak"), {"tokens": "tokens", "label": "labels"}),
        (("sentence", "crowd"), {"tokens": "sentence", "weak": "crowd"}),
    ],
)
def test_weak_tags_in_train_and_gold_ones_in_test_by_any_names(
    names: tuple[str, str], options: dict[str, str], tmp_path: Path
) -> None:
    train = table(20, tokens=names[0], ner_tags=names[1])
    data = read(tmp_path, train, options, test=TEST)
    assert data.weak is not None
    assert data.weak.tolist() == codes(train, names[1])
    assert (data.gold == -1).all()
    assert data.test is not None
    assert data.test.codes.tolist() == codes(TEST, "labels")
    assert data.test.sentences.tokens == TEST["tokens"]


@pytest.mark.parametrize(
    ("names", "options", "note"),
    [
        (
            ("words", "tags"),
            {"tokens": "words", "label": "tags"},
            "test.jsonl has no column 'tags'; its column 'labels'",
        ),
        (("words", "tags"), {"tokens": "tokens"}, "train.jsonl has no column 'tokens'; its column 'words' is used"),
        (("tokens", "ner_tags"), {"label": "labels"}, "train.jsonl has no column 'labels'; its column 'ner_tags' is"),
        (("tokens", "label"), {}, None),
    ],
)
def test_gold_columns_may_have_other_names_in_test(
    names: tuple[str, str], options: dict[str, str], note: str | None, tmp_path: Path
) -> None:
    train = table(20, tokens=names[0], ner_tags=names[1])
    data = read(tmp_path, train, options, test=TEST)
    assert data.weak is None
    assert data.gold.tolist() == codes(train, names[1])
    assert data.test is not None
    assert data.test.codes.tolist() == codes(TEST, "labels")
    assert note is None or any(note in each for each in data.notes)


def test_a_conll_file_has_numbers_where_a_table_has_names(tmp_path: Path) -> None:
    train = table(20, tokens="words", ner_tags="gold")
    test = write_conll(tmp_path / "test.conll", table(8, 1, tokens="tokens", ner_tags="ner_tags"))
    data = read(tmp_path, train, {"tokens": "words", "label": "gold", "test": test})
    assert data.test is not None
    assert data.test.codes.tolist() == codes(TEST, "labels")
    assert f"{test} has no column 'gold'; its column '2' is used" in data.notes


def test_a_column_that_no_table_has_is_one_line(tmp_path: Path) -> None:
    for options in ({"label": "lables"}, {"tokens": "tokns"}, {"weak": "lables"}):
        with pytest.raises(ConfigError, match=r"has no column '\w+'; did you mean '(labels|tokens)'"):
            read(tmp_path, table(5, tokens="tokens", ner_tags="labels"), options, test=TEST)


def test_gold_tags_come_before_a_weak_column_and_a_note_says_so(tmp_path: Path) -> None:
    gold = table(20, tokens="tokens", ner_tags="labels")
    data = read(tmp_path, {**gold, "weak": [None] * 20})
    assert data.weak is None
    assert "column 'weak' is ignored, as there are gold tags; --weak weak uses it instead" in data.notes
    unlabelled = {"tokens": gold["tokens"], "weak": gold["labels"], "labels": [None] * 20}
    data = read(tmp_path, unlabelled)
    assert data.weak is not None
    assert "column 'weak' is taken for weak labels; --label weak takes it for gold labels" in data.notes


def test_spans_in_a_column_called_label_are_read(tmp_path: Path) -> None:
    rows = {"text": ["Ann left Bern", "in Rome"], "label": [[[0, 3, "PER"], [9, 13, "LOC"]], [[3, 7, "LOC"]]]}
    data = read(tmp_path, rows)
    assert [data.classes[code] for code in data.gold] == ["B-PER", "O", "B-LOC", "O", "B-LOC"]


def test_tags_that_training_lacks_count_as_errors(tmp_path: Path) -> None:
    test = {
        "tokens": [["acme", "corp", "in", "london"], ["john", "in", "paris", "."]],
        "labels": [["B-ORG", "I-ORG", "O", "B-LOC"], ["B-PER", "O", "B-LOC", "O"]],
    }
    data = read(tmp_path, table(20, tokens="tokens", ner_tags="labels"), test=test)
    assert data.test is not None
    assert data.test.unknown == ["B-ORG", "I-ORG"]
    assert "2 of 5 labelled words of" in data.notes[-1]
    assert "('B-ORG', 'I-ORG'); they count as errors" in data.notes[-1]
    predicted = ["B-LOC", "I-LOC", "O", "B-LOC", "B-PER", "O", "B-LOC", "O"]
    probabilities = np.eye(len(CLASSES))[[CLASSES.index(tag) for tag in predicted]]
    scores = Tagging([*data.classes, *data.test.unknown], data.test.sizes, True)(probabilities, data.test.codes)
    assert scores == {"f1": 6 / 8, "precision": 3 / 4, "recall": 3 / 4, "accuracy": 6 / 8}
    with pytest.raises(LabelError, match="sentence 1: tag 'B-ORG' of 'acme' is not among the training tags"):
        read(tmp_path, table(20, tokens="tokens", ner_tags="labels"), dev=test)


def test_a_test_table_of_other_tags_is_refused(tmp_path: Path) -> None:
    test = {"tokens": [["acme", "in", "x"]] * 3, "labels": [["B-ORG", "O", "O"]] * 3}
    with pytest.raises(LabelError, match="3 of 3 words have such labels: name the right column with --label"):
        read(tmp_path, table(20, tokens="tokens", ner_tags="labels"), test=test)


def test_one_table_with_a_split_column(tmp_path: Path) -> None:
    everything = {**table(24, tokens="tokens", ner_tags="labels"), "split": ["train", "Train", "valid", "test"] * 6}
    data = read(tmp_path, everything)
    assert data.sentences.tokens == [tokens for row, tokens in enumerate(everything["tokens"]) if row % 4 < 2]
    assert data.dev is not None
    assert data.test is not None
    assert data.dev.sentences.tokens == everything["tokens"][2::4]
    assert data.test.sentences.tokens == everything["tokens"][3::4]
    assert any("column 'split' says which rows are train, dev and test" in note for note in data.notes)
    whole = read(tmp_path, everything, {"split": ""})
    assert (len(whole.sentences), whole.dev, whole.test) == (24, None, None)


def test_class_numbers_of_a_dataset_keep_their_names_in_a_split(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    numbered = [[CLASSES.index(tag) for tag in tags] for tags in small_sentences(12)["ner_tags"]]
    content = {"tokens": small_sentences(12)["tokens"], "ner_tags": numbered, "split": ["train", "test"] * 6}
    feature = datasets.Sequence(datasets.ClassLabel(names=CLASSES))
    spec = request(datasets.Dataset.from_dict(content).cast_column("ner_tags", feature), task="tokens")
    data = read_token_data(spec.config.data, spec.sources, seed=0)
    assert data.test is not None
    assert data.test.codes.tolist() == [code for tags in numbered[1::2] for code in tags]


def test_a_conll_file_has_no_split_column(tmp_path: Path) -> None:
    train = write_conll(tmp_path / "train.conll", table(8, 1, tokens="tokens", ner_tags="ner_tags"))
    with pytest.raises(DriftError, match="CoNLL files have no such column; leave --split out"):
        request(train, task="tokens", split="2")
