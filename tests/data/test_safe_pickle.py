"""Pickles of data are read; one that would run code is refused before it does."""

import os
import pickle
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from drift.data.safe_pickle import read_pickle
from drift.errors import FileError


class Runs:
    """Pickled as a call."""

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        return self.call[0], self.call[1:]


def pickled(tmp_path: Path, value: Any, protocol: int = 4) -> Path:
    path = tmp_path / "value.pkl"
    path.write_bytes(pickle.dumps(value, protocol=protocol))
    return path


def test_data_is_read_unchanged(tmp_path: Path) -> None:
    matrix = csr_matrix(random_array((5, 4), density=0.5, rng=np.random.default_rng(0)))
    value = [defaultdict(list, {0: [1, 2], 1: []}), {"a": 1.5}, (None, True, "é"), matrix, np.arange(6).reshape(2, 3)]
    graph, table, row, sparse, array = read_pickle(pickled(tmp_path, value))
    assert (graph, graph.default_factory, table, row) == (value[0], list, value[1], value[2])
    assert np.array_equal(sparse.toarray(), matrix.toarray())
    assert np.array_equal(array, value[4])


def test_pickles_of_python_2(tmp_path: Path) -> None:
    path = tmp_path / "old.pkl"
    path.write_bytes(b"ccollections\ndefaultdict\n(c__builtin__\nlist\ntRS'caf\\xe9'\n(lI2\nas.")
    assert read_pickle(path) == {"café": [2]}


@pytest.mark.parametrize("protocol", range(5))
@pytest.mark.parametrize("nested", [False, True])
def test_code_is_refused_and_not_run(tmp_path: Path, protocol: int, nested: bool) -> None:
    trace = tmp_path / "it-ran"
    hostile: Any = Runs(os.system, f"touch {trace}")
    if nested:
        hostile = [1, {"a": hostile}]
    with pytest.raises(FileError, match=r"value\.pkl: the pickle asks for posix\.system, which is not data"):
        read_pickle(pickled(tmp_path, hostile, protocol))
    assert not trace.exists()
    pickle.loads(pickle.dumps(hostile))
    assert trace.exists()  # it would have


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Runs(eval, "1"), "eval"),
        (np.array([Runs(eval, "1")], dtype=object), "eval"),
        (Runs(getattr, [], "append"), "getattr"),
        (Runs(np.load, "file.npy"), "numpy.load"),
        (OrderedDict(a=1), "OrderedDict"),
        (Path("file"), "pathlib"),
    ],
)
def test_other_classes_are_refused_by_name(tmp_path: Path, value: Any, name: str) -> None:
    with pytest.raises(FileError, match=name) as caught:
        read_pickle(pickled(tmp_path, value))
    assert "\n" not in str(caught.value)


def test_a_name_with_dots_does_not_reach_further(tmp_path: Path) -> None:
    path = tmp_path / "dots.pkl"
    path.write_bytes(b"\x80\x04\x8c\x05numpy\x8c\x11ndarray.__class__\x93.")
    with pytest.raises(FileError, match=r"numpy\.ndarray\.__class__"):
        read_pickle(path)


def test_every_cut_is_an_error_of_one_line(tmp_path: Path) -> None:
    path = pickled(tmp_path, [np.arange(3), csr_matrix(np.eye(2)), defaultdict(list, {1: [2]})])
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(FileError, match="not a complete pickle") as caught:
            read_pickle(path)
        assert "\n" not in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"none\.pkl cannot be read \(No such file"):
        read_pickle(tmp_path / "none.pkl")
