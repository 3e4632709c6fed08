"""Vectors are found by their text; small limits, damage and other processes cost time, never a wrong vector."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.data import vector_store
from drift.data.vector_store import VectorStore, text_keys


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def vectors(texts: list[str]) -> np.ndarray:
    return np.array([[len(text), hash(text) % 1000] for text in texts], dtype=np.float32)


def add(store: VectorStore, *texts: str) -> Path:
    return store.write(text_keys(texts), np.array([len(text) > 3 for text in texts]), [vectors(list(texts))])


def test_vectors_are_found_in_any_order_and_by_any_process() -> None:
    store = VectorStore(["a"], 2)
    assert store.find(text_keys(["one"])).tolist() == [-1]
    add(store, "one", "two", "three")
    add(store, "four", "five")
    for reader in (store, VectorStore(["a"], 2)):
        positions = reader.find(text_keys(["five", "nothing", "one", "three"]))
        assert (positions < 0).tolist() == [False, True, False, False]
        known = positions[positions >= 0]
        np.testing.assert_array_equal(reader.read(known), vectors(["five", "one", "three"]))
        assert reader.truncated(known).tolist() == [True, False, True]
    assert VectorStore(["b"], 2).find(text_keys(["one"])).tolist() == [-1]  # other settings
    assert VectorStore(["a"], 3).find(text_keys(["one"])).tolist() == [-1]


def test_merged_files_hold_the_same() -> None:
    store = VectorStore(["a"], 2)
    files = [add(store, "one"), add(store, "two", "three"), add(store, "four")]
    store.merge(files[:2])
    assert len(list(store.folder.glob("*.texts.npy"))) == 2
    names = ["four", "three", "two", "one"]
    np.testing.assert_array_equal(store.read(store.find(text_keys(names))), vectors(names))


def test_what_this_process_uses_is_not_removed_to_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    add(VectorStore(["a"], 2), "unused")
    used = add(VectorStore(["a"], 2), "used")
    store = VectorStore(["a"], 2)
    store.find(text_keys(["used"]))
    monkeypatch.setenv("DRIFT_CACHE_SIZE", "0")
    new = add(store, "new")
    assert set(store.folder.glob("*.texts.npy")) == {used, new}
    np.testing.assert_array_equal(store.read(store.find(text_keys(["new", "used"]))), vectors(["new", "used"]))
    assert store.find(text_keys(["unused"])).tolist() == [-1]  # removed after it was listed


def test_few_files_are_open_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_store, "MOST_OPEN", 2)
    store = VectorStore(["a"], 2)
    names = ["a", "b", "c", "d"]
    for name in names:
        add(store, name)
    np.testing.assert_array_equal(store.read(store.find(text_keys(names))), vectors(names))
    assert len(store._open) == 2


@given(st.lists(st.text(), unique=True))
def test_different_texts_have_different_keys(texts: list[str]) -> None:
    keys = text_keys(texts)
    assert keys.shape == (len(texts), 2)
    assert len(np.unique(keys, axis=0)) == len(texts)
