"""Votes of several sources: how cells are read, and how votes are combined."""

from typing import Any

import numpy as np
import pytest

from drift.errors import ConfigError, LabelError
from drift.weak.ballots import exclusions, hard, leaders, right_share, split, spoken
from drift.weak.combining import COMBINERS, combine
from drift.weak.sources import Cells, ColumnSource, classes_in, faults, from_codes, votes_of


def cells(values: list[Any], confidences: list[Any] | None = None) -> Cells:
    columns = {"votes": values} | ({} if confidences is None else {"sure": confidences})
    source = ColumnSource.parse("votes" if confidences is None else "votes=sure", list(columns), "t.csv")
    read = Cells(source)
    read.read(columns, 0, "t.csv")
    return read


def annotators(
    truth: np.ndarray, accuracies: list[float], C: int, *, seed: int, covers: float = 1.0
) -> list[np.ndarray]:
    """Independent annotators whose errors are spread evenly."""
    rng = np.random.default_rng(seed)
    found = []
    for accuracy in accuracies:
        wrong = rng.random(len(truth)) > accuracy
        codes = np.where(wrong, (truth + rng.integers(1, C, len(truth))) % C, truth)
        found.append(from_codes("a", "column", np.where(rng.random(len(truth)) < covers, codes, -1), C).votes)
    return found


def test_cells_hold_classes_exclusions_probabilities_or_nothing() -> None:
    read = cells(["a", "not a", "!b", '{"a": 0.25, "c": 0.75}', {"b": 1.0}, "", None])
    classes = classes_in([read])
    assert classes == ["a", "b", "c"]
    expected = [[1, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.25, 0, 0.75], [0, 1, 0], [0, 0, 0], [0, 0, 0]]
    np.testing.assert_allclose(votes_of(read, classes, "t.csv").votes, expected)


def test_a_class_may_begin_like_an_exclusion() -> None:
    read = cells(["not spam", "spam"])
    assert classes_in([read], ["not spam", "spam"]) == ["not spam", "spam"]
    np.testing.assert_allclose(votes_of(read, ["not spam", "spam"], "t.csv").votes, np.eye(2))


def test_confidence_is_shared_with_the_other_classes() -> None:
    read = cells(["a", "b", "not c", "a"], [0.8, None, "0.9", 0])
    votes = votes_of(read, ["a", "b", "c"], "t.csv").votes
    np.testing.assert_allclose(votes, [[0.8, 0.1, 0.1], [0, 1, 0], [0.45, 0.45, 0.1], [0, 0.5, 0.5]], atol=1e-6)


def test_one_column_per_class() -> None:
    columns = {"text": ["x", "y"], "p_a": [0.25, None], "p_b": [0.75, None]}
    read = Cells(ColumnSource.parse("p_*", list(columns), "t.csv"))
    read.read(columns, 0, "t.csv")
    np.testing.assert_allclose(votes_of(read, classes_in([read]), "t.csv").votes, [[0.25, 0.75], [0, 0]])


@pytest.mark.parametrize(
    ("values", "confidences", "message"),
    [
        (["a", "b"], [0.5, 1.5], r"row 2: column 'sure': the confidence is 1.5, which is not between 0 and 1"),
        (["a", "b"], [0.5, 80], "divide percentages by 100"),
        (["a", "b"], [0.5, "high"], "the confidence is 'high'; give a number from 0 to 1"),
        (['{"a": 0.5, "b": 0.2}'], None, "row 1: column 'votes': the probabilities sum to 0.7, not 1"),
        (['{"a": 0.5,'], None, "is not JSON"),
        ([{"a": -1, "b": 2}], None, "the probability of 'a' is -1, which is not between 0 and 1; give a number from 0"),
        ([["a", "b"]], None, "give one class, or an object"),
    ],
)
def test_bad_cells_are_one_line(values: list[Any], confidences: list[Any] | None, message: str) -> None:
    with pytest.raises(LabelError, match=message) as caught:
        cells(values, confidences)
    assert "\n" not in str(caught.value)


def test_an_unknown_class_is_named_with_its_row() -> None:
    with pytest.raises(LabelError, match=r"t.csv, row 2: 'Sport' in column 'votes' .* did you mean 'sports'"):
        votes_of(cells(["sports", "Sport"]), ["politics", "sports"], "t.csv")
    with pytest.raises(LabelError, match=r"'weather' .* \(politics, sports\); add it to --classes, or empty the cell$"):
        votes_of(cells(["weather"]), ["politics", "sports"], "t.csv")
    with pytest.raises(ConfigError, match="no column whose name begins with 'q_'"):
        ColumnSource.parse("q_*", ["text", "p_a"], "t.csv")


