"""The endless stream of batches: one size, fair, of like length where asked, and from the generator alone."""

from itertools import islice, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from drift.data.batches import POOL, EndlessBatches
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
def test_batches_have_one_size_and_rows_come_in_rounds(rows: int, size: int, seed: int, lengths: str) -> None:
    batches = first(2 * rows + 1, rows, size, seed, lengths)
    assert {len(batch) for batch in batches} == {min(size, rows)}
    joined = torch.cat(batches)
    for start in range(0, len(joined) - rows + 1, rows):
        assert joined[start : start + rows].sort().values.tolist() == list(range(rows))


@given(rows=st.integers(2, 40), size=st.integers(1, 40), seed=st.integers(0, 99), lengths=LENGTHS)
def test_the_generator_decides_and_no_other(rows: int, size: int, seed: int, lengths: str) -> None:
    before = torch.random.get_rng_state()
    arguments = (rows, size, seed, lengths)
    assert torch.equal(torch.cat(first(5, *arguments)), torch.cat(first(5, *arguments)))
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("lengths", ["none", "mixed"])
def test_rounds_are_shuffled_anew(lengths: str) -> None:
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
def test_a_saved_stream_goes_on_exactly(rows: int, size: int, seed: int, taken: int, lengths: str) -> None:
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
    """How much of these batches is not rows."""
    of_rows = [lengths[batch.numpy()] for batch in batches]
    return int(sum((each.max() - each).sum() for each in of_rows))


@given(seed=st.integers(0, 99), size=st.integers(4, 32), rows=st.integers(200, 400))
def test_rows_of_like_length_need_less_padding(seed: int, size: int, rows: int) -> None:
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
