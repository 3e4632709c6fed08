"""Find the phrases of a list in tokens, in time that hardly depends on the length of the list."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from drift.data.reading import read_text
from drift.data.tags import Span
from drift.data.word_tokens import WORD
from drift.errors import DataError

CasePolicy = Literal["exact", "lower", "smart"]
ACRONYM = 4  # maximum length of a phrase in capitals that `smart` matches exactly


@dataclass
class _Node:
    """A node of the trie: a common beginning of phrases.

    after: the nodes that follow, by word. types: the types of the phrases that end here, by the spelling that a phrase
    requires, or None if any case matches.
    """

    after: dict[str, "_Node"] = field(default_factory=dict)
    types: dict[str | None, str] = field(default_factory=dict)


class Gazetteer:
    """Phrases with types, to look up in the tokens of sentences.

    Phrases and tokens are split into words and punctuation marks in the same way: "N-acetyl-cysteine" is found whether
    the text has it as one token or as five. A match must still begin and end at token boundaries.

    phrases: pairs of type and phrase; of equal phrases the first counts.
    case: "exact" matches case; "lower" ignores it; "smart" ignores it, except for phrases of at most `ACRONYM`
    characters that are all capitals.
    """

    def __init__(self, phrases: Iterable[tuple[str, str]], case: CasePolicy = "smart") -> None:
        self._root = _Node()
        types: dict[str, None] = {}
        for entity_type, phrase in phrases:
            node, words = self._root, WORD.findall(phrase)
            if not words:
                raise DataError(f"the phrase {phrase!r} of type {entity_type!r} is empty; fill it in or leave it out")
            for word in words:
                node = node.after.setdefault(word.casefold(), _Node())
            exact = case == "exact" or (case == "smart" and len(phrase) <= ACRONYM and phrase.isupper())
            node.types.setdefault(" ".join(words) if exact else None, entity_type)
            types[entity_type] = None
        self.types = tuple(types)

    def find(self, tokens: Sequence[str]) -> list[Span]:
        """Find phrases from left to right, the longest at each position; spans do not overlap."""
        split = [WORD.findall(token) for token in tokens]
        spans = []
        start = 0
        while start < len(tokens):
            span = self._longest(split, start)
            if span is not None:
                spans.append(span)
            start = start + 1 if span is None else span.end
        return spans

    def _longest(self, split: list[list[str]], start: int) -> Span | None:
        """The longest phrase that begins at token `start`. split: the words of each token."""
        node, words = self._root, list[str]()
        longest = None
        for position in range(start, len(split)):
            for word in split[position]:
                following = node.after.get(word.casefold())
                if following is None:
                    return longest
                node = following
            words += split[position]
            if node.types and split[position] and split[start]:  # a phrase neither begins nor ends with a blank token
                entity_type = node.types.get(" ".join(words)) or node.types.get(None)
                longest = Span(start, position + 1, entity_type) if entity_type else longest
        return longest


def read_phrases(path: Path, entity_type: str | None = None) -> list[tuple[str, str, int]]:
    """Read a phrase file. Returns type, phrase and line number of each phrase; blank lines are skipped.

    entity_type: the type of all phrases if each line is a phrase; None if each line is TYPE, a tab and a phrase.
    """
    lines = read_text(path).split("\n")
    phrases = []
    for number, line in enumerate(lines, 1):
        parts = [part.strip() for part in line.split("\t")]
        if not any(parts):
            continue
        if len(parts) != (2 if entity_type is None else 1) or not all(parts):
            one_type = f"a phrase alone (the rule has type {entity_type!r})"
            form = "TYPE, a tab and a phrase" if entity_type is None else one_type
            raise DataError(f"{path}:{number}: {line.strip()!r} is not {form}; fix the line or the rule")
        phrases.append((entity_type or parts[0], parts[-1], number))
    if not phrases:
        raise DataError(f"{path} has no phrases; write one per line")
    return phrases
