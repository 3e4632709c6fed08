"""Batches: the endless stream (one size, every row once per epoch, similar lengths), batches by length, padding."""

from itertools import islice, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from drift.data.batches import POOL, EndlessBatches, batches_by_length, pad_rows, ranges, some_rows
from drift.training.packing import pack, unpack

LENGTHS = st.sampled_from(["none", "equal", "mixed"])


def stream(rows: int, size: int, seed: int, lengths: str = "none") -> EndlessBatches:
    of_rows = {
        "none": None,
        "equal": np.ones(rows, dtype=int),
        "mixed": np.random.default_rng(seed).integers(1, 500, rows),
    }
    return EndlessBatches(rows, size, torch.Generator().manual_seed(seed), lengths=of_rows[lengths])


def first(count: int, *arguments: object) -> list[torch.Tensor]:
    return list(islice(stream(*arguments), count))


@given(rows=st.integers(1, 40), size=st.integers(1, 50), seed=st.integers(0, 99), lengths=LENGTHS)
def test_batches_have_one_size_and_every_row_comes_once_per_epoch(
    rows: int, size: int, seed: int, lengths: str
) -> None:
    batches = first(2 * rows + 1, rows, size, seed, lengths)
    assert {len(batch) for batch in batches} == {min(size, rows)}
    joined = torch.cat(batches)
    for start in range(0, len(joined) - rows + 1, rows):
        assert joined[start : start + rows].sort().values.tolist() == list(range(rows))


@given(rows=st.integers(2, 40), size=st.integers(1, 40), seed=st.integers(0, 99), lengths=LENGTHS)
def test_batches_depend_only_on_the_generator(rows: int, size: int, seed: int, lengths: str) -> None:
    before = torch.random.get_rng_state()
    arguments = (rows, size, seed, lengths)
    assert torch.equal(torch.cat(first(5, *arguments)), torch.cat(first(5, *arguments)))
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("lengths", ["none", "mixed"])
def test_every_epoch_has_its_own_order(lengths: str) -> None:
    batches = first(12, 30, 10, 0, lengths)
    rounds = [torch.cat(batches[start : start + 3]) for start in range(0, 12, 3)]
    assert len({tuple(each.tolist()) for each in rounds}) == 4


@given(
    rows=st.integers(1, 60),
    size=st.integers(1, 20),
    seed=st.integers(0, 99),
    taken=st.integers(0, 30),
    lengths=LENGTHS,
)
def test_a_saved_stream_resumes_exactly(rows: int, size: int, seed: int, taken: int, lengths: str) -> None:
    left = stream(rows, size, seed, lengths)
    for _ in range(taken):
        next(left)
    saved = unpack(*pack(left.state_dict()))
    again = EndlessBatches(
        rows, size, torch.Generator(), lengths=None if left.lengths is None else left.lengths.numpy()
    )
    again.load_state_dict(saved)
    expected = list(islice(left, 30))
    assert torch.equal(torch.cat(list(islice(again, 30))), torch.cat(expected))


def padding(batches: list[torch.Tensor], lengths: np.ndarray) -> int:
    """Number of padding tokens in these batches."""
    of_rows = [lengths[batch.numpy()] for batch in batches]
    return int(sum((each.max() - each).sum() for each in of_rows))


@given(seed=st.integers(0, 99), size=st.integers(4, 32), rows=st.integers(200, 400))
def test_rows_of_similar_length_need_less_padding(seed: int, size: int, rows: int) -> None:
    bucketed = stream(rows, size, seed, "mixed")
    batches = list(islice(bucketed, 2 * rows // size))
    lengths = bucketed.lengths.numpy()
    assert padding(batches, lengths) < 0.5 * padding(first(len(batches), rows, size, seed), lengths)


def test_batches_of_a_pool_are_sorted_by_length_and_come_in_random_order() -> None:
    rows, size = 3 * POOL * 4, 4
    bucketed = stream(rows, size, 0, "mixed")
    pool = list(islice(bucketed, POOL))
    lengths = bucketed.lengths
    spans = sorted((int(lengths[batch].min()), int(lengths[batch].max())) for batch in pool)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    means = [float(lengths[batch].double().mean()) for batch in pool]
    assert abs(np.corrcoef(means, np.arange(POOL))[0, 1]) < 0.3


@given(rows=st.integers(0, 30), wanted=st.none() | st.integers(1, 40), seed=st.integers(0, 99))
def test_some_rows_are_distinct_or_none_is_returned_for_all(rows: int, wanted: int | None, seed: int) -> None:
    chosen = some_rows(rows, wanted, seed=seed)
    if wanted is None or wanted >= rows:
        assert chosen is None
        return
    assert len(np.unique(chosen)) == wanted
    assert chosen.min() >= 0
    assert chosen.max() < rows


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=8))
def test_ranges(pairs: list[tuple[int, int]]) -> None:
    starts, counts = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    assert ranges(starts, counts).tolist() == [start + k for start, count in pairs for k in range(count)]


@given(st.lists(st.integers(1, 50)), st.integers(1, 200))
def test_batches_by_length_hold_every_row_once_and_keep_to_the_budget(lengths: list[int], batch_tokens: int) -> None:
    batches = batches_by_length(lengths, batch_tokens)
    assert sorted(row for rows in batches for row in rows) == list(range(len(lengths)))
    for rows in batches:
        assert len(rows) == 1 or len(rows) * max(lengths[row] for row in rows) <= batch_tokens


def test_batches_by_length_begin_with_the_longest_rows() -> None:
    assert batches_by_length([2, 5, 3, 2], 6) == [[1], [2, 0], [3]]


@given(st.lists(st.lists(st.integers(0, 2**40), max_size=6), max_size=5), st.booleans())
def test_padded_rows_keep_their_ids_and_the_mask_marks_them(rows: list[list[int]], as_arrays: bool) -> None:
    ids, mask = pad_rows([np.array(row, dtype=np.int64) for row in rows] if as_arrays else rows, padding=-7)
    assert ids.dtype == mask.dtype == torch.int64
    assert ids.shape == mask.shape == (len(rows), max(map(len, rows), default=0))
    assert [line[real.bool()].tolist() for line, real in zip(ids, mask, strict=True)] == rows
    assert mask.sum(1).tolist() == [len(row) for row in rows]
    assert (ids[mask == 0] == -7).all()


def test_rows_can_be_padded_to_a_fixed_length() -> None:
    ids, mask = pad_rows([[1], [2, 3]], padding=0, length=3)
    assert ids.tolist() == [[1, 0, 0], [2, 3, 0]]
    assert mask.tolist() == [[1, 0, 0], [1, 1, 0]]
