"""Lists of phrases, found in tokens in time that hardly grows with the number of phrases."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from drift.data.tags import Span
from drift.data.word_tokens import WORD
from drift.errors import DataError, FileError

CasePolicy = Literal["exact", "lower", "smart"]
ACRONYM = 4  # characters of the longest phrase in capitals that `smart` wants as it is written


@dataclass
class _Node:
    """A beginning of phrases: what can follow, and the types of the phrases that end here.

    types: by the spelling that a phrase asks for; None where any will do.
    """

    after: dict[str, "_Node"] = field(default_factory=dict)
    types: dict[str | None, str] = field(default_factory=dict)


class Gazetteer:
    """Phrases with a type each, looked up in sentences of tokens.

    Phrases and tokens are cut into words and punctuation marks alike, so that "N-acetyl-cysteine" is found whether the
    text has it as one token or as five. A phrase must still begin and end where a token does.

    phrases: type and phrase; of several that are alike the first counts.
    case: "exact"; "lower" ignores it; "smart" ignores it but for phrases of at most `ACRONYM` characters in capitals.
    """

    def __init__(self, phrases: Iterable[tuple[str, str]], case: CasePolicy = "smart") -> None:
        self._root = _Node()
        types: dict[str, None] = {}
        for kind, phrase in phrases:
            node, words = self._root, WORD.findall(phrase)
            if not words:
                raise DataError(f"the phrase {phrase!r} of type {kind!r} is empty; fill it in or leave it out")
            for word in words:
                node = node.after.setdefault(word.casefold(), _Node())
            fixed = case == "exact" or (case == "smart" and len(phrase) <= ACRONYM and phrase.isupper())
            node.types.setdefault(" ".join(words) if fixed else None, kind)
            types[kind] = None
        self.types = tuple(types)

    def find(self, tokens: Sequence[str]) -> list[Span]:
        """From left to right, the longest phrase at each place; spans do not overlap."""
        cut = [WORD.findall(token) for token in tokens]
        spans = []
        start = 0
        while start < len(tokens):
            span = self._longest(cut, start)
            if span is not None:
                spans.append(span)
            start = start + 1 if span is None else span.end
        return spans

    def _longest(self, cut: list[list[str]], start: int) -> Span | None:
        """cut: the words of each token."""
        node, seen = self._root, list[str]()
        longest = None
        for place in range(start, len(cut)):
            for word in cut[place]:
                following = node.after.get(word.casefold())
                if following is None:
                    return longest
                node = following
            seen += cut[place]
            if node.types and cut[place] and cut[start]:  # a blank token is no part of the ends of a phrase
                kind = node.types.get(" ".join(seen)) or node.types.get(None)
                longest = Span(start, place + 1, kind) if kind else longest
        return longest


def read_phrases(path: Path, kind: str | None = None) -> list[tuple[str, str, int]]:
    """Type, phrase and line of every phrase in a file; blank lines are skipped.

    kind: the type of all of them, where a line is a phrase; None where a line is type, tab, phrase.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise FileError(f"{path} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    found = []
    for number, line in enumerate(lines, 1):
        parts = [part.strip() for part in line.split("\t")]
        if not any(parts):
            continue
        if len(parts) != (2 if kind is None else 1) or not all(parts):
            form = "TYPE, a tab and a phrase" if kind is None else f"a phrase alone, for the rule has type {kind!r}"
            raise DataError(f"{path}:{number}: {line.strip()!r} is not {form}; fix the line or the rule")
        found.append((kind or parts[0], parts[-1], number))
    if not found:
        raise DataError(f"{path} has no phrases; write one a line")
    return found
