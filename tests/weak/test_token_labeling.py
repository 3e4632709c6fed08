"""From what rules find to tags: votes by span and by token, ties, and what was said by nobody."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.data.tags import Span, faults
from drift.errors import ConfigError, DataError, LabelError
from drift.weak import rule
from drift.weak.token_labeling import choose_spans, label_tokens
from drift.weak.token_rules import TokenRuleSet


def says(*spans: tuple[int, int, str], weight: float = 1.0) -> tuple[Any, float]:
    """What a rule finds whatever it sees, and what its vote counts."""
    return (lambda tokens: spans), weight


def tags(*said: tuple[Any, float], votes: Any = "span", ties: Any = "abstain", seed: int = 0) -> str:
    """The tags of four tokens, `.` where there is none."""
    rules = [rule(find, name=str(place), weight=weight) for place, (find, weight) in enumerate(said)]
    found = label_tokens([["t"] * 4], TokenRuleSet(rules, ["X", "Y"], votes=votes, ties=ties), seed=seed)
    return " ".join(tag or "." for tag in found.tags[0])


BOTH = pytest.mark.parametrize("votes", ["span", "token"])


@BOTH
def test_one_rule_is_tagged_as_it_finds(votes: str) -> None:
    assert tags(says((0, 2, "X"), (2, 3, "X")), votes=votes) == "B-X I-X B-X ."
    assert tags(says((1, 3, "O"), (3, 4, "Y")), votes=votes) == ". O O B-Y"
    assert tags(says(), votes=votes) == ". . . ."


@BOTH
def test_most_votes_win_and_weights_count(votes: str) -> None:
    x, y = (0, 2, "X"), (0, 2, "Y")
    assert tags(says(x), says(y), says(y), votes=votes) == "B-Y I-Y . ."
    assert tags(says(x, weight=3), says(y), says(y), votes=votes) == "B-X I-X . ."
    assert tags(says(x, weight=0.3), says(y, weight=0.1), says(y, weight=0.2), votes=votes) == ". . . ."
    assert tags(says(x, weight=0), votes=votes) == ". . . ."


@BOTH
def test_weights_that_differ_by_rounding_alone_are_the_same(votes: str) -> None:
    for size in (1e-12, 1.0, 1e9):
        both = says((0, 1, "Y"), weight=0.1 * size), says((0, 1, "Y"), weight=0.2 * size)
        assert tags(says((0, 1, "X"), weight=0.3 * size), *both, votes=votes) == ". . . ."
        assert tags(says((0, 1, "X"), weight=0.4 * size), *both, votes=votes) == "B-X . . ."


def test_as_many_votes_to_begin_as_to_go_on_go_on() -> None:
    begin = says((0, 1, "X"), (1, 2, "X"), weight=0.1), says((0, 1, "X"), (1, 2, "X"), weight=0.2)
    assert tags(says((0, 2, "X"), weight=0.3), *begin, votes="token") == "B-X I-X . ."  # 0.1 + 0.2 > 0.3 in floats


def test_rules_in_a_list() -> None:
    assert label_tokens([["a", "b"]], [{"name": "r", "token": "a", "type": "X"}]).tags == [["B-X", None]]


@BOTH
def test_ties(votes: str) -> None:
    pair = says((0, 2, "Y")), says((0, 2, "X"))
    assert tags(*pair, votes=votes) == ". . . ."
    assert tags(*pair, votes=votes, ties="order") == "B-Y I-Y . ."
    assert tags(says((0, 1, "O")), says((0, 1, "X")), votes=votes) == ". . . ."
    drawn = {tags(says((0, 1, "Y")), says((0, 1, "X")), votes=votes, ties="random", seed=seed) for seed in range(20)}
    assert drawn == {"B-X . . .", "B-Y . . ."}


def test_of_overlapping_spans_the_most_voted_wins_then_the_longest() -> None:
    long, short = (0, 3, "X"), (1, 2, "Y")
    assert tags(says(short), says(long)) == "B-X I-X I-X ."
    assert tags(says(short), says(long), says(short)) == ". B-Y . ."
    assert tags(says((0, 2, "X")), says((1, 4, "Y"))) == ". B-Y I-Y I-Y"


def test_what_is_tied_goes_to_nobody_with_fewer_votes() -> None:
    tied = says((0, 2, "X")), says((1, 3, "X"))
    assert tags(*tied, says((0, 1, "Y")), says((3, 4, "Y"))) == ". . . B-Y"
    assert tags(*tied, says((2, 3, "Y")), ties="order") == "B-X I-X B-Y ."


def test_a_vote_for_outside_is_one_for_each_token() -> None:
    outside, inside = says((0, 4, "O")), says((1, 3, "X"))
    assert tags(outside, inside) == "O B-X I-X O"
    assert tags(outside, inside, says((2, 3, "O"))) == "O O O O"  # two votes on one token break the span
    assert tags(outside, inside, votes="token") == "O . . O"


def test_tokens_by_themselves_go_on_with_the_entity_before_them_unless_most_say_it_begins() -> None:
    whole, second = says((0, 3, "X")), says((1, 3, "X"))
    assert tags(whole, second, votes="token") == "B-X I-X I-X ."
    assert tags(whole, second, says((1, 2, "X")), votes="token") == "B-X B-X I-X ."
    assert tags(whole, says((0, 1, "Y")), votes="token") == ". B-X I-X ."  # the rest of an entity is one


SPANS = st.builds(
    lambda start, size, kind: Span(start, min(start + size, 6), kind),
    st.integers(0, 5),
    st.integers(1, 3),
    st.sampled_from(["X", "Y", "O"]),
).map(lambda span: span if span.type != "O" else Span(span.start, span.start + 1, "O"))


def overlap(one: Span, two: Span) -> bool:
    return one.start < two.end and two.start < one.end


def by_hand(found: list[list[Span]], ties: str) -> list[Span]:
    """Take the best that are left, and away with what they overlap."""
    left = list(dict.fromkeys(span for spans in found for span in spans))
    rank = {span: (sum(span in spans for spans in found), span.end - span.start) for span in left}
    chosen: list[Span] = []
    while left:
        best = [span for span in left if rank[span] == max(rank[each] for each in left)]
        decided = best if ties == "abstain" else best[:1]
        chosen += [span for span in decided if not any(overlap(span, other) for other in decided if other != span)]
        left = [span for span in left if not any(overlap(span, other) for other in decided)]
    return sorted(chosen)


@given(
    found=st.lists(st.lists(SPANS, max_size=3, unique=True), min_size=1, max_size=4),
    ties=st.sampled_from(["abstain", "order"]),
)
def test_spans_are_chosen_as_by_hand(found: Any, ties: Any) -> None:
    chosen = choose_spans(found, [1.0] * len(found), ties=ties, rng=np.random.default_rng(0))
    assert chosen == by_hand(found, ties)


@given(found=st.lists(st.lists(SPANS, max_size=3, unique=True), min_size=1, max_size=4), seed=st.integers(0, 99))
def test_spans_drawn_at_random_are_disjoint_and_leave_no_span_out_for_nothing(found: Any, seed: int) -> None:
    chosen = choose_spans(found, [1.0] * len(found), ties="random", rng=np.random.default_rng(seed))
    assert not any(overlap(one, two) for one, two in combinations(chosen, 2))
    assert all(any(overlap(span, other) for other in chosen) for spans in found for span in spans)


SENTENCES = [["a", "b", "c"], [], ["b"], ["c", "a", "b", "a"]]
MANY = [
    {"name": "a", "token": "a", "type": "X"},
    {"name": "ab", "phrases": ["a b", "c"], "type": "Y"},
    {"name": "b", "pattern": "b c|b", "type": "X"},
    {"name": "c", "token": "c", "type": "O"},
]


@BOTH
@pytest.mark.parametrize("ties", ["abstain", "order", "random"])
def test_tags_are_whole_iob2_and_pieces_equal_the_whole(votes: Any, ties: Any) -> None:
    rules = TokenRuleSet(MANY, votes=votes, ties=ties)
    gold = [["B-X", "I-X", "O"], [], None, ["O", "B-Y", "I-Y", None]]
    whole = label_tokens(SENTENCES, rules, gold=gold, seed=3)
    assert [len(tags) for tags in whole.tags] == [3, 0, 1, 4]
    assert not any(faults(tags, "IOB2") for tags in whole.tags)
    rng = np.random.default_rng(3)
    parts = [label_tokens(SENTENCES[cut], rules, gold=gold[cut], seed=rng) for cut in (slice(0, 1), slice(1, 4))]
    assert whole.summary == parts[0].summary + parts[1].summary
    assert whole.tags == parts[0].tags + parts[1].tags
    assert whole.tags == label_tokens(SENTENCES, rules, gold=gold, seed=3).tags


def test_ties_can_be_said_in_the_call_and_rules_by_path(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text("task: tokens\nrules:\n- {name: a, token: a, type: X}\n- {name: b, token: a, type: Y}\n")
    assert label_tokens([["a", "b"]], path).tags == [[None, None]]
    assert label_tokens([["a", "b"]], path, ties="order").tags == [["B-X", None]]


def test_texts_are_what_patterns_see() -> None:
    rules = TokenRuleSet([{"name": "dose", "pattern": r"\d+mg", "type": "X"}])
    assert label_tokens([["5", "mg"], ["5", "mg"]], rules, texts=["5mg", "5 mg"]).tags == [["B-X", "I-X"], [None, None]]


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        (dict(sentences=["a b"]), DataError, "sentence 11: 'a b' is no list; give one"),
        (dict(sentences=None), DataError, "sentences: None is no list; give one"),
        (dict(sentences={"tokens": [["a"]]}), DataError, "sentences: .* is no list; give one"),
        (dict(sentences=[["a"], 3]), DataError, "sentence 12: 3 is no list; give one"),
        (dict(texts="a"), DataError, "texts: 'a' is no list; give one"),
        (dict(texts=[3]), DataError, "sentence 11: the text is 3, a int; give texts as strings"),
        (dict(gold=3), DataError, "gold: 3 is no list; give one"),
        (dict(gold=["O"]), DataError, "sentence 11: gold tags: 'O' is no list; give one"),
        (dict(gold=[[3]]), LabelError, "sentence 11: gold tag 3 is no string; give tags by name, or None"),
        (dict(rules=3), ConfigError, "rules: 3 is no TokenRuleSet; give one, a list of rules, or the path of a file"),
        (dict(rules=[{"name": "r"}]), ConfigError, "rules: rule 'r': it has none of gazetteer"),
        (dict(seed="x"), ConfigError, "seed='x' is no seed; give an integer from 0 up"),
        (dict(ties=""), ConfigError, "ties='' is not one of abstain"),
        (dict(sentences=[["a"], ["b", 3]]), DataError, "sentence 12: the token 3 is no string"),
        (dict(texts=["a", "b"]), DataError, "2 texts for 1 sentences; give one each"),
        (dict(texts=["b"]), DataError, "sentence 11: the text does not have the token 'a' where it should"),
        (dict(ties="first"), ConfigError, "ties='first' is not one of abstain, random, order"),
        (dict(gold=[]), DataError, "gold tags for 0 sentences, here are 1"),
        (dict(gold=[["O", "O"]]), LabelError, "sentence 11: 2 gold tags for 1 tokens; give one a token"),
        (dict(gold=[["X"]]), LabelError, "sentence 11: gold tag 'X' is not a tag of IOB2"),
    ],
)
def test_what_does_not_fit_is_explained(arguments: dict[str, Any], kind: type[Exception], said: str) -> None:
    rules = TokenRuleSet([{"name": "r", "pattern": "a", "type": "X"}])
    with pytest.raises(kind, match=said):
        label_tokens(**{"sentences": [["a"]], "rules": rules, **arguments}, first_row=10)
