"""Mentions of entities in tagged sentences: the same phrase tagged differently, and copies that are not tagged."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from drift.data.tags import OUTSIDE, spans_of

LONGEST = 8  # words of a phrase whose untagged copies are looked for
LEAST = 2  # tagged mentions of a phrase, from which an untagged copy is suspected
MAJORITY = 0.6  # share of a phrase's mentions that have the commonest type, from which the others are suspected


@dataclass
class Phrase:
    """All mentions of one phrase.

    types: how often it is an entity of each type; `OUTSIDE` counts copies that are not tagged. places: sentence, first
    word and type of each mention.
    """

    types: Counter[str] = field(default_factory=Counter)
    places: list[tuple[int, int, str]] = field(default_factory=list)

    @property
    def usual(self) -> tuple[str, int]:
        """The commonest type, and how often it is given."""
        return self.types.most_common(1)[0]


@dataclass(frozen=True)
class Mention:
    """A suspicious mention.

    sentence, word: counted from 0. tagged: its type, or `OUTSIDE`. usual: the commonest type of this phrase.
    share: of the phrase's mentions with that type. counts: of all its types.
    """

    sentence: int
    word: int
    phrase: str
    tagged: str
    usual: str
    share: float
    counts: Counter[str]


def phrases_of(
    tokens: Sequence[Sequence[str]], tags: Sequence[Sequence[str | None] | None], scheme: str
) -> dict[tuple[str, ...], Phrase]:
    """Every phrase that is an entity somewhere, with all of its mentions, tagged or not.

    Case counts: "May" and "may" are different phrases. A copy inside a larger entity is no mention. Time is linear in
    the number of words.
    """
    phrases: dict[tuple[str, ...], Phrase] = defaultdict(Phrase)
    for row, sentence in enumerate(tags):
        for span in spans_of(sentence or (), scheme):
            phrase = phrases[tuple(tokens[row][span.start : span.end])]
            phrase.types[span.type] += 1
            phrase.places.append((row, span.start, span.type))
    longest: dict[str, int] = {}
    for key in phrases:
        longest[key[0]] = max(longest.get(key[0], 0), min(len(key), LONGEST))
    for row, sentence in enumerate(tags):
        if sentence is None:
            continue
        words, start = tokens[row], 0
        while start < len(words):
            size = _untagged_size(words, sentence, start, longest.get(words[start], 0), phrases)
            if size:
                phrase = phrases[tuple(words[start : start + size])]
                phrase.types[OUTSIDE] += 1
                phrase.places.append((row, start, OUTSIDE))
            start += max(1, size)
    return dict(phrases)


def _untagged_size(
    words: Sequence[str],
    tags: Sequence[str | None],
    start: int,
    longest: int,
    phrases: dict[tuple[str, ...], Phrase],
) -> int:
    """Words of the longest phrase that begins here and is tagged O throughout; 0 if there is none."""
    for size in range(min(longest, len(words) - start), 0, -1):
        if tuple(words[start : start + size]) in phrases and all(tag == OUTSIDE for tag in tags[start : start + size]):
            return size
    return 0


def suspicious_mentions(phrases: dict[tuple[str, ...], Phrase]) -> list[Mention]:
    """Mentions that are tagged unlike most copies of their phrase, the surest first.

    An untagged one is suspected if its phrase is tagged at least `LEAST` times, and mostly. A tagged one is
    suspected if most of the others have one other type.
    """
    found = []
    for key, phrase in phrases.items():
        usual, count = phrase.usual
        total = phrase.types.total()
        if len(phrase.types) < 2 or count < LEAST or count < MAJORITY * total:
            continue
        for row, word, tagged in phrase.places:
            if tagged != usual:
                found.append(Mention(row, word, " ".join(key), tagged, usual, count / total, phrase.types))
    return sorted(found, key=lambda each: (-each.share, -each.counts.total(), each.sentence, each.word))
