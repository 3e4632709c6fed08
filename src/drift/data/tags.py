"""Conversion between tags of tokens and spans, in all common schemes, and repair of tags.

IOB2 has B-X on the first token of every entity of type X and I-X on its other tokens. IOB1 has B-X only if an entity of
the same type ends just before. BIOES has E-X on the last token, and S-X on an entity of one token. IO has I-X, or plain
X, on every token. `O` means that a token is in no entity; None that its tag is unknown. Both end an entity.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from drift.errors import ConfigError, LabelError

OUTSIDE = "O"
SCHEMES = ("IOB2", "IOB1", "BIOES", "IO")
PREFIXES = {"IOB2": "BI", "IOB1": "BI", "BIOES": "BIES", "IO": "I"}
OPENING = {"IOB2": "B", "IOB1": "BI", "BIOES": "BS", "IO": "I"}  # prefixes that can begin an entity
IOB2_PREFIX = {"B": "B", "I": "I", "E": "I", "S": "B"}


@dataclass(frozen=True, order=True)
class Span:
    """An entity: the tokens [start, end), of this type."""

    start: int
    end: int
    type: str


def spans_of(tags: Sequence[str | None], scheme: str = "IOB2") -> list[Span]:
    """The entities in a sentence's tags. Tags that break the scheme form no entity (see `repaired`)."""
    _check(scheme)
    parts = [split_tag(tag, scheme) for tag in tags]
    spans = []
    start = None  # first token of the current entity
    for token, (prefix, entity_type) in enumerate([*parts, (OUTSIDE, "")]):
        if start is None or prefix not in "IE" or entity_type != parts[start][1]:
            if start is not None and scheme != "BIOES":  # in BIOES, an entity without E- is incomplete
                spans.append(Span(start, token, parts[start][1]))
            start = token if prefix in OPENING[scheme] else None
        if start is not None and prefix in "ES":
            spans.append(Span(start, token + 1, entity_type))
            start = None
    return spans


def tags_of(spans: Iterable[Span], length: int, scheme: str = "IOB2") -> list[str]:
    """The tags of `length` tokens for these entities.

    In IO, tags are plain names, and two adjacent entities of the same type become one.
    """
    _check(scheme)
    tags = [OUTSIDE] * length
    previous = Span(0, 0, "")
    for span in sorted(spans):
        size = span.end - span.start
        if not 0 <= span.start < span.end <= length:
            raise LabelError(f"{span} is not within the {length} tokens; tokens are counted from 0, start < end")
        if span.start < previous.end:
            raise LabelError(f"{span} overlaps {previous}; a token has one tag: keep one of the two")
        adjacent = (previous.end, previous.type) == (span.start, span.type)
        prefixes = "B" + "I" * (size - 1)
        if scheme == "BIOES":
            prefixes = prefixes[:-1] + "E" if size > 1 else "S"
        elif scheme == "IOB1" and not adjacent:
            prefixes = "I" * size
        tags[span.start : span.end] = [span.type if scheme == "IO" else f"{prefix}-{span.type}" for prefix in prefixes]
        previous = span
    return tags


def to_iob2(tags: Sequence[str | None], scheme: str) -> list[str | None]:
    """Convert tags without `faults` to IOB2; None stays None."""
    if scheme == "IOB2":
        return list(tags)
    converted: list[str | None] = []
    for tag in tags:
        prefix, entity_type = split_tag(tag, scheme)
        converted.append(f"{IOB2_PREFIX[prefix]}-{entity_type}" if entity_type else tag)
    return converted if scheme == "BIOES" else repaired(converted)


def repaired(tags: Sequence[str | None]) -> list[str | None]:
    """Valid IOB2 tags: an I-X that follows neither B-X nor I-X becomes B-X."""
    valid: list[str | None] = []
    previous = ""
    for tag in tags:
        prefix, entity_type = split_tag(tag, "IOB2")
        valid.append(f"B-{entity_type}" if prefix == "I" and entity_type != previous else tag)
        previous = entity_type
    return valid


def faults(tags: Sequence[str | None], scheme: str) -> dict[int, str]:
    """Messages by token (from 0) about unknown tags or, if there are none, about tags outside complete entities."""
    unknown = {token: fault for token, tag in enumerate(tags) if (fault := tag_fault(tag, scheme))}
    if unknown:
        return unknown
    covered = {token for span in spans_of(tags, scheme) for token in range(span.start, span.end)}
    stray = [token for token, tag in enumerate(tags) if tag not in (None, OUTSIDE) and token not in covered]
    return {token: f"{tags[token]!r} is not part of an entity that {scheme} allows" for token in stray}


def tag_fault(tag: str | None, scheme: str) -> str | None:
    """What is wrong with a tag by itself; None if it is a tag of the scheme."""
    try:
        split_tag(tag, scheme)
    except LabelError as error:
        return str(error)
    return None


def guess_scheme(sentences: Iterable[Sequence[str | None]]) -> str:
    """The most likely scheme of these tags; IOB2 if nothing indicates another.

    Names without a prefix indicate IO; E- and S- indicate BIOES; entities that begin with I- indicate IOB1.
    """
    prefixes: Counter[str] = Counter()  # of all tags; "" for none
    first_prefixes: Counter[str] = Counter()  # of the tags that certainly begin an entity
    for tags in sentences:
        previous = ""
        for tag in tags:
            prefix, entity_type = _halves(tag)
            if entity_type:
                prefixes[prefix] += 1
                first_prefixes[prefix] += entity_type != previous
            previous = entity_type
    if prefixes[""] > prefixes.total() / 2:
        return "IO"
    if prefixes["E"] or prefixes["S"]:
        return "BIOES"
    return "IOB1" if first_prefixes["I"] > first_prefixes["B"] else "IOB2"


def tag_set(types: Iterable[str], scheme: str = "IOB2") -> list[str]:
    """All tags for these entity types: O first, then the types in sorted order."""
    _check(scheme)
    distinct = sorted(set(types))
    if scheme == "IO":
        return [OUTSIDE, *distinct]
    return [OUTSIDE, *(f"{prefix}-{entity_type}" for entity_type in distinct for prefix in PREFIXES[scheme])]


@lru_cache(maxsize=4096)
def split_tag(tag: str | None, scheme: str) -> tuple[str, str]:
    """The prefix and the type of a tag; the type is empty for O and None."""
    _check(scheme)
    prefix, entity_type = _halves(tag)
    if tag is None or tag == OUTSIDE:
        return OUTSIDE, ""
    if scheme == "IO" and prefix not in ("B", "I"):  # a name such as E-mail has no prefix
        prefix, entity_type = "I", tag
    if prefix not in PREFIXES[scheme] or not prefix or not entity_type:
        known = "TYPE" if scheme == "IO" else ", ".join(f"{known}-TYPE" for known in PREFIXES[scheme])
        raise LabelError(f"{tag!r} is not a tag of {scheme}; write {known} or {OUTSIDE}, or name another scheme")
    return prefix, entity_type


def _halves(tag: str | None) -> tuple[str, str]:
    """Prefix and type by the form of a tag; the prefix of a plain name is empty."""
    if tag is None or tag == OUTSIDE:
        return OUTSIDE, ""
    if tag[1:2] == "-" and tag[0].isupper():
        return tag[0], tag[2:]
    return "", tag


def _check(scheme: str) -> None:
    if scheme not in SCHEMES:
        raise ConfigError(f"scheme {scheme!r} is not one of {', '.join(SCHEMES)}")
