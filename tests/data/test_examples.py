"""Examples by row number, and batches that can be moved."""

import torch

from drift.data.examples import Batch, Vectors, moved

X = torch.arange(12.0).view(6, 2)
META = torch.device("meta")  # a device that every machine has


def test_rows_come_in_the_requested_order() -> None:
    examples = Vectors(X)
    assert len(examples) == 6
    assert examples.inputs(torch.tensor([4, 0, 4])).tolist() == [[8.0, 9.0], [0.0, 1.0], [8.0, 9.0]]


def test_stacked_rows_give_stacked_inputs() -> None:
    inputs = Vectors(X).inputs(torch.tensor([[0, 1, 2], [3, 4, 5]]))
    assert inputs.shape == (2, 3, 2)
    assert torch.equal(inputs[1], X[3:])


def test_a_batch_moves_inputs_and_labels_and_keeps_row_numbers() -> None:
    rows = torch.arange(3)
    batch = Batch((X[:3], rows), {"ids": X[3:], "mask": X[3:]}, rows, rows + 3)
    there = batch.to(META)
    assert [tensor.device for tensor in there.labeled] == [META, META]
    assert {tensor.device for tensor in there.unlabeled.values()} == {META}
    assert there.labeled_rows is rows
    assert torch.equal(there.unlabeled_rows, rows + 3)


def test_a_batch_without_labels_moves_too() -> None:
    there = Batch(unlabeled=X).to(META)
    assert there.labeled is None
    assert there.unlabeled.device == META


def test_moving_to_the_cpu_returns_the_same_batch() -> None:
    batch = Batch(unlabeled=X)
    assert batch.to(torch.device("cpu")) is batch


def test_nested_inputs_keep_their_nesting() -> None:
    actual = moved({"a": X, "b": (X, [X]), "c": "text", "d": None}, META)
    assert actual["a"].device == actual["b"][0].device == actual["b"][1][0].device == META
    assert (actual["c"], actual["d"]) == ("text", None)
