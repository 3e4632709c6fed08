"""Words that no rule covers: which are common, and how a way to treat them is scored without gold tags."""

import numpy as np
import pytest

from drift.tasks.tokens.uncovered import LEAST_COMMON, common_words, fillings, held_out_words, positive_score


def test_common_words_are_frequent_and_almost_never_tagged() -> None:
    sentences = [["The", "berlin", "wall"]] * LEAST_COMMON + [["the", "rare"]]
    tagged = np.array([False, True, False] * LEAST_COMMON + [False, False])
    common = common_words(sentences, tagged=tagged)
    assert common.tolist() == [True, False, True] * LEAST_COMMON + [True, False]
    assert not common_words(sentences[1:], tagged=tagged[3:])[2]  # one mention too few


def test_each_way_fills_only_blank_words_that_the_rules_saw() -> None:
    sentences = [["the", "berlin", "x"]] * LEAST_COMMON + [["the"]]
    weak = np.array([-1, 1, -1] * (LEAST_COMMON - 1) + [-1, -1, -1] + [-1])
    weak[-3] = 1
    filled = fillings(sentences, weak, outside=0, covered=len(weak) - 1)
    assert (filled["ignore"] == weak).all()
    assert filled["O"].tolist() == [0 if code == -1 else code for code in weak[:-1]] + [-1]
    assert ((filled["common"] == 0) == (filled["O"] == 0) & (np.arange(len(weak)) % 3 != 1)).all()


def test_held_out_words_are_all_tagged_mentions_of_a_fifth_of_the_words() -> None:
    sentences = [[f"Name{number % 10}", "and", f"name{number % 10}"] for number in range(40)]
    tagged = np.array([True, False, True] * 40)
    held_out = held_out_words(sentences, tagged=tagged, seed=0)
    flat = [word.lower() for words in sentences for word in words]
    names = {word for word, held in zip(flat, held_out, strict=True) if held}
    assert len(names) == 2
    assert held_out.tolist() == [word in names for word in flat]


@pytest.mark.parametrize(("recall", "precision"), [(0.5, 1.0), (1.0, 0.5), (0.3, 0.3)])
def test_the_score_is_recall_times_precision_up_to_the_share_of_entities(recall: float, precision: float) -> None:
    entities = np.arange(10_000) < 1000
    found = np.zeros(10_000, dtype=bool)
    found[: int(1000 * recall)] = True
    found[1000 : 1000 + int(1000 * recall / precision - 1000 * recall)] = True
    assert positive_score(found, entities) == pytest.approx(recall * precision / 0.1, rel=0.01)
    assert positive_score(np.zeros(3, dtype=bool), np.ones(3, dtype=bool)) == 0
