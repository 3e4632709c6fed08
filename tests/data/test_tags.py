"""Tags and spans are equivalent in every scheme; seqeval is the oracle."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB1, IOB2, IOBES, Entities

from drift.data.tags import (
    SCHEMES,
    Span,
    faults,
    guess_scheme,
    repaired,
    spans_of,
    split_tag,
    tag_fault,
    tag_set,
    tags_of,
    to_iob2,
)
from drift.errors import ConfigError, LabelError

STRICT = {"IOB2": IOB2, "BIOES": IOBES}
TYPES = ("LOC", "PER", "Work-Of-Art")


def tag_lists(scheme: str, *, blanks: bool = False) -> st.SearchStrategy[list[str]]:
    tags = st.sampled_from(tag_set(TYPES, scheme))
    return st.lists(st.one_of(st.none(), tags) if blanks else tags, max_size=12)


@st.composite
def span_lists(draw: st.DrawFn) -> tuple[list[Span], int]:
    """Disjoint spans, including adjacent ones of the same type, and the number of tokens."""
    spans, place = [], 0
    for gap, size, kind in draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from(TYPES)))):
        spans.append(Span(place + gap, place + gap + size, kind))
        place += gap + size
    return spans, place + draw(st.integers(0, 2))


def strict_entities(tags: list[str], scheme: type) -> list[Span]:
    return [Span(entity.start, entity.end, entity.tag) for entity in Entities([tags], scheme).entities[0]]


def lenient_entities(tags: list[str]) -> list[Span]:
    return [Span(start, last + 1, kind) for kind, start, last in get_entities(tags)]


@pytest.mark.parametrize("scheme", ["IOB2", "IOB1", "BIOES"])
@given(spans=span_lists())
def test_spans_survive_the_way_through_tags(scheme: str, spans: tuple[list[Span], int]) -> None:
    tags = tags_of(*spans, scheme)
    assert spans_of(tags, scheme) == spans[0]
    assert faults(tags, scheme) == {}
    assert len(tags) == spans[1]


@given(spans=span_lists())
def test_io_keeps_spans_up_to_touching_ones(spans: tuple[list[Span], int]) -> None:
    tags = tags_of(*spans, "IO")
    assert faults(tags, "IO") == {}
    assert tags_of(spans_of(tags, "IO"), spans[1], "IO") == tags
    assert [tag != "O" for tag in tags] == [tag != "O" for tag in tags_of(*spans)]


@pytest.mark.parametrize("scheme", ["IOB2", "BIOES"])
@given(data=st.data())
def test_any_tags_are_read_as_seqeval_reads_them_strictly(scheme: str, data: st.DataObject) -> None:
    tags = data.draw(tag_lists(scheme))
    assert spans_of(tags, scheme) == strict_entities(tags, STRICT[scheme])


@given(spans=span_lists())
def test_iob1_is_read_as_seqeval_reads_it(spans: tuple[list[Span], int]) -> None:
    tags = tags_of(*spans, "IOB1")
    assert spans_of(tags, "IOB1") == strict_entities(tags, IOB1)


@given(tags=tag_lists("IOB2"))
def test_repaired_tags_are_what_seqeval_reads_leniently(tags: list[str]) -> None:
    assert spans_of(repaired(tags)) == lenient_entities(tags)


@given(tags=tag_lists("IOB2", blanks=True))
def test_repaired_tags_are_valid_and_stay_unchanged(tags: list[str | None]) -> None:
    mended = repaired(tags)
    assert faults(mended, "IOB2") == {}
    assert repaired(mended) == mended
    if not faults(tags, "IOB2"):
        assert mended == tags


@pytest.mark.parametrize("scheme", SCHEMES)
@given(data=st.data())
def test_iob2_has_the_entities_of_every_other_scheme(scheme: str, data: st.DataObject) -> None:
    tags = data.draw(tag_lists(scheme, blanks=True))
    turned = to_iob2(tags, scheme)
    assert [tag is None for tag in turned] == [tag is None for tag in tags]
    if not faults(tags, scheme):
        assert spans_of(turned) == spans_of(tags, scheme)
        assert faults(turned, "IOB2") == {}


@pytest.mark.parametrize("scheme", SCHEMES)
@given(data=st.data())
def test_none_ends_an_entity_as_o_does(scheme: str, data: st.DataObject) -> None:
    tags = data.draw(tag_lists(scheme, blanks=True))
    assert spans_of(tags, scheme) == spans_of([tag or "O" for tag in tags], scheme)


def test_io_is_read_with_and_without_its_prefix() -> None:
    expected = [Span(0, 2, "Rating"), Span(2, 3, "Cuisine"), Span(4, 5, "Cuisine")]
    assert spans_of(["Rating", "Rating", "Cuisine", "O", "Cuisine"], "IO") == expected
    assert spans_of(["I-Rating", "I-Rating", "I-Cuisine", "O", "I-Cuisine"], "IO") == expected
    assert to_iob2(["Rating", "Rating", None, "Rating"], "IO") == ["B-Rating", "I-Rating", None, "B-Rating"]
    assert spans_of(["E-mail", "E-mail"], "IO") == [Span(0, 2, "E-mail")]


def test_adjacent_entities_in_each_scheme() -> None:
    spans = [Span(0, 2, "LOC"), Span(2, 3, "LOC"), Span(4, 7, "PER")]
    written = {scheme: " ".join(tags_of(reversed(spans), 7, scheme)) for scheme in SCHEMES}
    assert written == {
        "IOB2": "B-LOC I-LOC B-LOC O B-PER I-PER I-PER",
        "IOB1": "I-LOC I-LOC B-LOC O I-PER I-PER I-PER",
        "BIOES": "B-LOC E-LOC S-LOC O B-PER I-PER E-PER",
        "IO": "LOC LOC LOC O PER PER PER",
    }


@pytest.mark.parametrize(
    ("spans", "length", "message"),
    [
        ([Span(0, 2, "X"), Span(1, 3, "Y")], 3, "overlaps Span(start=0, end=2, type='X')"),
        ([Span(0, 4, "X")], 3, "not within the 3 tokens"),
        ([Span(-1, 1, "X")], 3, "not within the 3 tokens"),
        ([Span(1, 1, "X")], 3, "not within the 3 tokens"),
    ],
)
def test_spans_that_cannot_be_tags_are_refused(spans: list[Span], length: int, message: str) -> None:
    with pytest.raises(LabelError) as caught:
        tags_of(spans, length)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("tags", "scheme", "expected"),
    [
        (["B-X", "I-X", "O", "I-X", "I-X"], "IOB2", [3, 4]),
        (["B-X", "I-Y"], "IOB2", [1]),
        (["B-X", None, "I-X"], "IOB2", [2]),
        (["I-X", "B-X", "I-Y"], "IOB1", []),
        (["B-X", "I-X", "O", "S-X", "E-X"], "BIOES", [0, 1, 4]),
        (["X", "I-X", "O", "Y"], "IO", []),
        (["B-X", "X", "U-X", "B-", ""], "IOB2", [1, 2, 3, 4]),
    ],
)
def test_faults_name_the_tokens(tags: list[str | None], scheme: str, expected: list[int]) -> None:
    assert list(faults(tags, scheme)) == expected


def test_a_tag_of_another_scheme_is_reported() -> None:
    assert (
        tag_fault("U-LOC", "IOB2") == "'U-LOC' is not a tag of IOB2; write B-TYPE, I-TYPE or O, or name another scheme"
    )
    assert tag_fault("B-LOC", "IO") == "'B-LOC' is not a tag of IO; write TYPE or O, or name another scheme"
    assert tag_fault(None, "IO") is tag_fault("O", "IO") is tag_fault("S-X", "BIOES") is None
    with pytest.raises(LabelError, match="'LOC' is not a tag of IOB2"):
        spans_of(["LOC"])


@given(spans=span_lists())
def test_the_guessed_scheme_reads_the_same_entities(spans: tuple[list[Span], int]) -> None:
    for scheme in SCHEMES[:-1]:
        tags = tags_of(*spans, scheme)
        assert spans_of(tags, guess_scheme([tags])) == spans[0]


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ("O O", "IOB2"),
        ("B-X O", "IOB2"),
        ("B-X I-X B-X O I-Y B-Y O", "IOB2"),  # one invalid tag does not make it IOB1
        ("I-X I-X B-X O I-Y", "IOB1"),
        ("S-X O", "BIOES"),
        ("B-X E-X", "BIOES"),
        ("Rating E-mail Cuisine", "IO"),
        ("B-X I-X LOC", "IOB2"),
        ("B-X L-X U-X", "IOB2"),  # refused later: its prefixes are unknown
    ],
)
def test_the_scheme_is_guessed_from_most_of_the_tags(tags: str, scheme: str) -> None:
    assert guess_scheme([tags.split(), [None, "O"], []]) == scheme


def test_the_tag_set_has_o_first_and_sorted_types() -> None:
    assert tag_set(["PER", "LOC", "PER"]) == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    assert tag_set(["LOC"], "BIOES") == ["O", "B-LOC", "I-LOC", "E-LOC", "S-LOC"]
    assert tag_set(["b", "a"], "IO") == ["O", "a", "b"]
    assert tag_set([]) == ["O"]


def test_unknown_schemes_are_refused() -> None:
    for call in (lambda: spans_of([], "BILOU"), lambda: tags_of([], 2, "BILOU"), lambda: tag_set([], "BILOU")):
        with pytest.raises(ConfigError, match="'BILOU' is not one of IOB2, IOB1, BIOES, IO"):
            call()


def test_a_tag_is_split_once_at_its_prefix() -> None:
    assert split_tag("B-Work-Of-Art", "IOB2") == ("B", "Work-Of-Art")
    assert split_tag(None, "IOB2") == split_tag("O", "IOB2") == ("O", "")
