"""Replace punctuation by spaces, in texts and in keywords alike, so that keywords still match."""

import functools
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from drift.weak.schema import Condition, Faults, Location, Rule

KEYWORD_LISTS = ("has", "prefix", "expression")


def without_punctuation(text: str) -> str:
    """Replace punctuation marks and symbols by spaces, then collapse runs of spaces and strip both ends."""
    return " ".join(text.translate(_punctuation_as_spaces()).split())


def stripped_keyword(keyword: str) -> str:
    """Strip a keyword as texts are stripped, but keep a space at either end: " war " must not match "warm"."""
    return " " * keyword[0].isspace() + without_punctuation(keyword) + " " * keyword[-1].isspace()


def stripped(condition: Condition) -> Condition:
    """The condition to check on texts without punctuation. Patterns are unchanged."""
    if condition.has is not None:
        return condition.model_copy(update={"has": tuple(map(stripped_keyword, condition.has))})
    if (pairs := condition.pairs) is not None:
        keywords = {"prefix": pairs.prefix, "expression": pairs.expression}
        changed = {name: tuple(map(stripped_keyword, words)) for name, words in keywords.items()}
        return condition.model_copy(update={"pairs": pairs.model_copy(update=changed)})
    return condition


def punctuation_faults(rule: Rule, at: Location) -> Faults:
    """A fault for each keyword that consists of punctuation only. at: the location of the rule."""
    return [
        (
            location,
            f"{location[-2]}: {word!r} is only punctuation, which strip_punctuation turns into spaces; leave it out",
        )
        for location, word in _keywords(rule.model_dump(exclude_none=True), at)
        if not without_punctuation(word)
    ]


def _keywords(value: Any, at: Location) -> Iterator[tuple[Location, str]]:
    """Every keyword inside a value of a rule, with its location."""
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, tuple) else ()
    for key, child in inner:
        if at[-1] in KEYWORD_LISTS:
            yield (*at, key), child
        else:
            yield from _keywords(child, (*at, key))


@functools.cache
def _punctuation_as_spaces() -> dict[int, str]:
    """A table for `str.translate` that maps every Unicode punctuation mark and symbol to a space."""
    every = range(sys.maxunicode + 1)
    return {code: " " for code in every if unicodedata.category(chr(code))[0] in "PS"}
