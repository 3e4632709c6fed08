"""From spans to tags: votes per span and per token, ties, and tokens without votes."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.data.table_writer import TableWriter
from drift.data.tags import Span, faults
from drift.errors import ConfigError, DataError, FileError, LabelError
from drift.weak import rule
from drift.weak.token_labeling import label_tokens
from drift.weak.token_rules import TokenRuleSet
from drift.weak.token_votes import choose_spans


def finds(*spans: tuple[int, int, str], weight: float = 1.0) -> tuple[Any, float]:
    """A rule that always finds these spans, and its weight."""
    return (lambda tokens: spans), weight


def tags(*answers: tuple[Any, float], votes: Any = "span", ties: Any = "abstain", seed: int = 0) -> str:
    """The tags of four tokens; `.` for None."""
    rules = [rule(find, name=str(number), weight=weight) for number, (find, weight) in enumerate(answers)]
    weak = label_tokens([["t"] * 4], TokenRuleSet(rules, ["X", "Y"], votes=votes, ties=ties), seed=seed)
    return " ".join(tag or "." for tag in weak.tags[0])


BOTH = pytest.mark.parametrize("votes", ["span", "token"])


@BOTH
def test_one_rule_is_tagged_as_it_finds(votes: str) -> None:
    assert tags(finds((0, 2, "X"), (2, 3, "X")), votes=votes) == "B-X I-X B-X ."
    assert tags(finds((1, 3, "O"), (3, 4, "Y")), votes=votes) == ". O O B-Y"
    assert tags(finds(), votes=votes) == ". . . ."


@BOTH
def test_most_votes_win_and_weights_count(votes: str) -> None:
    x, y = (0, 2, "X"), (0, 2, "Y")
    assert tags(finds(x), finds(y), finds(y), votes=votes) == "B-Y I-Y . ."
    assert tags(finds(x, weight=3), finds(y), finds(y), votes=votes) == "B-X I-X . ."
    assert tags(finds(x, weight=0.3), finds(y, weight=0.1), finds(y, weight=0.2), votes=votes) == ". . . ."
    assert tags(finds(x, weight=0), votes=votes) == ". . . ."


@BOTH
def test_weights_that_differ_by_rounding_alone_are_the_same(votes: str) -> None:
    for size in (1e-12, 1.0, 1e9):
        both = finds((0, 1, "Y"), weight=0.1 * size), finds((0, 1, "Y"), weight=0.2 * size)
        assert tags(finds((0, 1, "X"), weight=0.3 * size), *both, votes=votes) == ". . . ."
        assert tags(finds((0, 1, "X"), weight=0.4 * size), *both, votes=votes) == "B-X . . ."


def test_equal_votes_to_begin_and_to_continue_continue() -> None:
    begin = finds((0, 1, "X"), (1, 2, "X"), weight=0.1), finds((0, 1, "X"), (1, 2, "X"), weight=0.2)
    assert tags(finds((0, 2, "X"), weight=0.3), *begin, votes="token") == "B-X I-X . ."  # 0.1 + 0.2 > 0.3 in floats


def test_rules_in_a_list() -> None:
    assert label_tokens([["a", "b"]], [{"name": "r", "token": "a", "type": "X"}]).tags == [["B-X", None]]


@BOTH
def test_ties(votes: str) -> None:
    pair = finds((0, 2, "Y")), finds((0, 2, "X"))
    assert tags(*pair, votes=votes) == ". . . ."
    assert tags(*pair, votes=votes, ties="order") == "B-Y I-Y . ."
    assert tags(finds((0, 1, "O")), finds((0, 1, "X")), votes=votes) == ". . . ."
    drawn = {tags(finds((0, 1, "Y")), finds((0, 1, "X")), votes=votes, ties="random", seed=seed) for seed in range(20)}
    assert drawn == {"B-X . . .", "B-Y . . ."}


def test_of_overlapping_spans_the_most_voted_wins_then_the_longest() -> None:
    long, short = (0, 3, "X"), (1, 2, "Y")
    assert tags(finds(short), finds(long)) == "B-X I-X I-X ."
    assert tags(finds(short), finds(long), finds(short)) == ". B-Y . ."
    assert tags(finds((0, 2, "X")), finds((1, 4, "Y"))) == ". B-Y I-Y I-Y"


def test_tied_tokens_do_not_go_to_a_span_with_fewer_votes() -> None:
    tied = finds((0, 2, "X")), finds((1, 3, "X"))
    assert tags(*tied, finds((0, 1, "Y")), finds((3, 4, "Y"))) == ". . . B-Y"
    assert tags(*tied, finds((2, 3, "Y")), ties="order") == "B-X I-X B-Y ."


def test_a_vote_for_outside_is_one_for_each_token() -> None:
    outside, inside = finds((0, 4, "O")), finds((1, 3, "X"))
    assert tags(outside, inside) == "O B-X I-X O"
    assert tags(outside, inside, finds((2, 3, "O"))) == "O O O O"  # two votes on one token break the span
    assert tags(outside, inside, votes="token") == "O . . O"


def test_tokens_continue_the_entity_before_them_unless_most_votes_begin_one() -> None:
    whole, second = finds((0, 3, "X")), finds((1, 3, "X"))
    assert tags(whole, second, votes="token") == "B-X I-X I-X ."
    assert tags(whole, second, finds((1, 2, "X")), votes="token") == "B-X B-X I-X ."
    assert tags(whole, finds((0, 1, "Y")), votes="token") == ". B-X I-X ."  # the rest of an entity is one


SPANS = st.builds(
    lambda start, size, name: Span(start, min(start + size, 6), name),
    st.integers(0, 5),
    st.integers(1, 3),
    st.sampled_from(["X", "Y", "O"]),
).map(lambda span: span if span.type != "O" else Span(span.start, span.start + 1, "O"))


def overlap(one: Span, two: Span) -> bool:
    return one.start < two.end and two.start < one.end


def by_hand(rule_spans: list[list[Span]], ties: str) -> list[Span]:
    """Repeatedly take the best spans, and remove those that overlap them."""
    left = list(dict.fromkeys(span for spans in rule_spans for span in spans))
    rank = {span: (sum(span in spans for spans in rule_spans), span.end - span.start) for span in left}
    chosen: list[Span] = []
    while left:
        best = [span for span in left if rank[span] == max(rank[each] for each in left)]
        decided = best if ties == "abstain" else best[:1]
        chosen += [span for span in decided if not any(overlap(span, other) for other in decided if other != span)]
        left = [span for span in left if not any(overlap(span, other) for other in decided)]
    return sorted(chosen)


@given(
    rule_spans=st.lists(st.lists(SPANS, max_size=3, unique=True), min_size=1, max_size=4),
    ties=st.sampled_from(["abstain", "order"]),
)
def test_spans_are_chosen_as_in_a_simple_search(rule_spans: Any, ties: Any) -> None:
    chosen = choose_spans(rule_spans, [1.0] * len(rule_spans), ties=ties, rng=np.random.default_rng(0))
    assert chosen == by_hand(rule_spans, ties)


@given(rule_spans=st.lists(st.lists(SPANS, max_size=3, unique=True), min_size=1, max_size=4), seed=st.integers(0, 99))
def test_spans_drawn_at_random_are_disjoint_and_maximal(rule_spans: Any, seed: int) -> None:
    chosen = choose_spans(rule_spans, [1.0] * len(rule_spans), ties="random", rng=np.random.default_rng(seed))
    assert not any(overlap(one, two) for one, two in combinations(chosen, 2))
    assert all(any(overlap(span, other) for other in chosen) for spans in rule_spans for span in spans)


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


def test_ties_as_an_argument_and_rules_by_path(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text("task: tokens\nrules:\n- {name: a, token: a, type: X}\n- {name: b, token: a, type: Y}\n")
    assert label_tokens([["a", "b"]], path).tags == [[None, None]]
    assert label_tokens([["a", "b"]], path, ties="order").tags == [["B-X", None]]


ROWS = {"tokens": [["a", "b"], ["c"], ["a"]], "tags": [["B-X", "O"], ["O"], ["B-Y"]], "odd": [["O", "O"], ["O"], ["O"]]}
FILE_RULES = TokenRuleSet([{"name": "a", "token": "a", "type": "X"}, {"name": "b", "token": "b", "type": "O"}])


@pytest.mark.parametrize("name", ["s.jsonl", "s.jsonl.gz", "s.parquet", "s.conll"])
@pytest.mark.parametrize("as_path", [str, Path])
def test_files(tmp_path: Path, name: str, as_path: Any) -> None:
    if name.endswith("conll"):
        (tmp_path / name).write_text("a O B-X\nb O O\n\nc O O\n\na O B-Y\n")
    else:
        with TableWriter(tmp_path / name) as table:
            table.write(ROWS)
    path = as_path(tmp_path / name)
    expected = label_tokens(ROWS["tokens"], FILE_RULES, gold=ROWS["tags"])
    column = "3" if name.endswith("conll") else "tags"
    for gold in (None, column, ROWS["tags"]):  # by default the obvious column
        weak = label_tokens(path, FILE_RULES, gold=gold)
        assert (weak.tags, weak.summary) == (expected.tags, expected.summary)
    other = label_tokens(path, FILE_RULES, gold="2" if name.endswith("conll") else "odd").summary.together
    assert (other.gold, other.judged, other.right) == (0, 2, 0)
    assert label_tokens(path, FILE_RULES, gold="").summary.together.judged == 0
    assert label_tokens(path, FILE_RULES, gold="", tokens=column).tags[0] == [None, None]


def test_texts_of_a_file_are_what_patterns_see(tmp_path: Path) -> None:
    rules = TokenRuleSet([{"name": "dose", "pattern": r"\d+-mg", "type": "X"}])
    (tmp_path / "t.jsonl").write_text('{"text": "take 5-mg"}\n')
    assert label_tokens(tmp_path / "t.jsonl", rules).tags == [[None, "B-X", "I-X", "I-X"]]
    with pytest.raises(ConfigError, match=r"^texts goes with a list of sentences; a file or table has its own texts$"):
        label_tokens(tmp_path / "t.jsonl", rules, texts=["take 5 mg"])


def test_a_frame_and_a_dataset() -> None:
    pandas, datasets = pytest.importorskip("pandas"), pytest.importorskip("datasets")
    expected = label_tokens(ROWS["tokens"], FILE_RULES, gold=ROWS["tags"])
    for table in (pandas.DataFrame(ROWS), datasets.Dataset.from_dict(ROWS)):
        weak = label_tokens(table, FILE_RULES, gold="tags")
        assert (weak.tags, weak.summary) == (expected.tags, expected.summary)


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        ("none.conll", {}, FileError, "none.conll is not there"),
        ("s.jsonl", {"gold": "tag"}, ConfigError, "s.jsonl has no column 'tag'; did you mean 'tags'?"),
        ("s.jsonl", {"tokens": "words"}, ConfigError, "s.jsonl has no column 'words'"),
        ("a sentence", {}, DataError, "sentences: 'a sentence' is not the path of a table"),
    ],
)
def test_errors_about_files_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, options: Any, error: type[Exception], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.jsonl").write_text('{"tokens": ["a"], "tags": ["B-X"]}\n')
    with pytest.raises(error) as caught:
        label_tokens(source, FILE_RULES, **options)
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_texts_are_what_patterns_see() -> None:
    rules = TokenRuleSet([{"name": "dose", "pattern": r"\d+mg", "type": "X"}])
    assert label_tokens([["5", "mg"], ["5", "mg"]], rules, texts=["5mg", "5 mg"]).tags == [["B-X", "I-X"], [None, None]]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(sentences=["a b"]), DataError, "sentence 11: 'a b' is not a list; give a list"),
        (dict(sentences=None), DataError, "sentences: None is not a list; give a list"),
        (dict(sentences={"tokens": [["a"]]}), DataError, "sentences: .* is not a list; give a list"),
        (dict(sentences=[["a"], 3]), DataError, "sentence 12: 3 is not a list; give a list"),
        (dict(texts="a"), DataError, "texts: 'a' is not a list; give a list"),
        (dict(texts=[3]), DataError, "sentence 11: the text is 3, a int; give texts as strings"),
        (dict(gold=3), DataError, "gold: 3 is not a list; give a list"),
        (dict(gold=["O"]), DataError, "sentence 11: gold tags: 'O' is not a list; give a list"),
        (dict(gold=[[3]]), LabelError, "sentence 11: gold tag 3 is not a string; give tags by name, or None"),
        (
            dict(rules=3),
            ConfigError,
            "rules: 3 is not a TokenRuleSet; give one, a list of rules, or the path of a file",
        ),
        (dict(rules=[{"name": "r"}]), ConfigError, "rules: rule 'r': it has none of gazetteer"),
        (dict(seed="x"), ConfigError, "seed='x' is not a seed; give an integer >= 0"),
        (dict(ties=""), ConfigError, "ties='' is not one of abstain"),
        (dict(sentences=[["a"], ["b", 3]]), DataError, "sentence 12: the token 3 is not a string"),
        (dict(texts=["a", "b"]), DataError, "2 texts for 1 sentences; give one per sentence"),
        (dict(texts=["b"]), DataError, "sentence 11: the text does not have the token 'a' where it should"),
        (dict(ties="first"), ConfigError, "ties='first' is not one of abstain, random, order"),
        (dict(gold=[]), DataError, "gold tags for 0 sentences, not for 1"),
        (dict(gold=[["O", "O"]]), LabelError, "sentence 11: 2 gold tags for 1 tokens; give one per token"),
        (dict(gold=[["X"]]), LabelError, "sentence 11: gold tag 'X' is not a tag of IOB2"),
    ],
)
def test_invalid_arguments_are_explained(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    rules = TokenRuleSet([{"name": "r", "pattern": "a", "type": "X"}])
    with pytest.raises(error, match=message):
        label_tokens(**{"sentences": [["a"]], "rules": rules, **arguments}, first_row=10)
