"""Atomic writing of files and folders: under a temporary name, flushed to disk, then renamed."""

import ctypes
import errno
import os
import re
import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from drift.errors import FileError

WINDOWS = os.name == "nt"
# A full disk, file size limit or quota: these errors do not name the file. Windows has no EDQUOT.
FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))

HERE, EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
OF_RUST = re.compile(r"\(os error (\d+)\)$")
TEMPORARY = re.compile(r"\..+-[0-9a-f]{32}(-old)?")


@contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary folder to fill. It replaces `path` if the block ends without an error."""
    target = Path(path)
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise FileError(f"{target} is a file or a link; give the name of a new folder, or of one to replace")
    _make_room(target)
    aside = target.with_name(f".{target.name}-{uuid.uuid4().hex}")
    old = aside.with_name(f"{aside.name}-old")
    aside.mkdir(mode=0o700)  # what is written may be private until it is complete
    try:
        with _system_errors(target):
            yield aside
        for file in aside.rglob("*"):
            _flush(file)
        _publish(aside, target, 0o777)
        _flush(aside)
        replaces = target.exists()
        if replaces and _exchange(aside, target):
            _flush(target.parent)
            return  # what was replaced is removed below
        if replaces:
            os.replace(target, old)
        try:
            os.replace(aside, target)
        except BaseException:
            if replaces:
                os.replace(old, target)
            raise
        _flush(target.parent)
        if replaces:
            shutil.rmtree(old)
    finally:
        if aside.exists():
            shutil.rmtree(aside)


@contextmanager
def atomic_file(path: str | os.PathLike[str], *, advice: str = "give another place") -> Iterator[Path]:
    """Yield a temporary name to write to. The file replaces `path` if the block ends without an error.

    advice: the end of the message if the file cannot be written: what the user can do.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    if target.is_dir():
        raise FileError(f"{path} is a folder; give the name of a file")
    _make_room(target, advice)
    aside = target.with_name(f".{target.name}-{uuid.uuid4().hex}")
    try:
        _create(aside)
        with _system_errors(target):
            yield aside
        if not aside.stat().st_size and target.exists() and target.stat().st_size:
            raise FileNotFoundError(errno.ENOENT, "nothing was written", str(target))
        _publish(aside, target)
        _flush(aside)
        os.replace(aside, target)
        _flush(target.parent)
    except OSError as error:
        if error.errno not in FULL and error.filename != str(aside):
            raise  # not an error of writing this file: something else in the block, or a block that wrote nothing
        raise FileError(f"{target} cannot be written ({error.strerror}); {advice}") from error
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def _system_errors(target: Path) -> Iterator[None]:
    """Turn errors of the disk that a library in Rust reports as its own, such as safetensors, into OSError.

    target: what is written, for the message.
    """
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        found = OF_RUST.search(str(error))
        if found is None:
            raise
        raise OSError(int(found[1]), os.strerror(int(found[1])), str(target)) from error


def is_temporary(name: str) -> bool:
    """Whether a name is one under which `atomic_file` and `atomic_folder` write; a killed process leaves such files."""
    return TEMPORARY.fullmatch(name) is not None


def _exchange(one: Path, other: Path) -> bool:
    """Swap the names of two folders in one step, so that no crash comes in between; False where that is impossible.

    Linux has a call for it, which Python does not offer; some file systems do not have it.
    """
    if sys.platform != "linux":
        return False
    try:
        swap = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # an old C library
        return False
    return bool(swap(HERE, os.fsencode(one), HERE, os.fsencode(other), EXCHANGE) == 0)


def _create(aside: Path) -> None:
    """An empty file that only its owner can read: what is written may be private until it is complete."""
    os.close(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _publish(aside: Path, target: Path, usual: int = 0o666) -> None:
    """Give a complete file or folder the permissions of the one it replaces, or the usual ones."""
    if WINDOWS:
        return
    try:
        mode = target.stat().st_mode & 0o777
    except FileNotFoundError:
        mode = usual & ~_umask()
    os.chmod(aside, mode)


def _umask() -> int:
    """The permissions that new files lack. Reading it sets it, so it is set back at once."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def check_inside(folder: Path) -> None:
    """Refuse a folder in which a link leads outside: one of other people must not open or replace the user's files."""
    whole = folder.resolve()
    for place, folders, files in os.walk(folder):
        for path in (Path(place, name) for name in (*folders, *files)):
            if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(whole):
                raise FileError(f"{path} is a link that leads out of {folder}; copy what it points to into the folder")


def expanded(path: str | os.PathLike[str]) -> Path:
    """A path with ~ and ~user replaced by home folders."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise FileError(f"{path}: {str(error).rstrip('.').lower()}; write the folder out") from error


def _make_room(target: Path, advice: str = "give another place") -> None:
    """Create the parent folders of a file or folder."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{target} cannot be written ({error.strerror}); {advice}") from error


def _flush(path: Path) -> None:
    """Flush a file, or the entries of a folder, from the system's buffers to disk."""
    # Windows cannot open a folder, and flushes a file only through a handle that may write.
    if WINDOWS and (path.is_dir() or not os.access(path, os.W_OK)):
        return
    handle = os.open(path, os.O_RDWR if WINDOWS else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
