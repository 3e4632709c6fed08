"""Names of types as weak tags: candidates, and which of them are tagged."""

from collections.abc import Sequence

import numpy as np
import pytest

from drift.errors import DataError
from drift.weak.type_names import candidates, name_tags

PLACES = ["Rome", "Bern", "Oslo", "New York", "Bank of England"]
PEOPLE = ["Ann", "Bob Hill", "Carl", "Eve", "Dan"]


def embed(texts: Sequence[str]) -> np.ndarray:
    """Places near to the word place, people near to the word person; some of each more clearly than others."""
    rows = []
    for text in texts:
        side = 1.0 if any(word in text for word in (*PLACES, "place")) else -1.0
        rows.append([side, 0.1 * (len(text) % 7), 1.0])
    return np.array(rows)


def sentences() -> list[list[str]]:
    texts = [f"they saw {place} with {person} today" for place in PLACES for person in PEOPLE]
    return [text.split() for text in [*texts, "Today they saw Bern", "MARKETS FALL IN ROME"]]


def test_candidates_are_capitalised_phrases() -> None:
    words = [
        text.split() for text in ["Today the Bank of England fell", "today Ann left of Bern", "ANN WINS IN BERN", ""]
    ]
    assert candidates(words) == [[(2, 5)], [(1, 2), (4, 5)], [], []]
    assert candidates([["Ann", "left"]]) == [[(0, 1)]]  # "ann" is not a word of the corpus


def test_the_more_certain_half_is_tagged_and_the_others_are_left_open() -> None:
    found = name_tags(sentences(), {"LOC": ("place",), "person": ()}, embed)
    assert found.candidates == len(PLACES) + len(PEOPLE)
    assert 2 <= found.tagged < found.candidates
    tagged = {}
    for words, tags in zip(sentences(), found.tags, strict=True):
        assert len(tags) == len(words)
        for place, tag in enumerate(tags):
            if tag is not None and tag.startswith("B-"):
                tagged[words[place]] = tag
            capital = words[place][0].isupper() and words[place] != "Today"
            assert capital or tag == "O" or words[place] == "of"
    firsts = {each.split()[0]: "B-LOC" for each in PLACES} | {each.split()[0]: "B-person" for each in PEOPLE}
    assert tagged.items() <= firsts.items()
    assert {"B-LOC", "B-person"} == set(tagged.values())
    assert found.tags[-1] == [None] * 4  # capitals say nothing in a headline
    assert None in {tag for tags in found.tags[:-1] for tag in tags}


def test_text_without_capitals_has_no_candidates() -> None:
    with pytest.raises(DataError, match="no candidates to compare; give rules, or a few tagged sentences"):
        name_tags([["cheap", "pizza", "nearby"]], {"a": (), "b": ()}, embed)
