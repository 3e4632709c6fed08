"""Files of the cache are used only if their checksum fits and their owner is trusted."""

import os
import stat
import warnings
from pathlib import Path

import numpy as np
import pytest

from drift.data.cache import cache_file
from drift.data.files import atomic_file, atomic_folder
from drift.data.sealed import SIZE, is_owned, is_sealed, sealed_content
from drift.data.texts import store_texts
from drift.data.tokenized import tokenize
from drift.data.vector_store import VectorStore, read_array, text_keys, write_array
from drift.models.translation import _read

IS_ROOT = hasattr(os, "getuid") and os.getuid() == 0


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def flip(file: Path, at: int) -> None:
    """Change one bit."""
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(content)


@pytest.fixture
def array(tmp_path: Path) -> Path:
    file = tmp_path / "cache" / "array.npy"
    write_array(file, [np.arange(6, dtype=np.float32)], (6,))
    return file


def test_what_was_written_is_read(array: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(read_array(array), np.arange(6, dtype=np.float32))


@pytest.mark.parametrize("at", [0, 60, 130, -1, -SIZE // 2])
def test_one_changed_bit_is_one_line(array: Path, at: int) -> None:
    flip(array, at)
    with pytest.warns(UserWarning, match="was changed since it was written; it is not used"):
        assert read_array(array) is None


@pytest.mark.parametrize("size", [0, 1, SIZE - 1, SIZE, 100])
def test_a_file_that_was_cut_short_is_missing(array: Path, size: int) -> None:
    array.write_bytes(array.read_bytes()[:size])
    assert read_array(array) is None


def test_a_file_without_a_checksum_is_missing(array: Path) -> None:
    np.save(array, np.ones(6, dtype=np.float32))
    assert read_array(array) is None


def test_a_device_or_a_folder_is_missing(tmp_path: Path) -> None:
    assert not is_sealed(Path("/dev/zero"))
    assert not is_sealed(tmp_path)
    assert sealed_content(tmp_path / "nothing") is None


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_file_that_everybody_may_write_is_one_line(array: Path) -> None:
    array.chmod(0o666)
    with pytest.warns(UserWarning, match="may be written by everybody; it is not used"):
        assert read_array(array) is None
    with pytest.warns(UserWarning, match="may be written by everybody"):
        assert not is_owned(array)


@pytest.mark.skipif(not IS_ROOT, reason="only root can give files away")
def test_a_file_of_another_user_is_one_line(array: Path) -> None:
    os.chown(array, 12345, 12345)
    with pytest.warns(UserWarning, match=r"belongs to another user \(id 12345\); it is not used"):
        assert read_array(array) is None


class Words:
    """A tokenizer of single characters."""

    key, pad_token_id = "characters", 0

    def __call__(self, texts: list[str], /, *, truncation: bool, max_length: int) -> dict[str, list[list[int]]]:
        rows = [[ord(character) for character in text] for text in texts]
        return {"input_ids": [row[:max_length] for row in rows] if truncation else rows}


def only_file(folder: Path, ending: str) -> Path:
    (file,) = folder.rglob(f"*{ending}")
    return file


@pytest.mark.filterwarnings("ignore:.*was changed since it was written")
def test_tampered_tokens_and_texts_are_written_again(cache: Path) -> None:
    texts = ["stock market", "team"]
    tokens = tokenize(texts, Words(), max_length=20).inputs([0, 1])["input_ids"].tolist()
    file = only_file(cache / "tokens", ".arrow")
    whole = file.read_bytes()
    flip(file, whole.index(ord("m").to_bytes(4, "little")))
    assert tokenize(texts, Words(), max_length=20).inputs([0, 1])["input_ids"].tolist() == tokens
    assert file.read_bytes() == whole

    assert list(store_texts(texts)["text"]) == texts
    file = only_file(cache / "texts", ".arrow")
    flip(file, file.read_bytes().index(b"market"))
    assert list(store_texts(texts)["text"]) == texts


@pytest.mark.filterwarnings("ignore:.*was changed since it was written")
@pytest.mark.parametrize("ending", [".npy", ".texts.npy"])
def test_tampered_vectors_are_not_found(cache: Path, ending: str) -> None:
    keys, vectors = text_keys(["a", "b"]), np.ones((2, 4), dtype=np.float32)
    file = VectorStore(["x"], 4).write(keys, np.zeros(2, dtype=bool), [vectors])
    file = file if ending == ".texts.npy" else file.with_name(file.name.replace(".texts.npy", ".npy"))
    flip(file, 130)
    store = VectorStore(["x"], 4)
    assert store.find(keys).tolist() == [-1, -1]
    assert store.whole(keys) is None
    store.write(keys, np.zeros(2, dtype=bool), [vectors])
    np.testing.assert_array_equal(VectorStore(["x"], 4).whole(keys)[0], vectors)  # type: ignore[index]


@pytest.mark.filterwarnings("ignore:.*was changed since it was written")
def test_tampered_translations_are_missing(tmp_path: Path) -> None:
    with cache_file(tmp_path / "t.json") as aside:
        aside.write_text('["a", "b"]')
    assert _read(tmp_path / "t.json") == ["a", "b"]
    flip(tmp_path / "t.json", 2)
    assert _read(tmp_path / "t.json") is None


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_temporary_files_are_private_and_complete_ones_are_not(tmp_path: Path) -> None:
    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    before = os.umask(0o022)
    try:
        with atomic_file(tmp_path / "file") as aside:
            aside.write_text("x")
            assert mode(aside) == 0o600
        with atomic_folder(tmp_path / "folder") as aside:
            (aside / "x").write_text("x")
            assert mode(aside) == 0o700
        assert (mode(tmp_path / "file"), mode(tmp_path / "folder")) == (0o644, 0o755)
    finally:
        os.umask(before)
