"""Names of entity types as a source of noisy tags: which capitalised phrases are near to which name, as vectors.

1. Candidates are phrases of capitalised words. The first word of a sentence counts if the corpus does not have it in
   lower case; sentences that are mostly in capitals are left out, because there capitals say nothing.
2. Each distinct candidate is embedded as "X is the name of something." and compared with the vectors of the types, as
   texts are compared with names of classes (`drift.weak.names`).
3. The more certain half of the candidates of each type is tagged. The others have no tag, which is not O; all other
   words are O.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from drift.data.tags import Span, tags_of
from drift.errors import DataError
from drift.weak.class_names import Phrases
from drift.weak.names import name_votes

CANDIDATE = "{} is the name of something."
TYPES = ("{} is the name of something.", "This is the name of a {}.")
INSIDE = frozenset({"of", "de", "van", "von"})  # in lower case between capitalised words
MOSTLY = 0.7  # of the words of a sentence in capitals: a headline


@dataclass(frozen=True)
class NameTags:
    """What the names of types say. tags: per sentence, None for unknown. tagged, candidates: numbers of units."""

    tags: list[list[str | None]]
    tagged: int
    candidates: int
    faults: list[str]
    unit: str = "distinct capitalised phrases"


def name_tags(
    sentences: Sequence[Sequence[str]], types: Phrases, embed: Callable[[Sequence[str]], np.ndarray]
) -> NameTags:
    """Tag sentences by the names of types, in IOB2.

    types: names with phrases that describe each; where there are phrases, they are compared instead of the name.
    embed: vectors of texts, `(n, D)`.
    """
    spans = candidates(sentences)
    of_span = [
        [" ".join(words[start:end]) for start, end in found] for words, found in zip(sentences, spans, strict=True)
    ]
    phrases = sorted({phrase for found in of_span for phrase in found})
    if not phrases:
        raise DataError(
            "class names: no word inside a sentence begins with a capital letter, so there are no candidates to"
            " compare; give rules, or a few tagged sentences"
        )
    vectors = np.stack([_type_vector(described or (name,), embed) for name, described in types.items()])
    votes = name_votes(np.asarray(embed([CANDIDATE.format(phrase) for phrase in phrases])), vectors, list(types))
    names, certain = list(types), np.asarray(votes.votes.any(-1))
    type_of = {phrase: names[code] for phrase, code, kept in zip(phrases, votes.likely, certain, strict=True) if kept}
    tags = [
        _tags(words, found, [type_of.get(phrase) for phrase in texts])
        for words, found, texts in zip(sentences, spans, of_span, strict=True)
    ]
    return NameTags(tags, len(type_of), len(phrases), votes.faults)


def candidates(sentences: Sequence[Sequence[str]]) -> list[list[tuple[int, int]]]:
    """The bounds of capitalised phrases in each sentence."""
    lower = {word for words in sentences for word in words if word.islower()}
    return [[] if _is_headline(words) else _capitalised(words, lower) for words in sentences]


def _capitalised(words: Sequence[str], lower: set[str]) -> list[tuple[int, int]]:
    found = []
    start = 1 if words and words[0].lower() in lower else 0
    while start < len(words):
        end = start
        while end < len(words) and (
            words[end][:1].isupper()
            or (start < end < len(words) - 1 and words[end] in INSIDE and words[end + 1][:1].isupper())
        ):
            end += 1
        if end > start:
            found.append((start, end))
        start = max(end, start + 1)
    return found


def _is_headline(words: Sequence[str]) -> bool:
    spelled = [word for word in words if word.isalpha()]
    return sum(word.isupper() for word in spelled) > MOSTLY * len(spelled)


def _tags(words: Sequence[str], spans: Sequence[tuple[int, int]], types: Sequence[str | None]) -> list[str | None]:
    if not spans and _is_headline(words):
        return [None] * len(words)
    pairs = list(zip(spans, types, strict=True))
    tags: list[str | None] = list(
        tags_of((Span(start, end, name) for (start, end), name in pairs if name is not None), len(words))
    )
    for (start, end), name in pairs:
        if name is None:
            tags[start:end] = [None] * (end - start)
    return tags


def _type_vector(described: Sequence[str], embed: Callable[[Sequence[str]], np.ndarray]) -> np.ndarray:
    """A vector of length 1."""
    texts = [template.format(each.replace("_", " ")) for each in described for template in TYPES]
    vectors = np.asarray(embed(texts), dtype=np.float64)
    mean = (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).mean(0)
    return np.asarray(mean / np.linalg.norm(mean))
