"""Texts on disk: stored unchanged, one file per content, and invalid rows are named."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drift.data.cache import content_key
from drift.data.texts import CHUNK, store_texts
from drift.errors import DataError

pytest.importorskip("datasets", reason="needs datasets: pip install 'drift-ssl[text]'")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_texts_are_stored_unchanged(texts: list[str], tmp_path: Path) -> None:
    assert store_texts(texts, folder=tmp_path)["text"][:] == texts


@pytest.mark.parametrize("rows", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7])
def test_any_number_of_rows_is_stored_in_order(rows: int, tmp_path: Path) -> None:
    stored = store_texts((f"text {n}" for n in range(rows)), folder=tmp_path)
    assert stored.column_names == ["text"]
    assert stored["text"][:] == [f"text {n}" for n in range(rows)]


def test_the_file_is_in_the_cache_and_named_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path))
    stored = store_texts(["a", "b"])
    assert [Path(file["filename"]) for file in stored.cache_files] == [
        tmp_path / "texts" / f"{content_key(['a', 'b'])}.arrow"
    ]


def test_the_same_texts_are_one_file_written_once(tmp_path: Path) -> None:
    store_texts(["a", "b"], folder=tmp_path)
    (file,) = tmp_path.iterdir()
    before = file.stat()
    store_texts(iter(["a", "b"]), folder=tmp_path)
    assert list(tmp_path.iterdir()) == [file]
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    store_texts(["b", "a"], folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_texts_are_read_one_chunk_at_a_time(tmp_path: Path) -> None:
    """When the first text of a chunk is read, the previous chunk is already in the file."""
    on_disk = []

    def texts() -> Iterator[str]:
        for row in range(3 * CHUNK):
            if row % CHUNK == 0:
                on_disk.append(sum(file.stat().st_size for file in tmp_path.rglob("texts.arrow")))
            yield "x" * 100

    store_texts(texts(), folder=tmp_path)
    assert on_disk[1] - on_disk[0] > 100 * CHUNK
    assert on_disk[2] - on_disk[1] > 100 * CHUNK


@pytest.mark.parametrize(
    ("bad", "named"),
    [(None, "row 1001 .*None is not a text"), (7, "row 1001 .*7 is not"), ("a\ud83d", "row 1001 .*d83d")],
)
def test_a_row_that_is_no_text_is_named_and_no_file_is_left(bad: object, named: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=named):
        store_texts([*["a"] * 1001, bad], folder=tmp_path)  # type: ignore[list-item]
    assert list(tmp_path.iterdir()) == []
