"""Exact neighbours, copies among them, and outliers."""

import numpy as np
import pytest

from drift.quality import neighbours
from drift.quality.duplicates import find_duplicates, plain, similarity
from drift.quality.neighbours import nearest, outliers

TEXT = "the committee of the city met on monday to discuss the new bridge over the river"


@pytest.mark.parametrize(("rows", "columns"), [(1024, 8192), (7, 11)])
def test_blocks_give_what_all_pairs_give(monkeypatch: pytest.MonkeyPatch, rows: int, columns: int) -> None:
    monkeypatch.setattr(neighbours, "ROWS", rows)
    monkeypatch.setattr(neighbours, "COLUMNS", columns)
    x = np.random.default_rng(0).normal(size=(40, 6))
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosine = unit @ unit.T
    np.fill_diagonal(cosine, -2)
    near = nearest(x, k=5)
    assert np.array_equal(near.rows, np.argsort(-cosine, axis=1)[:, :5])
    assert near.cosine == pytest.approx(np.sort(cosine, axis=1)[:, ::-1][:, :5], abs=1e-5)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_rows_have_few_neighbours(count: int) -> None:
    assert nearest(np.ones((count, 3)), k=5).rows.shape == (count, max(0, count - 1))


def test_a_row_far_from_all_is_an_outlier() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(100, 8)) * 0.1 + 1, [[-1.0, 1, -1, 1, -1, 1, -1, 1]]])
    rows, mean = outliers(nearest(x))
    assert rows[0] == 100
    assert mean[0] == mean.min()
    assert len(outliers(nearest(np.ones((20, 3))))[0]) == 0


def test_copies_are_found_by_their_letters_and_near_copies_among_neighbours() -> None:
    texts = [
        TEXT,
        TEXT.upper() + " !",
        "another text about football and the cup final",
        TEXT.replace("monday", "friday"),
    ]
    texts += ["", "", "a second text about football, and about its rules"]
    exact = find_duplicates(texts)
    assert [group.tolist() for group in exact.groups()] == [[0, 1]]
    assert exact.exact.tolist() == [True, True, *[False] * 5]
    vectors = np.eye(7)
    vectors[[1, 3]] = vectors[0]
    found = find_duplicates(texts, nearest(vectors))
    assert [group.tolist() for group in found.groups()] == [[0, 1, 3]]
    vectors[6] = vectors[2]  # near each other for the encoder, but other words
    assert len(find_duplicates(texts, nearest(vectors)).groups()) == 1


def test_similarity_of_letters() -> None:
    assert similarity([TEXT, TEXT, "zzzz zzzz"], np.array([[0, 1], [0, 2]])) == pytest.approx([1, 0])
    assert plain("  A, b!\tC ") == "a b c"


def test_many_copies_make_one_group() -> None:
    assert [len(group) for group in find_duplicates([TEXT] * 500).groups()] == [500]
