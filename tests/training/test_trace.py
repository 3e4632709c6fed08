"""A trace is whole lines, can be taken back to a mark, and survives being cut short."""

from pathlib import Path

import numpy as np
import pytest

from drift.training.trace import Trace, read_trace, write_predictions


def written(trace: Trace, *steps: int) -> None:
    for step in steps:
        trace.write({"step": step, "loss": 1 / step})


@pytest.mark.parametrize("on_disk", [True, False])
def test_rewinding_forgets_what_came_after_the_mark(tmp_path: Path, on_disk: bool) -> None:
    trace = Trace(tmp_path / "trace.jsonl" if on_disk else None)
    written(trace, 1, 2)
    mark = trace.mark()
    written(trace, 3, 4)
    trace.rewind(mark)
    written(trace, 5)
    trace.close()
    assert [entry["step"] for entry in trace.entries] == [1, 2, 5]
    if on_disk:
        assert read_trace(tmp_path / "trace.jsonl") == trace.entries
        assert (tmp_path / "trace.jsonl").read_text().count("\n") == 3


def test_every_entry_is_readable_at_once_and_numbers_come_back_exactly(tmp_path: Path) -> None:
    trace = Trace(tmp_path / "trace.jsonl")
    written(trace, 3, 7)
    assert read_trace(tmp_path / "trace.jsonl") == [{"step": 3, "loss": 1 / 3}, {"step": 7, "loss": 1 / 7}]


def test_another_process_goes_on_from_a_mark_and_a_half_line_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    first = Trace(path)
    written(first, 1, 2)
    mark = first.mark()
    written(first, 3)
    first.close()
    with path.open("ab") as file:
        file.write(b'{"step": 4, "lo')  # killed while writing
    assert [entry["step"] for entry in read_trace(path)] == [1, 2, 3]
    second = Trace(path)
    second.rewind(mark)
    written(second, 3, 4)
    second.close()
    assert [entry["step"] for entry in read_trace(path)] == [1, 2, 3, 4]


def test_a_mark_beyond_the_end_changes_nothing(tmp_path: Path) -> None:
    trace = Trace(tmp_path / "trace.jsonl")
    written(trace, 1)
    trace.rewind(10_000)
    written(trace, 2)
    trace.close()
    assert [entry["step"] for entry in read_trace(tmp_path / "trace.jsonl")] == [1, 2]


def test_predictions_come_back_as_they_were(tmp_path: Path) -> None:
    probabilities = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 5)).astype(np.float32)
    path = write_predictions(tmp_path / "new", 100, np.arange(5), probabilities)
    assert path.name == "step-000100.npz"
    with np.load(path) as found:
        assert np.array_equal(found["rows"], np.arange(5))
        assert np.array_equal(found["probabilities"], probabilities)
