"""The endless stream of batches: one size, fair, and from the generator alone."""

from itertools import islice

import torch
from hypothesis import given
from hypothesis import strategies as st

from drift.data.batches import EndlessBatches


def first(count: int, rows: int, size: int, seed: int) -> list[torch.Tensor]:
    return list(islice(EndlessBatches(rows, size, torch.Generator().manual_seed(seed)), count))


@given(rows=st.integers(1, 40), size=st.integers(1, 50), seed=st.integers(0, 99))
def test_batches_have_one_size_and_rows_come_in_rounds(rows: int, size: int, seed: int) -> None:
    batches = first(2 * rows + 1, rows, size, seed)
    assert {len(batch) for batch in batches} == {min(size, rows)}
    stream = torch.cat(batches)
    for start in range(0, len(stream) - rows + 1, rows):
        assert stream[start : start + rows].sort().values.tolist() == list(range(rows))


@given(rows=st.integers(2, 40), size=st.integers(1, 40), seed=st.integers(0, 99))
def test_the_generator_decides_and_no_other(rows: int, size: int, seed: int) -> None:
    before = torch.random.get_rng_state()
    assert torch.equal(torch.cat(first(5, rows, size, seed)), torch.cat(first(5, rows, size, seed)))
    assert torch.equal(before, torch.random.get_rng_state())


def test_rounds_are_shuffled_anew() -> None:
    batches = first(4, 30, 30, seed=0)
    assert len({tuple(batch.tolist()) for batch in batches}) == 4
