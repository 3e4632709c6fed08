"""Stopped at any moment, by kill -9 or a full disk: nothing half-written, nothing lost, and then the same bits.

One harness for everything that writes (`writers.py`). DRIFT_KILLS is the number of stops of each (`make crashes`: 20).
"""

import ctypes
import os
import random
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from drift.cli.failures import failure
from tests.hostile.writers import WRITERS, emptied

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="children are forked"),
    pytest.mark.filterwarnings("ignore"),
]
STOPS = int(os.environ.get("DRIFT_KILLS", "2"))
# Those of several seconds are stopped by full disks in `make crashes` only.
LONG = ("fit of texts, with its cache", "tune", "bench")
QUICK_FIRST = [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in WRITERS]
PAGE = 4096
DONE, DEFECT, ONE_LINE = 0, 1, 2


def forked(action: Callable[[], object], *, largest_file: int | None = None) -> int:
    """Start an action in a child; its process id. It ends with 0, with 2 after an error of one line, or with 1.

    largest_file: bytes; more cannot be written into one file, as on a full disk.
    """
    if pid := os.fork():
        return pid
    code = DEFECT
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        warnings.simplefilter("ignore")
        if largest_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
        try:
            action()
            code = DONE
        except BaseException as error:
            told = failure(error)
            code = ONE_LINE if told is not None and told.line and "\n" not in told.line else DEFECT
    finally:
        os._exit(code)


def ended(pid: int, seconds: float = 120.0) -> int | None:
    """The exit code of a child if it ends in this time; otherwise it is killed, and None returned."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


@pytest.mark.parametrize("name", WRITERS)
def test_kill_9_at_a_random_moment(tmp_path: Path, place: Path, name: str) -> None:
    writer = WRITERS[name](tmp_path, place)
    begin = time.monotonic()
    assert ended(forked(writer.action)) == DONE
    duration = time.monotonic() - begin
    writer.at_end()
    emptied(place)
    generator, killed = random.Random(0), 0
    for _ in range(10 * STOPS):
        code = ended(forked(writer.action), generator.uniform(0, duration))
        assert code in (None, DONE)
        killed += code is None
        writer.check()
        if code == DONE:  # before the kill
            emptied(place)
        if killed == STOPS:
            break
    assert killed
    print(f"\n{name}: killed {killed} times")
    assert ended(forked(writer.action)) == DONE
    writer.at_end()


class Disk:
    """A file system in memory whose size can be changed. Only root can mount one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._libc = ctypes.CDLL(None, use_errno=True)

    def mount(self, size: int | str, *, again: bool = False, read_only: bool = False) -> bool:
        """size: bytes, or a share of the memory such as "10%"."""
        flags = (32 if again else 0) | (1 if read_only else 0)  # MS_REMOUNT, MS_RDONLY
        options = f"size={size}".encode()
        return self._libc.mount(b"tmpfs", os.fsencode(self.folder), b"tmpfs", flags, options) == 0

    def unmount(self) -> None:
        self._libc.umount2(os.fsencode(self.folder), 2)  # MNT_DETACH


@pytest.fixture
def disk(place: Path) -> Iterator[Disk]:
    mounted = Disk(place)
    if not mounted.mount("10%"):
        pytest.skip("file systems can be mounted by root only")
    try:
        yield mounted
    finally:
        mounted.unmount()


@pytest.mark.parametrize("name", QUICK_FIRST)
def test_a_full_disk(tmp_path: Path, disk: Disk, name: str) -> None:
    """The disk is full after the first page, after all but the last, and at steps in between."""
    place = disk.folder
    writer = WRITERS[name](tmp_path, place)
    assert ended(forked(writer.action)) == DONE
    used = os.statvfs(place)
    pages = (used.f_blocks - used.f_bfree) * used.f_frsize // PAGE
    full = 0
    for stop in range(STOPS):
        emptied(place)
        assert disk.mount(PAGE * (1 + (pages - 1) * stop // STOPS), again=True)
        code = ended(forked(writer.action))
        assert code in (DONE, ONE_LINE)
        full += code == ONE_LINE
        writer.check()
        assert disk.mount("10%", again=True)
        assert ended(forked(writer.action)) == DONE
        writer.at_end()
    print(f"\n{name}: full {full} times of {STOPS}")
    assert full


@pytest.mark.parametrize("name", QUICK_FIRST)
def test_a_disk_that_can_only_be_read(tmp_path: Path, disk: Disk, name: str) -> None:
    writer = WRITERS[name](tmp_path, disk.folder)
    assert disk.mount("10%", again=True, read_only=True)
    assert ended(forked(writer.action)) == ONE_LINE
    assert disk.mount("10%", again=True)
    assert not list(disk.folder.iterdir())


@pytest.mark.parametrize("name", QUICK_FIRST)
def test_a_limit_of_the_size_of_files(tmp_path: Path, place: Path, name: str) -> None:
    """As a quota; nobody has to be root for it."""
    writer = WRITERS[name](tmp_path, place)
    assert ended(forked(writer.action)) == DONE
    largest = max(file.stat().st_size for file in place.rglob("*") if file.is_file())
    for stop in range(STOPS):
        emptied(place)
        assert ended(forked(writer.action, largest_file=largest * stop // STOPS)) in (DONE, ONE_LINE)
        writer.check()
        assert ended(forked(writer.action)) == DONE
        writer.at_end()