def test_sources_that_say_nothing_are_reported() -> None:
    assert "says 'a' on each of its 3 rows" in faults(from_codes("anna", "column", np.zeros(3, int), 2), ["a", "b"])[0]
    assert "abstains on every row" in faults(from_codes("ben", "column", np.full(3, -1), 2), ["a", "b"])[0]
    assert faults(from_codes("carl", "column", np.array([0, 1, -1]), 2), ["a", "b"]) == []
    names = ["a", "b", "c"]
    against, same = (votes_of(cells(each), names, "t.csv") for each in (["not b", "not c"], ["not b", "not b"]))
    assert faults(against, names) == []
    assert "says 'not b' on each of its 2 rows; it is not used" in faults(same, names)[0]
    with pytest.raises(LabelError, match="no source has a vote"):
        combine([np.zeros((4, 2)), np.zeros((4, 2))])


def test_one_source_is_taken_as_it_is() -> None:
    votes = np.array([[0.7, 0.3], [0.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(combine([votes]).probabilities, votes)
    assert combine([votes]).codes.tolist() == [0, -1, 1]


def test_hard_abstains_on_ties() -> None:
    assert hard(np.array([[0.5, 0.5], [0.0, 0.0], [0.4, 0.6]])).tolist() == [-1, -1, 1]


@pytest.mark.parametrize("method", ["majority", "weighted", "dawid-skene"])
def test_combined_labels_are_distributions_and_equivariant(method: Any) -> None:
    truth = np.random.default_rng(0).integers(0, 3, 300)
    votes = annotators(truth, [0.9, 0.7, 0.6], 3, seed=1, covers=0.6)
    found = combine(votes, method=method)
    covered = np.stack(votes).any((0, 2))
    np.testing.assert_allclose(found.probabilities.sum(-1), covered, atol=1e-6)
    order = [2, 0, 1]
    permuted = combine([each[:, order] for each in votes], method=method)
    np.testing.assert_allclose(found.probabilities[:, order], permuted.probabilities, atol=1e-6)
    np.testing.assert_allclose(found.accuracies, permuted.accuracies, atol=1e-6)


def test_dawid_skene_finds_accuracies_and_beats_the_majority() -> None:
    truth = np.random.default_rng(0).choice(3, 3000, p=[0.6, 0.3, 0.1])
    votes = annotators(truth, [0.95, 0.75, 0.6, 0.5], 3, seed=1)
    found, majority = combine(votes), combine(votes, method="majority")
    assert found.method == "Dawid-Skene"
    np.testing.assert_allclose(found.accuracies, [0.95, 0.75, 0.6, 0.5], atol=0.04)
    assert (found.codes == truth).mean() > (majority.codes == truth).mean() + 0.05


def test_dawid_skene_is_a_fixed_point_of_its_equations() -> None:
    """An independent, slow reference of one round leaves the result where it is."""
    from drift.weak import combining

    truth = np.random.default_rng(0).integers(0, 2, 400)
    votes = np.stack(annotators(truth, [0.9, 0.8, 0.7], 2, seed=3))
    p = combine(list(votes), method="dawid-skene").probabilities
    prior = (p.sum(0) + 1) / (len(p) + 2)
    expected = np.log(prior) * np.ones_like(p)
    for own in votes:
        counts = np.array([[sum(p[n, k] * own[n, j] for n in range(len(p))) for j in range(2)] for k in range(2)])
        right = counts.trace() + combining.PRIOR_VOTES * combining.ASSUMED_ACCURACY
        accuracy = right / (counts.sum() + combining.PRIOR_VOTES)
        theta = counts + combining.SHARED_ERRORS * np.array([[accuracy, 1 - accuracy], [1 - accuracy, accuracy]])
        expected += own @ np.log(theta / theta.sum(1, keepdims=True)).T
    expected = np.exp(expected) / np.exp(expected).sum(1, keepdims=True)
    np.testing.assert_allclose(p, expected, atol=2e-3)


def test_gold_labels_find_the_right_source_among_copies() -> None:
    """Two copies of a bad source outvote a good one; a few gold labels tell which is good."""
    truth = np.random.default_rng(0).integers(0, 2, 1000)
    good, bad = annotators(truth, [0.95, 0.6], 2, seed=1)
    gold = np.where(np.arange(1000) < 60, truth, -1)
    without, found = combine([good, bad, bad]), combine([good, bad, bad], gold=gold)
    assert (without.method, found.method) == ("Dawid-Skene", "weighted vote")
    assert (found.codes == truth)[60:].mean() > 0.9 > 0.7 > (without.codes == truth)[60:].mean()
    assert found.accuracies[0] > 0.85 > found.accuracies[1]


def test_every_way_to_combine_runs_on_soft_votes_with_abstentions() -> None:
    rng = np.random.default_rng(0)
    votes = [rng.dirichlet(np.ones(3), 50) * (rng.random(50) < 0.7)[:, None] for _ in range(3)]
    for method in COMBINERS:
        if method == "label-model":
            pytest.importorskip("snorkel")
        found = combine(votes, method=method)
        assert found.probabilities.shape == (50, 3)
        assert not found.probabilities[~np.stack(votes).any((0, 2))].any()
    with pytest.raises(ConfigError, match="no way to combine"):
        combine(votes, method="magic")  # type: ignore[arg-type]


def test_votes_against_a_class_are_told_from_votes_for_several() -> None:
    votes = np.array([[0, 0.5, 0.5], [0.1, 0.45, 0.45], [0.2, 0.7, 0.1], [1 / 3, 1 / 3, 1 / 3], [0, 0, 0]])
    assert exclusions(votes).tolist() == [0, 0, -1, -1, -1]
    assert leaders(votes).sum(-1).tolist() == [2, 2, 1, 0, 0]
    named, against = split(votes)
    np.testing.assert_allclose(named[:3], [[0, 0, 0], [0.1, 0, 0], [0.2, 0.7, 0.1]])
    np.testing.assert_allclose(against[:3], [[1, 0, 0], [0.9, 0, 0], [0, 0, 0]])
    assert [spoken(vote, ["a", "b", "c"]) for vote in votes] == ["not a", "not a", "b", "", ""]
    assert exclusions(np.array([[0.0, 1.0]])).tolist() == [-1]  # with two classes, it is a vote for the other one
    assert right_share(votes, np.eye(3)[[0, 1, 1, 1, 1]]) == pytest.approx(2 / 3)


@pytest.mark.parametrize("method", ["weighted", "dawid-skene"])
def test_votes_against_a_class_decide_between_the_others(method: Any) -> None:
    """A source that only excludes classes, and is always right, corrects two poor annotators."""
    C, truth = 4, np.random.default_rng(0).integers(0, 4, 3000)
    poor = annotators(truth, [0.6, 0.6], C, seed=1)
    excluded = (truth + np.random.default_rng(2).integers(1, C, 3000)) % C
    excluding = (1 - np.eye(C))[excluded] / (C - 1)
    without, found = combine(poor, method=method), combine([*poor, excluding], method=method)
    assert found.accuracies[2] > 0.97
    np.testing.assert_allclose(found.accuracies[:2], 0.6, atol=0.04)
    assert (found.codes == excluded).mean() < 0.03
    right = [(each.probabilities.argmax(-1) == truth).mean() for each in (without, found)]
    assert right[1] > right[0] + 0.05


def test_two_sources_are_not_taken_for_one_perfect_and_one_poor() -> None:
    """Their agreement is one number: it says how good both are on average, and not which one is better."""
    truth = np.random.default_rng(0).integers(0, 4, 3000)
    found = combine(annotators(truth, [0.8, 0.8], 4, seed=1))
    np.testing.assert_allclose(found.accuracies, 0.8, atol=0.03)
    labeled = found.codes != -1
    assert 0.5 < labeled.mean() < 0.8  # where they agree
    assert (found.codes == truth)[labeled].mean() > 0.95


def test_three_sources_must_overlap_in_pairs_to_be_compared() -> None:
    truth = np.random.default_rng(0).integers(0, 3, 900)
    rows = np.arange(900)[:, None]
    first, second, third = annotators(truth, [0.9, 0.8, 0.7], 3, seed=1)
    assert combine([first, second, third]).method == "Dawid-Skene"
    assert combine([first, second * (rows < 450), third * (rows >= 450)]).method == "weighted vote"
    apart = [first * (rows < 450), third * (rows >= 450)]
    assert combine(apart).method == "majority"
    gold = np.where(np.arange(900) % 20 == 0, truth, -1)
    np.testing.assert_allclose(combine(apart, gold=gold).accuracies, [0.9, 0.7], atol=0.2)  # on 22 and 23 gold labels
