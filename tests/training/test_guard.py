"""Bad losses are seen as such, and what is said of them names rows."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from drift.data.examples import Batch
from drift.training.guard import EXPLODED, Guard, batch_rows, list_rows


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_a_fault_even_at_first(loss: float) -> None:
    assert Guard().fault(loss) == f"the loss is {loss}"


@given(st.lists(st.floats(0, 10), min_size=1, max_size=30))
def test_ordinary_losses_are_none(losses: list[float]) -> None:
    guard = Guard()
    assert [guard.fault(loss) for loss in losses] == [None] * len(losses)
    assert min(losses) - 1e-9 <= guard.average <= max(losses) + 1e-9


def test_an_explosion_is_told_and_does_not_count() -> None:
    guard = Guard()
    assert guard.fault(1e9) is None  # there is nothing yet to compare with
    guard = Guard()
    guard.fault(2.0)
    assert guard.fault(EXPLODED * 3.0) is None
    guard = Guard()
    guard.fault(2.0)
    assert "the loss has exploded: 300.1, where it was 2 on average" in guard.fault(300.1)
    assert guard.average == 2.0


def test_rows_of_all_pieces_are_collected_and_the_first_are_shown() -> None:
    pieces = [
        Batch(labeled_rows=torch.tensor([3]), unlabeled_rows=torch.arange(6)),
        Batch(unlabeled_rows=torch.tensor([[7, 8], [9, 10]])),  # stacked trials
    ]
    rows = batch_rows(pieces)
    assert rows == {"labeled": [3], "unlabeled": [0, 1, 2, 3, 4, 5, 7, 8, 9, 10]}
    assert list_rows(rows) == "labeled rows 3; unlabeled rows 0, 1, 2, 3, 4, 5, 7, 8 and 2 more"
