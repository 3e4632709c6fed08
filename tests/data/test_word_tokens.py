"""The word tokenizer: words, vocabulary, ids, and saving."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.data.word_tokens import UNKNOWN, WordTokenizer, split_words
from drift.errors import DataError, FileError

TEXTS = ["The cat sat.", "The dog, the cat", "A bird"]


def test_words_are_lower_case_and_punctuation_stands_alone() -> None:
    assert split_words("Don't  pay $5.50, Ärger!\n") == ["don", "'", "t", "pay", "$", "5", ".", "50", ",", "ärger", "!"]
    assert split_words(" \t\n") == []


def test_frequent_words_come_first_and_rare_ones_are_unknown() -> None:
    tokenizer = WordTokenizer.from_texts(TEXTS, min_count=2)
    assert tokenizer.words == ("the", "cat")
    assert len(tokenizer) == 4
    assert tokenizer(["the CAT flew"]) == {"input_ids": [[2, 3, UNKNOWN]]}
    everything = WordTokenizer.from_texts(TEXTS, min_count=1).words
    assert everything == ("the", "cat", ",", ".", "a", "bird", "dog", "sat")  # equal counts: in the order of the words


def test_texts_are_cut_only_with_truncation() -> None:
    tokenizer = WordTokenizer.from_texts(TEXTS)
    assert tokenizer(["the cat the"], truncation=True, max_length=2)["input_ids"] == [[2, 3]]
    assert tokenizer(["the cat the"], max_length=2)["input_ids"] == [[2, 3, 2]]


@given(st.lists(st.text()))
def test_every_text_has_a_token_and_no_token_is_padding(texts: list[str]) -> None:
    tokenizer = WordTokenizer(["a", "b"])
    rows = tokenizer(texts, truncation=True, max_length=5)["input_ids"]
    assert len(rows) == len(texts)
    assert all(
        1 <= len(row) <= 5 and all(tokenizer.pad_token_id < each < len(tokenizer) for each in row) for row in rows
    )


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=())), unique=True))
def test_a_saved_vocabulary_is_read_unchanged(words: list[str]) -> None:
    tokenizer = WordTokenizer(words)
    again = WordTokenizer.from_json(tokenizer.to_json())
    assert (again.words, again.ids, again.key) == (tokenizer.words, tokenizer.ids, tokenizer.key)


def test_the_key_is_of_the_content_and_its_order() -> None:
    assert len({WordTokenizer(words).key for words in (["a", "b"], ["b", "a"], ["ab"], ["a", "b", "c"])}) == 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        json.dumps({"format": "drift-words/2", "words": []}),
        json.dumps({"format": "drift-words/1"}),
        json.dumps({"format": "drift-words/1", "words": "abc"}),
        json.dumps({"format": "drift-words/1", "words": ["a", 1]}),
    ],
)
def test_json_that_is_no_vocabulary_is_refused(text: str) -> None:
    with pytest.raises(FileError, match="not a vocabulary written as drift-words/1"):
        WordTokenizer.from_json(text)


def test_texts_without_a_frequent_word_are_refused() -> None:
    with pytest.raises(DataError, match="none of 2 words occurs 2 times; lower min_count"):
        WordTokenizer.from_texts(["one two"])
