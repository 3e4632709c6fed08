"""Phrases in tokens: the longest from the left, whole tokens only, capitals as the policy says."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.data.tags import Span
from drift.errors import DataError, FileError
from drift.weak.gazetteer import CasePolicy, Gazetteer, read_phrases


def found(phrases: list[str], text: str, case: CasePolicy = "smart") -> list[str]:
    """What is found in a text whose tokens have spaces between them."""
    tokens = text.split(" ")
    spans = Gazetteer((("X", phrase) for phrase in phrases), case).find(tokens)
    return [" ".join(tokens[span.start : span.end]) for span in spans]


def test_the_longest_phrase_wins_then_the_search_goes_on_behind_it() -> None:
    phrases = ["renal", "renal failure", "failure to thrive", "acute renal failure"]
    assert found(phrases, "renal failure to thrive") == ["renal failure"]
    assert found(phrases, "acute renal disease , failure to thrive") == ["renal", "failure to thrive"]
    assert found(phrases, "renal renal failure") == ["renal", "renal failure"]


@pytest.mark.parametrize("text", ["N-acetyl-cysteine", "N - acetyl - cysteine", "N- acetyl -cysteine"])
@pytest.mark.parametrize("phrase", ["N-acetyl-cysteine", "N - acetyl - cysteine"])
def test_punctuation_splits_phrases_and_tokens_alike(phrase: str, text: str) -> None:
    assert found([phrase], f"with {text} .") == [text]


def test_a_phrase_begins_and_ends_where_a_token_does() -> None:
    assert found(["acetyl", "N-acetyl", "cysteine"], "N-acetyl-cysteine") == []
    assert found(["aspirin"], "aspirin-like aspirins aspirin") == ["aspirin"]


def test_blank_tokens_are_passed_over_inside_a_phrase_and_never_end_one() -> None:
    gazetteer = Gazetteer([("X", "a b"), ("X", "c")])
    assert gazetteer.find(["", "a", "", "b", "", "c", ""]) == [Span(1, 4, "X"), Span(5, 6, "X")]
    assert gazetteer.find([]) == []


def test_capitals() -> None:
    text = "Aspirin aspirin ASPIRIN PD pd Pd"
    assert found(["aspirin", "PD"], text, "exact") == ["aspirin", "PD"]
    assert found(["aspirin", "PD"], text, "lower") == text.split()
    assert found(["aspirin", "PD"], text, "smart") == ["Aspirin", "aspirin", "ASPIRIN", "PD"]
    assert found(["5-HT", "UKPDRG", "zinc"], "5-ht 5-HT ukpdrg Zinc") == ["5-HT", "ukpdrg", "Zinc"]
    assert found(["Straße"], "STRASSE") == ["STRASSE"]


def test_of_two_types_the_exact_spelling_decides_then_the_first() -> None:
    gazetteer = Gazetteer([("Animal", "Cat"), ("Pet", "cat"), ("Enzyme", "CAT")])
    assert [span.type for span in gazetteer.find(["cat", "Cat", "CAT"])] == ["Animal", "Animal", "Enzyme"]
    assert gazetteer.types == ("Animal", "Pet", "Enzyme")


WORDS = st.sampled_from(["a", "b", "A", "B", "-", "a-b", "ab", "AB", ""])
PHRASES = st.lists(WORDS, min_size=1, max_size=4).map(" ".join).filter(str.strip)


def by_hand(phrases: list[str], tokens: list[str], case: CasePolicy) -> list[tuple[int, int]]:
    """Every phrase against every stretch of tokens."""

    def cut(text: str) -> list[str]:
        return re.findall(r"\w+|[^\w\s]", text)

    def equal(phrase: str, stretch: str) -> bool:
        if case == "exact" or (case == "smart" and len(phrase) <= 4 and phrase.isupper()):
            return cut(phrase) == cut(stretch)
        return cut(phrase.lower()) == cut(stretch.lower())

    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(tokens):
        ends = [
            end
            for end in range(start + 1, len(tokens) + 1)
            if tokens[start] and tokens[end - 1]
            if any(equal(phrase, " ".join(tokens[start:end])) for phrase in phrases)
        ]
        spans += [(start, max(ends))] if ends else []
        start = max(ends, default=start + 1)
    return spans


@given(
    phrases=st.lists(PHRASES, max_size=6),
    tokens=st.lists(WORDS, max_size=12),
    case=st.sampled_from(["exact", "lower", "smart"]),
)
def test_it_finds_what_comparing_everything_finds(phrases: list[str], tokens: list[str], case: CasePolicy) -> None:
    spans = Gazetteer((("X", phrase) for phrase in phrases), case).find(tokens)
    assert [(span.start, span.end) for span in spans] == by_hand(phrases, tokens, case)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes("\ufeffDrug\taspirin\r\n\r\nDisease\t renal failure \n".encode())
    assert read_phrases(path) == [("Drug", "aspirin", 1), ("Disease", "renal failure", 3)]
    path.write_text("aspirin\n\nfolic acid", encoding="utf-8")
    assert read_phrases(path, "Drug") == [("Drug", "aspirin", 1), ("Drug", "folic acid", 3)]


@pytest.mark.parametrize(
    ("content", "kind", "said"),
    [
        ("Drug\ta\naspirin\n", None, r"words\.txt:2: 'aspirin' is not TYPE, a tab and a phrase; fix the line"),
        ("Drug\t \n", None, r"words\.txt:1: 'Drug' is not TYPE, a tab and a phrase"),
        ("Drug\ta\tb\n", None, r"words\.txt:1: .* is not TYPE, a tab and a phrase"),
        ("a\nDrug\ta\n", "Drug", r"words\.txt:2: .* is not a phrase alone, for the rule has type 'Drug'"),
        ("\n \n", None, "has no phrases; write one a line"),
    ],
)
def test_lines_that_are_no_phrases_are_named(tmp_path: Path, content: str, kind: str | None, said: str) -> None:
    path = tmp_path / "words.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=said):
        read_phrases(path, kind)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read"):
        read_phrases(tmp_path / "none.txt")
    (tmp_path / "old.txt").write_bytes(b"Drug\tcaf\xe9\n")
    with pytest.raises(FileError, match=r"not UTF-8 \(byte 8\); save it as UTF-8"):
        read_phrases(tmp_path / "old.txt")
    with pytest.raises(DataError, match="the phrase ' ' of type 'X' is empty"):
        Gazetteer([("X", " ")])
