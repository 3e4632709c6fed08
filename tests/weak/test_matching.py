"""Matching gives the same results as plain Python, in any number of processes, in linear time."""

import re
import string
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.errors import ConfigError
from drift.weak import ABSTAIN, RuleSet, casting, rule
from drift.weak.matching import in_a_word


def fires(text: str, **keys: object) -> bool:
    return bool(RuleSet([{"name": "r", "label": "x", **keys}]).votes([text])[0, 0] != ABSTAIN)


def stripped_fires(text: str, **keys: object) -> bool:
    rules = RuleSet([{"name": "r", "label": "x", **keys}], strip_punctuation=True)
    return bool(rules.votes([text])[0, 0] != ABSTAIN)


LETTERS = st.text(alphabet="ab .Aßİé\u0301_\n", max_size=12)
KEYWORD = st.text(alphabet="ab .ßi\u0307", min_size=1, max_size=3)


@given(
    texts=st.lists(LETTERS, min_size=1, max_size=4),
    lists=st.lists(st.lists(KEYWORD, min_size=1, max_size=4), min_size=1, max_size=4),
)
def test_all_keywords_together_find_what_each_finds_alone(texts: list[str], lists: list[list[str]]) -> None:
    rules = RuleSet([{"name": f"r{n}", "label": "x", "has": has} for n, has in enumerate(lists)])
    expected = [[any(word.casefold() in text.casefold() for word in has) for has in lists] for text in texts]
    assert (rules.votes(texts) != ABSTAIN).tolist() == expected


@given(text=LETTERS, keyword=KEYWORD)
def test_whole_words_are_those_with_no_word_character_beside_them(text: str, keyword: str) -> None:
    in_word = r"[\w\u0300-\u036f]"
    pattern = f"(?<!{in_word}){re.escape(keyword.casefold())}(?!{in_word})"
    # At every position: a match that begins inside another one counts, too.
    folded = text.casefold()
    expected = any(re.compile(pattern).match(folded, start) for start in range(len(folded)))
    assert fires(text, has=[keyword], whole_words=True) == (expected and bool(text))


def test_case_folding_moves_no_word_boundary_in_all_of_unicode() -> None:
    moved = [
        code
        for code in range(sys.maxunicode + 1)
        if {in_a_word(each) for each in chr(code).casefold()} != {in_a_word(chr(code))}
    ]
    assert moved == []


def test_folding_and_words_on_real_scripts() -> None:
    assert fires("Die STRASSE ist lang", has=["straße"], whole_words=True)
    assert fires("in İstanbul", has=["İstanbul"], whole_words=True)
    assert not fires("in İstanbul", has=["stanbul"], whole_words=True)  # the dot of İ is no boundary
    assert not fires("cafe\u0301", has=["cafe"], whole_words=True)
    assert fires("ПРИВЕТ мир", has=["привет"], whole_words=True)
    assert fires("今日は良い天気", has=["天気"])


def test_punctuation_as_spaces() -> None:
    text = "Don't --- finish: the caf\u00e9's $5 cafe\u0301_x"
    for keyword, there in (("don t finish", True), ("café s 5", True), ("cafe\u0301 x", True), ("done", False)):
        assert stripped_fires(text, has=[keyword]) == there


@given(text=st.text(alphabet="abA .,'-_\n", max_size=12), keyword=st.text(alphabet="ab .'-\t", min_size=1, max_size=4))
def test_keywords_are_stripped_like_texts(text: str, keyword: str) -> None:
    def clean(text: str) -> str:
        return re.sub(f"[{re.escape(string.punctuation)}\\s]+", " ", text).strip()

    if not clean(keyword):
        with pytest.raises(ConfigError, match=r"rule 'r': has: .* is only punctuation"):
            stripped_fires(text, has=[keyword])
        return
    wanted = f"{' ' if keyword[0].isspace() else ''}{clean(keyword)}{' ' if keyword[-1].isspace() else ''}"
    cleaned = clean(text).lower()
    assert stripped_fires(text, has=[keyword]) == (wanted in cleaned)
    alone = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)")
    expected = any(alone.match(cleaned, start) for start in range(len(cleaned)))
    assert stripped_fires(text, has=[keyword], whole_words=True) == expected


def test_with_strip_punctuation_every_keyword_can_still_match() -> None:
    text = "I can't stand this e-mail; can't wait to see it AGAIN!"
    assert stripped_fires(text, has=["can't"], whole_words=True)
    assert stripped_fires(text, has=["two  spaces", "e-mail"])
    assert stripped_fires(text, has=["e.Mail"], unless={"has": ["don't"]})
    assert not stripped_fires(text, has=["e-mail"], unless={"has": ["wait -- to"]})
    assert stripped_fires(text, pairs={"prefix": ["can't wait to "], "expression": [" again!"]})
    assert not stripped_fires("it is warm", has=[" war "])  # a space at an end still marks the end of a word


def test_a_pattern_that_would_hang_re_returns() -> None:
    """Python's re would try 2^50,000 paths; re2 must return before the timeout."""
    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.append(fires("a" * 50_000 + "b", matches="(a+)+$")), daemon=True)
    thread.start()
    thread.join(timeout=60)
    assert results == [False]


def test_half_characters_do_not_stop_a_pattern() -> None:
    assert fires("broken \ud83d but good", matches="good")


def test_processes_and_batches_do_not_change_the_votes(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 2

    @rule
    def short(text: str) -> str | None:
        return "b" if len(text) < limit else None

    rules = RuleSet(
        [{"name": "k", "label": "a", "has": ["1"]}, {"name": "p", "label": "b", "matches": "7$"}, short,
         {"name": "c", "column": "old"}],
        ["a", "b"],
    )  # fmt: skip
    texts = [str(n) for n in range(103)]
    table = {"old": ["a" if n % 5 == 0 else None for n in range(103)]}
    whole = rules.votes(texts, table)
    monkeypatch.setattr(casting, "TEXTS_PER_BATCH", 10)
    for n_jobs in (1, 2):
        done: list[int] = []
        np.testing.assert_array_equal(rules.votes(texts, table, n_jobs=n_jobs, tick=done.append), whole)
        assert done == [10] * 10 + [3]
    assert all(len(set(column)) > 1 for column in whole.T.tolist())  # every rule votes, and abstains
