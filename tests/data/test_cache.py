"""The cache: its folder, the names of its files, and the errors if it cannot be written."""

import os
from pathlib import Path

import pytest

from drift.data.cache import cache_file, cache_folder, cache_limit, cache_place, clear_cache, content_key, make_room
from drift.data.sealed import sealed_content
from drift.errors import ConfigError, FileError


def test_the_environment_determines_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("DRIFT_CACHE", raising=False)
    assert cache_folder() == tmp_path / "drift"
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "here"))
    assert cache_folder() == tmp_path / "here"


def test_a_key_depends_on_texts_and_settings() -> None:
    keys = [content_key(*given) for given in ((["ab", "c"],), (["a", "bc"],), (["ab", "c"], 1), (["ab", "c"], "1"))]
    assert len({*keys}) == len(keys)
    assert content_key(["ab", "c"]) == keys[0]


def test_a_file_is_written_atomically(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), cache_file(tmp_path / "made" / "x") as aside:
        aside.write_text(str(1 / 0))
    assert [*(tmp_path / "made").iterdir()] == []
    with cache_file(tmp_path / "made" / "x") as aside:
        aside.write_text("x")
    assert sealed_content(tmp_path / "made" / "x") == b"x"


def test_a_folder_that_cannot_be_made_is_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("")
    folder = tmp_path / "a-file" / "tokens"
    with pytest.raises(FileError) as caught, cache_file(folder / "x"):
        pass
    assert str(caught.value).startswith(f"{folder / 'x'} cannot be written (")
    assert str(caught.value).endswith("; set DRIFT_CACHE to a folder that can be written to")
    assert "give another place" not in str(caught.value)


def test_a_folder_in_the_cache_is_made_or_the_error_says_to_move_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "here"))
    assert cache_place("texts").is_dir()
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "a-file"))
    with pytest.raises(FileError, match=r"texts cannot be made \(Not a directory\); set DRIFT_CACHE to a folder"):
        cache_place("texts")


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
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


def test_without_a_home_folder_the_cache_has_to_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("DRIFT_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(FileError, match=r"^there is no home folder for the cache \(.*\); set DRIFT_CACHE to a folder"):
        cache_folder()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "drift"


def fill(folder: Path, **sizes: int) -> dict[str, Path]:
    """Files of some sizes in the part of vectors; the first was used the longest time ago."""
    files = {}
    for age, (name, size) in enumerate(sizes.items()):
        file = folder / "embeddings" / "settings" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * size)
        os.utime(file, ns=(age * 10**9, age * 10**9))
        files[name] = file
    return files


def test_what_was_not_used_for_longest_is_removed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path))
    files = fill(tmp_path, old=400, middle=400, new=400)
    (tmp_path / "encoders").mkdir()
    (tmp_path / "encoders" / "weights").write_bytes(b"x" * 5000)
    (tmp_path / "mine.txt").write_bytes(b"x" * 5000)  # not the cache's
    monkeypatch.setenv("DRIFT_CACHE_SIZE", "1.2KB")
    make_room()
    assert all(file.exists() for file in files.values())
    monkeypatch.setenv("DRIFT_CACHE_SIZE", "1199")
    make_room()
    assert [name for name, file in files.items() if file.exists()] == ["middle", "new"]
    monkeypatch.setenv("DRIFT_CACHE_SIZE", "0")
    make_room(keep=[files["middle"]])
    assert [name for name, file in files.items() if file.exists()] == ["middle"]
    assert (tmp_path / "encoders" / "weights").exists()
    assert clear_cache() == 5400
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(("given", "limit"), [("", 10**10), ("500MB", 5 * 10**8), ("20 gb", 2 * 10**10), ("0", 0)])
def test_the_limit_is_read_with_its_unit(given: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE_SIZE", given)
    assert cache_limit() == limit


@pytest.mark.parametrize("given", ["much", "-1GB", "inf", "nan", "GB"])
def test_a_limit_that_is_no_size_is_one_line(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE_SIZE", given)
    with pytest.raises(ConfigError, match="DRIFT_CACHE_SIZE is"):
        cache_limit()
