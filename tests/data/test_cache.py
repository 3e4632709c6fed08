"""The cache: where it is, what things in it are called, and what is said where it cannot be written."""

from pathlib import Path

import pytest

from drift.data.cache import cache_file, cache_folder, cache_place, content_key
from drift.errors import FileError


def test_the_folder_is_the_one_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("DRIFT_CACHE", raising=False)
    assert cache_folder() == tmp_path / "drift"
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "here"))
    assert cache_folder() == tmp_path / "here"


def test_a_key_says_what_texts_and_settings_there_were() -> None:
    keys = [content_key(*given) for given in ((["ab", "c"],), (["a", "bc"],), (["ab", "c"], 1), (["ab", "c"], "1"))]
    assert len({*keys}) == len(keys)
    assert content_key(["ab", "c"]) == keys[0]


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), cache_file(tmp_path / "made" / "x") as aside:
        aside.write_text(str(1 / 0))
    assert [*(tmp_path / "made").iterdir()] == []
    with cache_file(tmp_path / "made" / "x") as aside:
        aside.write_text("x")
    assert (tmp_path / "made" / "x").read_text() == "x"


def test_a_folder_that_cannot_be_made_is_one_line_with_one_thing_to_do(tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("")
    folder = tmp_path / "a-file" / "tokens"
    with pytest.raises(FileError) as caught, cache_file(folder / "x"):
        pass
    assert str(caught.value).startswith(f"{folder / 'x'} cannot be written (")
    assert str(caught.value).endswith("; set DRIFT_CACHE to a folder that can be written to")
    assert "give another place" not in str(caught.value)


def test_a_place_in_it_is_made_or_the_cache_is_to_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "here"))
    assert cache_place("texts").is_dir()
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "a-file"))
    with pytest.raises(FileError, match=r"texts cannot be made \(Not a directory\); set DRIFT_CACHE to a folder"):
        cache_place("texts")


def test_a_disk_that_takes_no_more_is_said_so(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with (
            pytest.raises(FileError, match=r"cannot be written .*; set DRIFT_CACHE"),
            cache_file(tmp_path / "x") as aside,
        ):
            aside.write_bytes(bytes(5000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [*tmp_path.iterdir()] == []
