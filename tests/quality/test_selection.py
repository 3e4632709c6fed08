"""Rows to label: doubtful, different, and drawn fairly from long tables."""

import numpy as np
import pytest

from drift.quality.selection import Pool, disagreement, doubt, spread_rows


def test_doubt_is_largest_where_two_classes_tie_or_heads_contradict_each_other() -> None:
    p = np.array([[0.5, 0.5, 0], [1, 0, 0], [0.6, 0.3, 0.1]])
    assert doubt(p) == pytest.approx([1, 0, 0.7])
    heads = np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
    assert doubt(heads) == pytest.approx([1, 0])
    assert disagreement(heads) == pytest.approx([0.5, 0])


def test_every_cluster_gives_a_row() -> None:
    rng = np.random.default_rng(0)
    centres = 20 * np.eye(5)
    vectors = np.concatenate([centre + rng.normal(size=(30, 5)) for centre in centres])
    doubts = rng.uniform(0.5, 1, 150)
    doubts[:30] = 1.0  # the most doubtful of all: without clusters, all rows would be of them
    chosen = spread_rows(vectors, doubts, 5)
    assert {row // 30 for row in chosen} == set(range(5))
    assert [doubts[row] for row in chosen] == sorted((doubts[row] for row in chosen), reverse=True)


def test_regions_without_doubt_are_left_alone() -> None:
    rng = np.random.default_rng(0)
    vectors = np.concatenate([rng.normal(size=(100, 2)), rng.normal(size=(100, 2)) + 50])
    doubts = np.concatenate([np.full(100, 0.9), np.zeros(100)])
    assert sum(row < 100 for row in spread_rows(vectors, doubts, 10)) >= 9


def test_all_rows_are_given_if_there_are_no_more_and_near_copies_are_left_out() -> None:
    assert spread_rows(np.eye(3), np.array([0.1, 0.9, 0.5]), 5) == [1, 2, 0]
    assert spread_rows(np.eye(3), np.ones(3), 3, alike=lambda row, chosen: row == 2 and bool(chosen)) == [0, 1]


def test_the_pool_keeps_all_of_few_and_copies_once() -> None:
    pool = Pool(5)
    for number in (1, 2, 2, 3):
        pool.add(number, 0.5, number)
    assert pool.candidates() == [1, 2, 3]


def test_the_pool_prefers_weights_and_is_of_constant_size() -> None:
    kept = np.zeros(40)
    for seed in range(200):
        pool = Pool(10, seed)
        for number in range(40):
            pool.add(number, 0.9 if number < 20 else 0.1, number)
        kept[pool.candidates()] += 1
        assert len(pool.candidates()) == 10
    assert kept[:20].sum() > 6 * kept[20:].sum()
    assert kept[:10].sum() == pytest.approx(kept[10:20].sum(), rel=0.1)  # wherever they are in the table
