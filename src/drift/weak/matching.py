"""Check conditions on texts: all keywords in one pass, patterns in linear time."""

import functools
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drift.errors import needed_for
from drift.weak.punctuation import stripped, without_punctuation
from drift.weak.schema import Condition, compile_pattern


class Matcher:
    """K compiled conditions. Calling it with N texts returns booleans (N, K): which conditions hold for which text."""

    def __init__(self, conditions: Sequence[Condition], *, strip_punctuation: bool) -> None:
        self.size, self.strip_punctuation = len(conditions), strip_punctuation
        if strip_punctuation:
            conditions = [stripped(condition) for condition in conditions]
        self.keywords = {
            sensitive: _Keywords(
                (keyword if sensitive else keyword.casefold(), number, condition.whole_words)
                for number, condition in enumerate(conditions)
                if condition.case_sensitive == sensitive
                for keyword in condition.has or ()
            )
            for sensitive in (False, True)
        }
        self.patterns = {
            number: compile_pattern(pattern, case_sensitive=condition.case_sensitive)
            for number, condition in enumerate(conditions)
            if (pattern := condition.pattern()) is not None
        }

    def __call__(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        if self.strip_punctuation:
            texts = [without_punctuation(text) for text in texts]
        holds = np.zeros((len(texts), self.size), dtype=bool)
        self.keywords[False].mark([text.casefold() for text in texts], holds)
        self.keywords[True].mark(texts, holds)
        # Half a surrogate pair cannot be encoded in UTF-8, and no pattern can contain one either.
        encoded = [text.encode(errors="replace") for text in texts] if self.patterns else []
        for number, pattern in self.patterns.items():
            holds[:, number] = [pattern.search(text) is not None for text in encoded]
        return holds


@functools.lru_cache(maxsize=4)
def matcher(conditions: tuple[Condition, ...], strip_punctuation: bool) -> Matcher:
    """A `Matcher`, cached: each process compiles it once for all batches."""
    return Matcher(conditions, strip_punctuation=strip_punctuation)


class _Keywords:
    """Find which conditions hold because of a keyword, in time independent of the number of keywords.

    A keyword without a space lies inside one word, and words recur: the automaton sees each distinct word once. Only
    keywords with a space require a walk over whole texts.
    """

    def __init__(self, keywords: Iterable[tuple[str, int, bool]]) -> None:
        """keywords: the keyword, the number of its condition, and whether it must be a whole word."""
        in_words: dict[str, tuple[set[int], set[int]]] = {}
        across: dict[str, tuple[set[int], set[int]]] = {}
        for keyword, number, whole in keywords:
            table = in_words if keyword.split() == [keyword] else across
            table.setdefault(keyword, (set(), set()))[whole].add(number)
        self.in_words, self.across = _automaton(in_words), _automaton(across)

    def mark(self, texts: Sequence[str], holds: NDArray[np.bool_]) -> None:
        """Set holds[n, k] where text n contains a keyword of condition k."""
        if self.in_words:
            self._mark_in_words(texts, holds)
        for row, text in enumerate(texts if self.across else ()):
            holds[row, list(_find(self.across, text))] = True

    def _mark_in_words(self, texts: Sequence[str], holds: NDArray[np.bool_]) -> None:
        from scipy.sparse import csr_array

        numbers: dict[str, int] = defaultdict(count().__next__)  # of the distinct words
        words: list[int] = []  # the words of all texts, concatenated
        lengths = []
        for text in texts:
            split = text.split()
            lengths.append(len(split))
            words.extend(map(numbers.__getitem__, split))
        matches = [_find(self.in_words, word) for word in numbers]  # conditions, per distinct word
        ends = np.cumsum([0, *map(len, matches)])
        conditions = np.fromiter(chain.from_iterable(matches), dtype=np.int64, count=ends[-1])
        shape = (len(matches), holds.shape[1])
        of_word = csr_array((np.ones(len(conditions), dtype=bool), conditions, ends), shape=shape)
        picked = of_word[words]  # (words of all texts, K)
        rows = np.repeat(np.arange(len(texts)), lengths)
        holds[np.repeat(rows, np.diff(picked.indptr)), picked.indices] = True


def _automaton(keywords: dict[str, tuple[set[int], set[int]]]) -> Any:
    """An Aho-Corasick automaton, or None without keywords.

    keywords: for each, the conditions that it satisfies anywhere, and those that it satisfies as a whole word only.
    """
    if not keywords:
        return None
    with needed_for("keywords"):
        import ahocorasick

    automaton = ahocorasick.Automaton()
    for keyword, (anywhere, alone) in keywords.items():
        automaton.add_word(keyword, (len(keyword), anywhere, alone))
    automaton.make_automaton()
    return automaton


def _find(automaton: Any, text: str) -> set[int]:
    """The numbers of the conditions that have a keyword in the text."""
    numbers: set[int] = set()
    for last, (length, anywhere, alone) in automaton.iter(text):
        numbers |= anywhere
        if alone and _stands_alone(text, last + 1 - length, last + 1):
            numbers |= alone
    return numbers


def _stands_alone(text: str, start: int, end: int) -> bool:
    return not (start > 0 and in_a_word(text[start - 1])) and not (end < len(text) and in_a_word(text[end]))


def in_a_word(character: str) -> bool:
    """Whether a character is part of a word: a letter, a digit, an underscore or a combining mark.

    Combining marks keep word boundaries stable under case folding: "İ" folds to "i" and a combining dot.
    """
    return character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")
