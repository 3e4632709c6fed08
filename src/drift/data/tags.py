"""Tags of tokens as spans and back, in every scheme in use, and their repair.

IOB2 writes B-X on the first token of every entity of type X and I-X on the rest of it; IOB1 writes B-X only where an
entity of the same type ends just before; BIOES writes E-X on the last token and S-X on an only one; IO writes I-X, or
plain X, on every token. `O` says that a token belongs to no entity, None that nobody has said anything. Both end an
entity.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from drift.errors import ConfigError, LabelError

OUTSIDE = "O"
SCHEMES = ("IOB2", "IOB1", "BIOES", "IO")
PREFIXES = {"IOB2": "BI", "IOB1": "BI", "BIOES": "BIES", "IO": "I"}
OPENING = {"IOB2": "B", "IOB1": "BI", "BIOES": "BS", "IO": "I"}  # the prefixes that an entity can begin with
IOB2_PREFIX = {"B": "B", "I": "I", "E": "I", "S": "B"}


@dataclass(frozen=True, order=True)
class Span:
    """The tokens [start, end) are one entity of this type."""

    start: int
    end: int
    type: str


def spans_of(tags: Sequence[str | None], scheme: str = "IOB2") -> list[Span]:
    """The entities that the tags spell, read strictly: what breaks the scheme is no entity (see `repaired`)."""
    _check(scheme)
    parts = [split_tag(tag, scheme) for tag in tags]
    spans = []
    start = None  # of the entity that is open
    for place, (prefix, kind) in enumerate([*parts, (OUTSIDE, "")]):
        if start is None or prefix not in "IE" or kind != parts[start][1]:
            if start is not None and scheme != "BIOES":  # there, what has no E- is not whole
                spans.append(Span(start, place, parts[start][1]))
            start = place if prefix in OPENING[scheme] else None
        if start is not None and prefix in "ES":
            spans.append(Span(start, place + 1, kind))
            start = None
    return spans


def tags_of(spans: Iterable[Span], length: int, scheme: str = "IOB2") -> list[str]:
    """The tags of `length` tokens; IO has plain names, and makes one entity of two that touch and have one type."""
    _check(scheme)
    tags = [OUTSIDE] * length
    before = Span(0, 0, "")
    for span in sorted(spans):
        size = span.end - span.start
        if not 0 <= span.start < span.end <= length:
            raise LabelError(f"{span} is not within the {length} tokens; tokens are counted from 0, start < end")
        if span.start < before.end:
            raise LabelError(f"{span} overlaps {before}; a token has one tag: keep one of the two")
        touches = (before.end, before.type) == (span.start, span.type)
        prefixes = "B" + "I" * (size - 1)
        if scheme == "BIOES":
            prefixes = prefixes[:-1] + "E" if size > 1 else "S"
        elif scheme == "IOB1" and not touches:
            prefixes = "I" * size
        tags[span.start : span.end] = [span.type if scheme == "IO" else f"{prefix}-{span.type}" for prefix in prefixes]
        before = span
    return tags


def to_iob2(tags: Sequence[str | None], scheme: str) -> list[str | None]:
    """The same entities in IOB2, from tags without `faults`; None stays None."""
    if scheme == "IOB2":
        return list(tags)
    turned: list[str | None] = []
    for tag in tags:
        prefix, kind = split_tag(tag, scheme)
        turned.append(f"{IOB2_PREFIX[prefix]}-{kind}" if kind else tag)
    return turned if scheme == "BIOES" else repaired(turned)


def repaired(tags: Sequence[str | None]) -> list[str | None]:
    """IOB2 without faults: an I-X that follows neither B-X nor I-X becomes B-X."""
    mended: list[str | None] = []
    before = ""
    for tag in tags:
        prefix, kind = split_tag(tag, "IOB2")
        mended.append(f"B-{kind}" if prefix == "I" and kind != before else tag)
        before = kind
    return mended


def faults(tags: Sequence[str | None], scheme: str) -> dict[int, str]:
    """What the scheme does not allow, by token from 0: unknown tags, else tags that belong to no whole entity."""
    unknown = {place: fault for place, tag in enumerate(tags) if (fault := tag_fault(tag, scheme))}
    if unknown:
        return unknown
    whole = {place for span in spans_of(tags, scheme) for place in range(span.start, span.end)}
    lost = [place for place, tag in enumerate(tags) if tag not in (None, OUTSIDE) and place not in whole]
    return {place: f"{tags[place]!r} is not part of an entity that {scheme} allows" for place in lost}


def tag_fault(tag: str | None, scheme: str) -> str | None:
    """What is wrong with a tag, whatever stands beside it; None if nothing is."""
    try:
        split_tag(tag, scheme)
    except LabelError as error:
        return str(error)
    return None


def guess_scheme(sentences: Iterable[Sequence[str | None]]) -> str:
    """The scheme that most of the tags are written in; IOB2 where nothing speaks for another.

    Names without a prefix are IO; E- and S- are BIOES; entities that begin with I- are IOB1.
    """
    seen: Counter[str] = Counter()  # tags by prefix, "" without one
    begun: Counter[str] = Counter()  # those among them that surely begin an entity
    for tags in sentences:
        before = ""
        for tag in tags:
            prefix, kind = _halves(tag)
            if kind:
                seen[prefix] += 1
                begun[prefix] += kind != before
            before = kind
    if seen[""] > seen.total() / 2:
        return "IO"
    if seen["E"] or seen["S"]:
        return "BIOES"
    return "IOB1" if begun["I"] > begun["B"] else "IOB2"


def tag_set(types: Iterable[str], scheme: str = "IOB2") -> list[str]:
    """Every tag there can be: O first, then type by type in sorted order."""
    _check(scheme)
    kinds = sorted(set(types))
    if scheme == "IO":
        return [OUTSIDE, *kinds]
    return [OUTSIDE, *(f"{prefix}-{kind}" for kind in kinds for prefix in PREFIXES[scheme])]


@lru_cache(maxsize=4096)
def split_tag(tag: str | None, scheme: str) -> tuple[str, str]:
    """The prefix and the type of a tag; the type is empty for O and None."""
    _check(scheme)
    prefix, kind = _halves(tag)
    if tag is None or tag == OUTSIDE:
        return OUTSIDE, ""
    if scheme == "IO" and prefix not in ("B", "I"):  # a name such as E-mail is whole
        prefix, kind = "I", tag
    if prefix not in PREFIXES[scheme] or not prefix or not kind:
        known = "TYPE" if scheme == "IO" else ", ".join(f"{known}-TYPE" for known in PREFIXES[scheme])
        raise LabelError(f"{tag!r} is not a tag of {scheme}; write {known} or {OUTSIDE}, or name another scheme")
    return prefix, kind


def _halves(tag: str | None) -> tuple[str, str]:
    """Prefix and type by the look of a tag alone; no prefix: a plain name."""
    if tag is None or tag == OUTSIDE:
        return OUTSIDE, ""
    if tag[1:2] == "-" and tag[0].isupper():
        return tag[0], tag[2:]
    return "", tag


def _check(scheme: str) -> None:
    if scheme not in SCHEMES:
        raise ConfigError(f"scheme {scheme!r} is not one of {', '.join(SCHEMES)}")
