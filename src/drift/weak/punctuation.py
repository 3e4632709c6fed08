"""Punctuation taken for spaces: in texts, and in keywords as in texts, so that the two still meet."""

import functools
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from drift.weak.schema import Condition, Faults, Location, Rule

KEYWORD_LISTS = ("has", "prefix", "expression")


def without_punctuation(text: str) -> str:
    """Punctuation marks and symbols become spaces, several spaces one, and none is left at the ends."""
    return " ".join(text.translate(_punctuation_as_spaces()).split())


def stripped_keyword(keyword: str) -> str:
    """A keyword as texts are, but for a space that it begins or ends with: " war " still is no part of "warm"."""
    return " " * keyword[0].isspace() + without_punctuation(keyword) + " " * keyword[-1].isspace()


def stripped(condition: Condition) -> Condition:
    """What to ask of texts without punctuation instead; a pattern stays as it is."""
    if condition.has is not None:
        return condition.model_copy(update={"has": tuple(map(stripped_keyword, condition.has))})
    if (pairs := condition.pairs) is not None:
        words = {"prefix": pairs.prefix, "expression": pairs.expression}
        changed = {name: tuple(map(stripped_keyword, given)) for name, given in words.items()}
        return condition.model_copy(update={"pairs": pairs.model_copy(update=changed)})
    return condition


def nothing_left(rule: Rule, at: Location) -> Faults:
    """The keywords of a rule that are punctuation alone. at: where the rule is."""
    return [
        (
            place,
            f"{place[-2]}: {word!r} is punctuation alone, which strip_punctuation takes for spaces; leave it out",
        )
        for place, word in _keywords(rule.model_dump(exclude_none=True), at)
        if not without_punctuation(word)
    ]


def _keywords(said: Any, at: Location) -> Iterator[tuple[Location, str]]:
    """Every keyword in what a rule says, with its place."""
    inner = said.items() if isinstance(said, Mapping) else enumerate(said) if isinstance(said, tuple) else ()
    for key, value in inner:
        if at[-1] in KEYWORD_LISTS:
            yield (*at, key), value
        else:
            yield from _keywords(value, (*at, key))


@functools.cache
def _punctuation_as_spaces() -> dict[int, str]:
    """Every punctuation mark and symbol of Unicode, for `str.translate`."""
    every = range(sys.maxunicode + 1)
    return {code: " " for code in every if unicodedata.category(chr(code))[0] in "PS"}
