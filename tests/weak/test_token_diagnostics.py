"""Summaries of rules for tokens: shares with their denominators, and the same scores as seqeval."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drift.data.tables import read_chunks
from drift.weak import Share, rule
from drift.weak.token_diagnostics import SpanScore, token_table
from drift.weak.token_labeling import label_tokens
from drift.weak.token_rules import TokenRuleSet

BC5CDR = Path(os.environ.get("DRIFT_DATA") or "nowhere") / "bc5cdr"
SENTENCES = [["a", "b", ".", "c"], ["a", "b", "a"], ["a", "c"]]
GOLD: list[Any] = [["B-X", "I-X", "O", "B-Z"], None, ["B-Y", None]]
RULES = TokenRuleSet(
    [
        {"name": "ab", "phrases": ["a b"], "type": "X"},
        {"name": "letters", "token": "^[ac]$", "type": "Y"},
        {"name": "dots", "token": r"^\.$", "type": "O"},
    ]
)
SUMMARY = label_tokens(SENTENCES, RULES, gold=GOLD).summary


def test_tokens() -> None:
    tokens = SUMMARY.tokens
    assert [each.coverage for each in tokens.rules] == [Share(4, 9), Share(6, 9), Share(1, 9)]
    assert [each.conflict for each in tokens.rules] == [Share(2, 9), Share(2, 9), Share(0, 9)]
    assert (tokens.coverage, tokens.overlap, tokens.labeled) == (Share(9, 9), Share(2, 9), Share(9, 9))
    assert tokens.labels == {"X": 4, "Y": 4, "O": 1}


def test_spans_are_judged_only_where_gold_is_known() -> None:
    assert SUMMARY.types == {"X": SpanScore(2, 1, 1, 1), "Y": SpanScore(4, 2, 1, 1), "Z": SpanScore(0, 0, 1, 0)}
    score = SUMMARY.together
    assert (score.precision, score.recall, score.f1) == (Share(2, 3), Share(2, 3), Share(4, 6))


def test_a_rule_is_not_blamed_for_types_it_never_finds() -> None:
    assert SUMMARY.of_rule("ab") == SpanScore(found=2, judged=1, gold=1, right=1)
    assert SUMMARY.of_rule("letters") == SpanScore(found=6, judged=3, gold=1, right=1)
    assert SUMMARY.of_rule("dots") == SpanScore()


def test_the_table() -> None:
    headings, rows = token_table(SUMMARY)
    assert headings == ["rule", "votes for", "coverage", "overlap", "conflict", "spans", "precision", "recall", "F1"]
    assert rows == [
        ["ab", "X", "44.4%", "22.2%", "22.2%", "2", "100.0% of 1", "100.0% of 1", "100.0% of 2"],
        ["letters", "Y", "66.7%", "22.2%", "22.2%", "6", "33.3% of 3", "100.0% of 1", "50.0% of 4"],
        ["dots", "O", "11.1%", "0.0%", "0.0%", "0", "-", "-", "-"],
        ["together", "X, Y, O", "100.0%", "22.2%", "22.2%", "6", "66.7% of 3", "66.7% of 3", "66.7% of 6"],
        ["", "X", "44.4%", "", "", "2", "100.0% of 1", "100.0% of 1", "100.0% of 2"],
        ["", "Y", "44.4%", "", "", "4", "50.0% of 2", "100.0% of 1", "66.7% of 3"],
        ["", "Z", "0.0%", "", "", "0", "-", "0.0% of 1", "0.0% of 1"],
    ]
    headings, rows = token_table(label_tokens(SENTENCES, RULES).summary)
    assert headings[-1] == "spans"
    assert {len(row) for row in rows} == {len(headings)}


def test_json_round_trip() -> None:
    known = SUMMARY.as_dict()
    assert json.loads(json.dumps(known, allow_nan=False)) == known
    assert known["together"]["precision"] == {"count": 2, "of": 3}
    assert known["tokens"]["coverage"] == {"count": 9, "of": 9}
    assert known["rules"]["letters"]["types"]["Y"]["recall"] == {"count": 1, "of": 1}


def test_no_sentences() -> None:
    summary = label_tokens([], RULES, gold=[]).summary
    assert (summary.together, summary.tokens.coverage) == (SpanScore(), Share(0, 0))
    assert len(token_table(summary)[1]) == len(RULES.rules) + 1


TAGS = st.lists(st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"]), min_size=1, max_size=6), min_size=1)


@settings(max_examples=30)  # seqeval is slow
@given(right=TAGS, data=st.data())
def test_scores_are_those_of_seqeval(right: list[list[str]], data: st.DataObject) -> None:
    metrics = pytest.importorskip("seqeval.metrics.v1")
    from seqeval.scheme import IOB2

    cuts = st.integers(0, 6).flatmap(lambda start: st.tuples(st.just(start), st.integers(start, 6)))
    answers = iter([data.draw(cuts) for _ in right])

    @rule
    def guess(tokens: list[str]) -> list[tuple[int, int, str]]:
        start, end = next(answers)
        return [(start, min(end, len(tokens)), "X")] if start < min(end, len(tokens)) else []

    labelled = label_tokens([["t"] * len(tags) for tags in right], TokenRuleSet([guess], ["X"]), gold=right)
    weak_tags = [[tag or "O" for tag in tags] for tags in labelled.tags]
    theirs = metrics.precision_recall_fscore_support(right, weak_tags, average="micro", scheme=IOB2, zero_division=0)
    ours = labelled.summary.together
    shares = (ours.precision, ours.recall, ours.f1)
    assert [share.rate if share.of else 0 for share in shares] == pytest.approx(theirs[:3])


@pytest.mark.skipif(not BC5CDR.is_dir(), reason="set DRIFT_DATA to a folder with bc5cdr")
def test_a_real_dictionary_on_real_sentences() -> None:
    rows = [chunk.columns for chunk in read_chunks(BC5CDR / "train.jsonl.gz")]
    sentences, gold = ([each for columns in rows for each in columns[name]] for name in ("tokens", "labels"))
    for case, expected in {"exact": (0.898, 0.692), "lower": (0.892, 0.775), "smart": (0.906, 0.775)}.items():
        rules = TokenRuleSet([{"name": "core", "gazetteer": "dict_core.txt", "case": case}], folder=BC5CDR)
        score = label_tokens(sentences, rules, gold=gold).summary.together
        assert (score.precision.rate, score.recall.rate) == pytest.approx(expected, abs=6e-4)
        assert score.gold == 9385
