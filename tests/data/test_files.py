"""Folders and files are written atomically; the previous version survives every error."""

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from drift.data import files
from drift.data.files import atomic_file, atomic_folder
from drift.errors import FileError


def content(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def fill(path: Path, files: dict[str, str]) -> None:
    with atomic_folder(path) as folder:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)


def test_a_new_folder_appears_with_its_parents(tmp_path: Path) -> None:
    fill(tmp_path / "runs" / "one", {"a.txt": "1", "deep/b.txt": "2"})
    assert content(tmp_path) == {"runs/one/a.txt": "1", "runs/one/deep/b.txt": "2"}


def test_nothing_appears_before_the_block_ends(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "run") as folder:
        (folder / "a.txt").write_text("1")
        assert not (tmp_path / "run").exists()
        assert folder.parent == tmp_path  # the same disk, so that the last move is a rename
    assert content(tmp_path) == {"run/a.txt": "1"}


def test_an_old_folder_is_replaced_completely(tmp_path: Path) -> None:
    fill(tmp_path / "run", {"old.txt": "old", "both.txt": "old"})
    fill(tmp_path / "run", {"both.txt": "new"})
    assert content(tmp_path) == {"run/both.txt": "new"}
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.parametrize("fault", [ValueError, OSError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("there", [True, False])
def test_an_error_in_the_block_keeps_the_old_folder_and_leaves_no_debris(
    tmp_path: Path, fault: type[BaseException], there: bool
) -> None:
    if there:
        fill(tmp_path / "run", {"old.txt": "old"})

    def fails_half_way() -> None:
        with atomic_folder(tmp_path / "run") as folder:
            (folder / "half.txt").write_text("half")
            raise fault

    with pytest.raises(fault):
        fails_half_way()
    assert content(tmp_path) == ({"run/old.txt": "old"} if there else {})
    assert os.listdir(tmp_path) == (["run"] if there else [])


@pytest.mark.parametrize("kind", ["file", "link to a file"])
def test_a_file_in_the_way_is_kept_and_no_debris_is_left(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "taken"
    if kind == "file":
        target.write_text("mine")
    else:
        (tmp_path / "file").write_text("mine")
        target.symlink_to(tmp_path / "file")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(OSError, match="taken"):
        fill(target, {"a.txt": "1"})
    assert target.read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == before


def test_the_folder_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").mkdir()
    fill(tmp_path / "run", {"a.txt": "1"})
    mode = stat.S_IMODE((tmp_path / "run").stat().st_mode)
    assert oct(mode) == oct(stat.S_IMODE((tmp_path / "usual").stat().st_mode))


def write(path: Path, text: str) -> None:
    with atomic_file(path) as aside:
        aside.write_text(text)


def test_a_file_appears_with_its_parents_when_the_block_ends(tmp_path: Path) -> None:
    target = tmp_path / "runs" / "metrics.json"
    with atomic_file(target) as aside:
        aside.write_text("1")
        assert not target.exists()
        assert aside.parent == target.parent  # the same disk, so that the last move is a rename
    assert content(tmp_path) == {"runs/metrics.json": "1"}


def test_an_old_file_is_replaced_completely(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "a long old text")
    write(tmp_path / "a.txt", "new")
    assert content(tmp_path) == {"a.txt": "new"}


@pytest.mark.parametrize("fault", [ValueError, OSError, KeyboardInterrupt])
@pytest.mark.parametrize("there", [True, False])
def test_an_error_keeps_the_old_file_and_leaves_no_debris(
    tmp_path: Path, fault: type[BaseException], there: bool
) -> None:
    if there:
        write(tmp_path / "a.txt", "old")

    def fails_half_way() -> None:
        with atomic_file(tmp_path / "a.txt") as aside:
            aside.write_text("half")
            raise fault

    with pytest.raises(fault):
        fails_half_way()
    assert content(tmp_path) == ({"a.txt": "old"} if there else {})


def test_a_block_that_writes_nothing_leaves_the_old_file(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "old")
    with pytest.raises(FileNotFoundError), atomic_file(tmp_path / "a.txt"):
        pass
    assert content(tmp_path) == {"a.txt": "old"}


def test_a_folder_in_the_way_of_a_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(FileError, match="taken is a folder; give the name of a file"):
        write(tmp_path / "taken", "1")
    assert os.listdir(tmp_path) == ["taken"]


def test_on_windows_no_folder_is_opened_and_files_are_flushed_through_handles_that_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = {}

    def record(path: Path, flags: int) -> int:
        opened[path.name] = flags
        return open_file(path, flags)

    open_file = os.open
    monkeypatch.setattr(files, "WINDOWS", True)
    monkeypatch.setattr(files.os, "open", record)
    with atomic_folder(tmp_path / "run") as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "a.txt").write_text("1")  # not touch(), which calls os.open itself
    assert opened == {"a.txt": os.O_RDWR}


def test_a_file_is_private_until_it_is_complete_and_then_usual(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    with atomic_file(tmp_path / "a.txt") as aside:
        assert oct(stat.S_IMODE(aside.stat().st_mode)) == "0o600"
        aside.write_text("1")
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "old")
    (tmp_path / "a.txt").chmod(0o640)
    write(tmp_path / "a.txt", "new")
    assert oct(stat.S_IMODE((tmp_path / "a.txt").stat().st_mode)) == "0o640"


def test_a_place_that_takes_no_files_is_named_and_not_the_temporary_file() -> None:
    if not Path("/proc/self").exists():
        pytest.skip("no /proc")
    with pytest.raises(FileError, match=r"/proc/x\.md cannot be written \(.*\); give another place"):
        write(Path("/proc/x.md"), "1")


@pytest.mark.skipif(sys.platform != "linux", reason="a child is forked, and its files limited")
@pytest.mark.parametrize("writing", [atomic_file, atomic_folder])
def test_weights_that_do_not_fit_on_the_disk_are_an_error_of_the_disk(tmp_path: Path, writing: Callable) -> None:
    """safetensors reports it as an error of its own."""
    import resource

    numpy = pytest.importorskip("safetensors.numpy")
    if not (child := os.fork()):
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
            with writing(tmp_path / "target") as aside:
                numpy.save_file({"a": np.ones(10_000)}, aside / "w" if aside.is_dir() else aside)
        except (OSError, FileError) as error:
            code = 0 if "target" in str(error) and "File too large" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not list(tmp_path.iterdir())
