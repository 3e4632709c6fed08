"""Find the phrases of a list in tokens, in time that hardly depends on the length of the list."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Literal, cast

from drift.data.tags import Span
from drift.data.word_tokens import WORD
from drift.errors import DataError

CasePolicy = Literal["exact", "lower", "smart"]
ACRONYM = 4  # maximum length of a phrase in capitals that `smart` matches exactly


class Gazetteer:
    """Phrases with types, to look up in the tokens of sentences.

    Phrases and tokens are split into words and punctuation marks in the same way: "N-acetyl-cysteine" is found whether
    the text has it as one token or as five. A match must still begin and end at token boundaries.

    Phrases are keys of a dictionary, which takes a fraction of the memory of a tree of words. At each token, only the
    lengths of the phrases that begin with its first word are looked up.

    phrases: pairs of type and phrase; of equal phrases the first counts.
    case: "exact" matches case; "lower" ignores it; "smart" ignores it, except for phrases of at most `ACRONYM`
    characters that are all capitals.
    """

    def __init__(self, phrases: Iterable[tuple[str, str]] = (), case: CasePolicy = "smart") -> None:
        self.case: CasePolicy = case
        self._any_case: dict[str, str] = {}  # types by phrase: words in lower case, joined by spaces
        self._exact: dict[str, str] = {}  # the same, as written
        self._lengths: dict[str, int] = {}  # by first word in lower case; bit n: there is a phrase of n words
        self._types: dict[str, str] = {}
        for entity_type, phrase in phrases:
            self.add(entity_type, phrase)

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the phrases, in order of appearance."""
        return tuple(self._types)

    def __len__(self) -> int:
        """Number of distinct phrases."""
        return len(self._any_case) + len(self._exact)

    def entries(self) -> Iterator[tuple[str, str, CasePolicy]]:
        """Type, phrase and case of each phrase: the same list, read again, finds the same spans."""
        for phrases, case in ((self._exact, "exact"), (self._any_case, "lower")):
            for phrase, entity_type in phrases.items():
                yield entity_type, phrase, cast(CasePolicy, case)

    def add(self, entity_type: str, phrase: str, case: CasePolicy | None = None) -> None:
        """Add a phrase. case: how it matches; None: as the others."""
        words = WORD.findall(phrase)
        if not words:
            raise DataError(f"the phrase {phrase!r} of type {entity_type!r} is empty; fill it in or leave it out")
        entity_type = self._types.setdefault(entity_type, entity_type)  # one string per type, not per phrase
        case = case or self.case
        written = " ".join(words)
        if case == "exact" or (case == "smart" and len(phrase) <= ACRONYM and phrase.isupper()):
            self._exact.setdefault(written, entity_type)
        else:
            self._any_case.setdefault(written.casefold(), entity_type)
        first = words[0].casefold()
        self._lengths[first] = self._lengths.get(first, 0) | 1 << len(words)

    def find(self, tokens: Sequence[str]) -> list[Span]:
        """Find phrases from left to right, the longest at each position; spans do not overlap."""
        split = [WORD.findall(token) for token in tokens]
        words = [word for parts in split for word in parts]
        lowered = [word.casefold() for word in words]
        starts = list(accumulate(map(len, split), initial=0))  # of each token, in words
        token_ending_at: dict[int, int] = {}
        for token, end in enumerate(starts[1:]):
            token_ending_at.setdefault(end, token)  # the first: a phrase does not end with a blank token
        spans: list[Span] = []
        token = 0
        while token < len(tokens):
            start, following = starts[token], token + 1
            for length in _bits(self._lengths.get(lowered[start], 0)) if split[token] else ():
                last = token_ending_at.get(start + length)
                if last is None:
                    continue
                end = start + length
                found = self._exact.get(" ".join(words[start:end])) if self._exact else None
                found = found or self._any_case.get(" ".join(lowered[start:end]))
                if found:
                    following = last + 1
                    spans.append(Span(token, following, found))
                    break
            token = following
        return spans


@lru_cache(maxsize=4096)
def _bits(mask: int) -> tuple[int, ...]:
    """The numbers of the bits that are set, the highest first."""
    return tuple(bit for bit in range(mask.bit_length() - 1, -1, -1) if mask >> bit & 1)
