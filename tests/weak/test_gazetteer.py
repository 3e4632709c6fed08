"""Phrases in tokens: the longest from the left, whole tokens only, case by policy."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.data.tags import Span
from drift.errors import DataError, FileError
from drift.weak.dictionaries import plural_of, read_dictionary
from drift.weak.gazetteer import CasePolicy, Gazetteer


def phrases_in(phrases: list[str], text: str, case: CasePolicy = "smart") -> list[str]:
    """The phrases found in a text whose tokens are separated by spaces."""
    tokens = text.split(" ")
    spans = Gazetteer((("X", phrase) for phrase in phrases), case).find(tokens)
    return [" ".join(tokens[span.start : span.end]) for span in spans]


def test_the_longest_phrase_wins_and_the_search_continues_after_it() -> None:
    phrases = ["renal", "renal failure", "failure to thrive", "acute renal failure"]
    assert phrases_in(phrases, "renal failure to thrive") == ["renal failure"]
    assert phrases_in(phrases, "acute renal disease , failure to thrive") == ["renal", "failure to thrive"]
    assert phrases_in(phrases, "renal renal failure") == ["renal", "renal failure"]


@pytest.mark.parametrize("text", ["N-acetyl-cysteine", "N - acetyl - cysteine", "N- acetyl -cysteine"])
@pytest.mark.parametrize("phrase", ["N-acetyl-cysteine", "N - acetyl - cysteine"])
def test_punctuation_splits_phrases_and_tokens_in_the_same_way(phrase: str, text: str) -> None:
    assert phrases_in([phrase], f"with {text} .") == [text]


def test_a_phrase_begins_and_ends_at_token_boundaries() -> None:
    assert phrases_in(["acetyl", "N-acetyl", "cysteine"], "N-acetyl-cysteine") == []
    assert phrases_in(["aspirin"], "aspirin-like aspirins aspirin") == ["aspirin"]


def test_blank_tokens_are_skipped_inside_a_phrase_and_never_end_one() -> None:
    gazetteer = Gazetteer([("X", "a b"), ("X", "c")])
    assert gazetteer.find(["", "a", "", "b", "", "c", ""]) == [Span(1, 4, "X"), Span(5, 6, "X")]
    assert gazetteer.find([]) == []


def test_case_policies() -> None:
    text = "Aspirin aspirin ASPIRIN PD pd Pd"
    assert phrases_in(["aspirin", "PD"], text, "exact") == ["aspirin", "PD"]
    assert phrases_in(["aspirin", "PD"], text, "lower") == text.split()
    assert phrases_in(["aspirin", "PD"], text, "smart") == ["Aspirin", "aspirin", "ASPIRIN", "PD"]
    assert phrases_in(["5-HT", "UKPDRG", "zinc"], "5-ht 5-HT ukpdrg Zinc") == ["5-HT", "ukpdrg", "Zinc"]
    assert phrases_in(["Straße"], "STRASSE") == ["STRASSE"]


def test_of_two_types_the_exact_spelling_decides_then_the_first() -> None:
    gazetteer = Gazetteer([("Animal", "Cat"), ("Pet", "cat"), ("Enzyme", "CAT")])
    assert [span.type for span in gazetteer.find(["cat", "Cat", "CAT"])] == ["Animal", "Animal", "Enzyme"]
    assert gazetteer.types == ("Animal", "Pet", "Enzyme")


WORDS = st.sampled_from(["a", "b", "A", "B", "-", "a-b", "ab", "AB", ""])
PHRASES = st.lists(WORDS, min_size=1, max_size=4).map(" ".join).filter(str.strip)


def by_hand(phrases: list[str], tokens: list[str], case: CasePolicy) -> list[tuple[int, int]]:
    """Compare every phrase with every range of tokens."""

    def cut(text: str) -> list[str]:
        return re.findall(r"\w+|[^\w\s]", text)

    def equal(phrase: str, tokens_text: str) -> bool:
        if case == "exact" or (case == "smart" and len(phrase) <= 4 and phrase.isupper()):
            return cut(phrase) == cut(tokens_text)
        return cut(phrase.lower()) == cut(tokens_text.lower())

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
def test_it_finds_what_a_brute_force_search_finds(phrases: list[str], tokens: list[str], case: CasePolicy) -> None:
    spans = Gazetteer((("X", phrase) for phrase in phrases), case).find(tokens)
    assert [(span.start, span.end) for span in spans] == by_hand(phrases, tokens, case)


def entries(path: Path, entity_type: str | None = None, *, plural: bool = False) -> list[tuple[Any, ...]]:
    """Type, phrase, case and number of line or row."""
    read = read_dictionary(path, entity_type, plural=plural)
    return [(*entry[:3], int(re.split(r":|row ", entry.where)[-1])) for entry in read]


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes("\ufeffDrug\taspirin\r\n\r\nDisease\t renal failure \n".encode())
    assert entries(path) == [("Drug", "aspirin", None, 1), ("Disease", "renal failure", None, 3)]
    path.write_text("aspirin\n\nfolic acid", encoding="utf-8")
    assert entries(path, "Drug") == [("Drug", "aspirin", None, 1), ("Drug", "folic acid", None, 3)]


@pytest.mark.parametrize(
    ("content", "entity_type", "message"),
    [
        ("Drug\ta\naspirin\n", None, r"words\.txt:2: 'aspirin' is not TYPE, a tab and a phrase; fix the line"),
        ("Drug\t \n", None, r"words\.txt:1: 'Drug' is not TYPE, a tab and a phrase"),
        ("Drug\ta\tb\n", None, r"words\.txt:1: .* is not TYPE, a tab and a phrase"),
        ("a\nDrug\ta\n", "Drug", r"words\.txt:2: .* is not a phrase alone \(the rule has type 'Drug'\)"),
        ("\n \n", None, "has no phrases; write one per line"),
    ],
)
def test_invalid_lines_are_named(tmp_path: Path, content: str, entity_type: str | None, message: str) -> None:
    path = tmp_path / "words.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        entries(path, entity_type)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read"):
        entries(tmp_path / "none.txt")
    (tmp_path / "old.txt").write_bytes(b"Drug\tcaf\xe9\n")
    with pytest.raises(FileError, match=r"not UTF-8 \(byte 8\); save it as UTF-8"):
        entries(tmp_path / "old.txt")
    with pytest.raises(DataError, match="the phrase ' ' of type 'X' is empty"):
        Gazetteer([("X", " ")])


TABLE = """\
phrase,type,aliases,case
"failure, renal",Disease,renal failure|kidney failure,
PD,Disease,,lower
,,,
Zinc,Chemical,,exact
"""


def test_tables(tmp_path: Path) -> None:
    path = tmp_path / "terms.csv"
    path.write_text(TABLE, encoding="utf-8")
    wanted = [
        ("Disease", "failure, renal", None, 1),
        ("Disease", "renal failure", None, 1),
        ("Disease", "kidney failure", None, 1),
        ("Disease", "PD", "lower", 2),
        ("Chemical", "Zinc", "exact", 4),
    ]
    assert entries(path) == wanted
    (tmp_path / "terms.tsv").write_text("Term\tAlias\naspirin\tASA\n", encoding="utf-8")
    assert entries(tmp_path / "terms.tsv", "Drug") == [("Drug", "aspirin", None, 1), ("Drug", "ASA", None, 1)]
    (tmp_path / "terms.jsonl").write_text('{"name": "box", "label": "X", "aliases": ["fly"]}\n', encoding="utf-8")
    plurals = [("X", phrase, None, 1) for phrase in ("box", "boxes", "fly", "flies")]
    assert entries(tmp_path / "terms.jsonl", plural=True) == plurals
    (tmp_path / "old.tsv").write_text("Drug\taspirin\nDrug\tASA\n", encoding="utf-8")  # no names of columns
    assert entries(tmp_path / "old.tsv") == [("Drug", "aspirin", None, 1), ("Drug", "ASA", None, 2)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\nx,y\n", r"terms\.csv has no column called phrase \(it has a, b\); name the columns phrase and type"),
        ("phrase,b\nx,y\n", r"has no column called type .* or give the rule a type"),
        ("phrase,type\n,X\n", r"terms\.csv, row 1: the phrase is empty; fill it in or remove the row"),
        ("phrase,type\na,X\nb,\n", r"terms\.csv, row 2: the type is empty"),
        ("phrase,type,case\na,X,lowr\n", r"row 1: case 'lowr' is not one of exact, lower, smart.*'lower'"),
        ("phrase,type\n,\n", "has no phrases"),
    ],
)
def test_invalid_tables(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "terms.csv").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        entries(tmp_path / "terms.csv")


def test_regular_plurals() -> None:
    wanted = {"drug": "drugs", "therapy": "therapies", "day": "days", "box": "boxes", "branch": "branches"}
    wanted |= {"ALLERGY": "ALLERGIES", "Y": "Ys"}
    assert {each: plural_of(each) for each in wanted} == wanted


def test_phrases_have_their_own_case() -> None:
    gazetteer = Gazetteer(case="lower")
    gazetteer.add("X", "Zinc", "exact")
    gazetteer.add("X", "PD")
    assert gazetteer.find(["zinc", "Zinc", "pd"]) == [Span(1, 2, "X"), Span(2, 3, "X")]
    assert len(gazetteer) == 2


def test_the_words_that_are_looked_up_do_not_grow_with_the_list() -> None:
    """Matching is linear: at each token one lookup per length of phrase that begins with its word."""
    phrases = [("X", f"the {number} thing") for number in range(5000)]
    gazetteer = Gazetteer([*phrases, ("X", "the " + "very " * 60 + "end")])
    looked_up = 0

    class Counting(dict[str, str]):
        def get(self, key: str, default: Any = None) -> Any:
            nonlocal looked_up
            looked_up += 1
            return super().get(key, default)

    gazetteer._any_case = Counting(gazetteer._any_case)
    tokens = ["the", "quick", "fox"] * 100
    assert gazetteer.find(tokens) == []
    assert looked_up <= 2 * 100
