"""Names of entity types as a source of noisy tags, by a GLiNER model: it reads a sentence and the types together.

The model marks any phrase, also of lower-case words, with a score for its type. A phrase is tagged if its score is at
least `CERTAIN`. The words of less certain phrases have no tag, which is not O; all other words are O.
"""

from collections.abc import Sequence
from typing import Any

from drift.data.tags import Span, tags_of
from drift.errors import FileError, needed_for
from drift.weak.class_names import Phrases
from drift.weak.type_names import NameTags

INSTALL = "pip install 'drift-ssl[gliner]'"
CERTAIN, POSSIBLE = 0.5, 0.25  # scores
AT_ONCE = 16  # sentences


def gliner_tags(sentences: Sequence[Sequence[str]], types: Phrases, name: str, *, local: bool) -> NameTags:
    """Tag sentences by the names of types, in IOB2.

    types: names with phrases that describe each; where there are phrases, the model is asked for these.
    name: of a GLiNER model on the hub, or a folder with one. local: it is a folder, so that the hub is not asked.
    """
    asked = {phrase.replace("_", " "): kind for kind, described in types.items() for phrase in described or (kind,)}
    texts = [" ".join(words) for words in sentences]
    answers = _load(name, local=local).inference(texts, list(asked), threshold=POSSIBLE, batch_size=AT_ONCE)
    found: list[dict[tuple[int, int], tuple[str, bool]]] = []
    for words, entities in zip(sentences, answers, strict=True):
        bounds: dict[tuple[int, int], tuple[str, bool]] = {}
        for entity in sorted(entities, key=lambda entity: -float(entity["score"])):  # of a word's parts, the best
            if span := _words_of(words, entity["start"], entity["end"]):
                bounds.setdefault(span, (asked[entity["label"]], entity["score"] >= CERTAIN))
        found.append(bounds)
    certain = sum(sure for bounds in found for _, sure in bounds.values())
    tags = [_tags(len(words), bounds) for words, bounds in zip(sentences, found, strict=True)]
    missing = sorted(set(types) - {kind for bounds in found for kind, sure in bounds.values() if sure})
    faults = [f"warning: the GLiNER model found no {', '.join(missing)}"] if missing else []
    return NameTags(tags, certain, sum(map(len, found)), faults, unit="mentions of phrases")


def _load(name: str, *, local: bool) -> Any:
    with needed_for("data.gliner needs the package gliner", INSTALL):
        from gliner import GLiNER  # type: ignore[import-not-found, unused-ignore]

    try:
        model = GLiNER.from_pretrained(name, local_files_only=local)
    except (OSError, ValueError, KeyError) as error:  # of the hub, or of a folder with something else
        raise FileError(f"{name} is no GLiNER model that can be read: {str(error).splitlines()[0]}") from error
    return model.eval()


def _words_of(words: Sequence[str], start: int, end: int) -> tuple[int, int] | None:
    """The words that lie in these characters of the words joined by spaces; None if there are none."""
    inside, at = [], 0
    for number, word in enumerate(words):
        if at < end and at + len(word) > start:
            inside.append(number)
        at += len(word) + 1
    return (inside[0], inside[-1] + 1) if inside else None


def _tags(length: int, bounds: dict[tuple[int, int], tuple[str, bool]]) -> list[str | None]:
    taken: set[int] = set()
    spans = []
    for (start, end), (kind, sure) in bounds.items():
        if sure and not taken & set(range(start, end)):  # a word may be part of two phrases, as in "Ann's"
            spans.append(Span(start, end, kind))
            taken.update(range(start, end))
    tags: list[str | None] = list(tags_of(spans, length))
    for start, end in bounds:
        for word in set(range(start, end)) - taken:
            tags[word] = None
    return tags
