"""Tables of sentences to training data: tags, words without one, and held-out sentences."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drift.data.labels import UNLABELED
from drift.errors import DriftError, LabelError
from drift.tasks.tokens.data import TokenData, read_token_data, tagged_sentences
from drift.tasks.tokens.settings import TokenDataSettings
from tests.runs.small_tokens import CLASSES, Table, small_sentences

pandas = pytest.importorskip("pandas")

RULES = """\
task: tokens
rules:
  - {name: places, type: LOC, phrases: [london, new york, berlin]}
  - {name: people, type: PER, phrases: [john, mary smith]}
  - {name: marks, type: O, token: '^[.]$'}
"""


def read(train: Table, *, seed: int = 0, settings: dict[str, Any] | None = None, **others: Table) -> TokenData:
    sources = {name: pandas.DataFrame(table) for name, table in {"train": train, **others}.items()}
    return read_token_data(TokenDataSettings(**(settings or {})), sources, seed=seed)


def flat(tags: list[list[str] | None], sentences: list[list[str]]) -> list[int]:
    """The codes of all words."""
    complete = (row or [None] * len(words) for row, words in zip(tags, sentences, strict=True))
    return [UNLABELED if tag is None else CLASSES.index(tag) for row in complete for tag in row]


def test_codes_are_in_the_order_of_the_words() -> None:
    train, more, dev = small_sentences(8, labeled=5), small_sentences(3, seed=1), small_sentences(4, seed=2)
    data = read(train, unlabeled=more, dev=dev)
    assert (data.classes, data.entities, data.scheme, data.outside) == (CLASSES, True, "IOB2", 0)
    assert data.sentences.tokens == train["tokens"] + more["tokens"]
    words = sum(map(len, more["tokens"]))
    assert data.gold.tolist() == flat(train["ner_tags"], train["tokens"]) + [UNLABELED] * words
    assert data.train_words == len(data.gold) - words
    assert data.dev is not None
    assert data.dev.codes.tolist() == flat(dev["ner_tags"], dev["tokens"])
    assert data.dev.sizes.tolist() == [len(words) for words in dev["tokens"]]


def test_a_missing_tag_is_not_outside() -> None:
    table = {"tokens": [["john", "lives", "."]], "tags": [["B-PER", None, "O"]]}
    assert read(table).gold.tolist() == [1, UNLABELED, 0]


def test_tags_of_the_unlabelled_table_are_not_read() -> None:
    more = {"words": [["john"]], "tags": [["Q-WRONG"]]}
    train = {"words": [["john", "lives"]], "tags": [["B-PER", "O"]]}
    assert read(train, unlabeled=more).gold.tolist() == [1, 0, UNLABELED]
    named = read(train, settings={"label": "tags"}, unlabeled={"words": [["john"]]})  # the column may be missing
    assert named.gold.tolist() == [1, 0, UNLABELED]


def test_a_weak_column_that_was_not_named_is_not_read() -> None:
    train = {"tokens": [["john", "lives"]], "tags": [["B-PER", "O"]], "weak": [["Q-WRONG", 7]]}
    data = read(train, dev=train)
    assert data.weak is None


def test_weak_tags_beside_gold_ones() -> None:
    """Gold tags only measure; those of a type without weak tags are unknown."""
    train = {"tokens": [["john", "lives", "."]], "tags": [["B-PER", "B-LOC", "O"]], "noisy": [["B-PER", None, "O"]]}
    data = read(train, settings={"weak": "noisy"})
    assert data.classes == ["O", "B-PER", "I-PER"]
    assert data.gold.tolist() == [1, UNLABELED, 0]
    assert data.weak is not None
    assert data.weak.tolist() == [1, UNLABELED, 0]


def test_words_without_a_vote_have_no_weak_tag(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    train = {"tokens": [["mary", "smith", "lives", "in", "london", "."], ["ann"]]}
    data = read(train, settings={"rules": str(tmp_path / "rules.yaml")}, unlabeled={"tokens": [["london"]]})
    assert data.weak is not None
    assert data.classes == CLASSES
    assert data.weak.tolist() == [3, 4, UNLABELED, UNLABELED, 1, 0, UNLABELED, UNLABELED]
    assert data.rules is not None


def test_rules_for_plain_slots(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    train = {"tokens": [["mary", "smith", "in", "new", "york"]], "tags": [["PER", "PER", "O", "LOC", "LOC"]]}
    data = read(train, settings={"rules": str(tmp_path / "rules.yaml")})
    assert (data.classes, data.entities, data.scheme) == (["O", "LOC", "PER"], False, "IO")
    assert data.weak is not None
    assert data.weak.tolist() == [2, 2, UNLABELED, 1, 1]


def test_the_tags_of_some_sentences_are_kept_by_seed() -> None:
    train = small_sentences(20, labeled=15)
    kept, again, other = (read(train, seed=seed, settings={"labeled_rows": 4}) for seed in (0, 0, 1))
    assert (kept.gold == again.gold).all()
    assert (kept.gold != other.gold).any()
    sizes = [len(words) for words in train["tokens"]]
    sentences = np.split(kept.gold, np.cumsum(sizes)[:-1])
    whole = [row for row, codes in enumerate(sentences) if (codes != UNLABELED).all()]
    assert len(whole) == 4
    assert sum((codes != UNLABELED).any() for codes in sentences) == 4
    truth = np.split(read(train).gold, np.cumsum(sizes)[:-1])
    assert all((sentences[row] == truth[row]).all() for row in whole)


def test_rows_of_each_table_are_kept_with_their_tags() -> None:
    table = small_sentences(12)
    by_words = {tuple(words): tags for words, tags in zip(table["tokens"], table["ner_tags"], strict=True)}
    data = read(table, settings={"train_rows": 5, "dev_rows": 3, "test_rows": 2}, dev=table, test=table)
    assert data.dev is not None
    assert data.test is not None
    for sentences, codes, rows in (
        (data.sentences, data.gold, 5),
        (data.dev.sentences, data.dev.codes, 3),
        (data.test.sentences, data.test.codes, 2),
    ):
        assert len(sentences) == rows
        assert codes.tolist() == flat([by_words[tuple(words)] for words in sentences.tokens], sentences.tokens)


def test_sentences_in_two_tables_give_a_warning() -> None:
    train, dev = small_sentences(8), small_sentences(4, seed=1)
    notes = read(train, dev=dev, test=train).notes
    assert notes == ["warning: 8 test sentences are in train too, word for word; scores are too good"]


@pytest.mark.parametrize(
    ("others", "settings", "message"),
    [
        (
            {"dev": {"tokens": [["x"], ["john", "left"]], "tags": [None, ["B-ORG", "O"]]}},
            {},
            "sentence 2: tag 'B-ORG' of 'john' is not among the training tags (O, B-PER, I-PER)",
        ),
        (
            {"dev": {"tokens": [["x"]] * 30 + [["john"]], "tags": [["O"]] * 30 + [["B-ORG"]]}},
            {"dev_rows": 2},  # checked before rows are drawn
            "sentence 31: tag 'B-ORG'",
        ),
        (
            {"dev": {"tokens": [["x"], ["john", "left"]], "tags": [None, ["B-PER", None]]}},
            {},
            "sentence 2: 'left' has no tag; to score against, every word needs one",
        ),
        ({"test": {"tokens": [["x"]]}}, {}, "none of the 1 sentences has tags to score against"),
        ({}, {"labeled_rows": 3}, "data.labeled_rows=3, but 2 sentences have tags"),
    ],
)
def test_tables_that_cannot_be_used_are_refused_in_one_line(
    others: dict[str, Table], settings: dict[str, Any], message: str
) -> None:
    train = {"tokens": [["john", "left"], ["ann"]], "tags": [["B-PER", "O"], ["B-PER"]]}
    with pytest.raises(DriftError) as error:
        read(train, settings=settings, **others)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("tags", [[None], [["O", "O"]], [["O", None]]])
def test_tables_without_entities_are_refused(tags: list[Any]) -> None:
    with pytest.raises(LabelError, match="no word has a tag other than O"):
        read({"tokens": [["john", "left"]], "tags": tags})


def test_one_type_is_enough_and_sentences_without_tags_are_not_scored() -> None:
    data = read({"tokens": [["john", "left"]], "tags": [["B-PER", "O"]]})
    assert data.classes == ["O", "B-PER", "I-PER"]
    part = tagged_sentences(read(small_sentences(6, labeled=2)).sentences, CLASSES)
    assert len(part.sentences) == 2
