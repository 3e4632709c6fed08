"""Requests that wait are computed together, in order, and none harms another."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest

from drift.service.batching import Batcher, FullError


class Model:
    """Answers each number with itself; the first call waits until `go` is set. Negative numbers cannot be computed."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, list[int]]] = []
        self.go, self.busy = threading.Event(), threading.Event()

    def __call__(self, name: str, rows: Sequence[int]) -> np.ndarray:
        self.batches.append((name, list(rows)))
        self.busy.set()
        self.go.wait(10)
        if min(rows) < 0:
            raise ValueError("negative")
        return np.array(rows)[:, None]


def waiting(model: Model, batcher: Batcher, requests: Sequence[tuple[str, list[int]]]) -> "list[Future[Any]]":
    """Submit requests while the model computes the first of them."""
    first = batcher.submit(*requests[0])
    assert model.busy.wait(10)
    return [first, *(batcher.submit(*each) for each in requests[1:])]


def test_what_waits_is_one_batch_and_everyone_gets_their_own() -> None:
    model, batcher = Model(), None
    batcher = Batcher(model, most_rows=4)
    requests = [("a", [0]), ("a", [1, 2]), ("a", [3]), ("a", [4, 5]), ("b", [6]), ("a", [7]), ("a", list(range(9)))]
    futures = waiting(model, batcher, requests)
    assert batcher.waiting == 16
    model.go.set()
    found = [future.result(10)[:, 0].tolist() for future in futures]
    assert found == [rows for _, rows in requests]
    expected = [("a", [0]), ("a", [1, 2, 3]), ("a", [4, 5]), ("b", [6]), ("a", [7]), ("a", list(range(9)))]
    assert model.batches == expected
    batcher.close()


def test_a_request_that_fails_fails_alone() -> None:
    model = Model()
    batcher = Batcher(model)
    futures = waiting(model, batcher, [("a", [0]), ("a", [1]), ("a", [-1]), ("a", [2])])
    model.go.set()
    with pytest.raises(ValueError, match="negative"):
        futures[2].result(10)
    assert [futures[place].result(10).item() for place in (0, 1, 3)] == [0, 1, 2]
    assert batcher.submit("a", [5]).result(10).item() == 5  # the thread goes on
    batcher.close()


def test_a_cancelled_request_is_not_computed() -> None:
    model = Model()
    batcher = Batcher(model)
    futures = waiting(model, batcher, [("a", [0]), ("a", [1]), ("a", [2])])
    assert futures[1].cancel()
    model.go.set()
    assert futures[2].result(10).item() == 2
    assert model.batches == [("a", [0]), ("a", [2])]
    batcher.close()


def test_too_much_is_refused_and_closing_finishes_what_waits() -> None:
    model = Model()
    batcher = Batcher(model, most_waiting=3)
    futures = waiting(model, batcher, [("a", [0]), ("a", [1, 2])])
    with pytest.raises(FullError, match="too many rows"):
        batcher.submit("a", [3, 4])
    model.go.set()
    batcher.close()
    assert futures[1].result(0)[:, 0].tolist() == [1, 2]
    with pytest.raises(FullError, match="ends"):
        batcher.submit("a", [1])
