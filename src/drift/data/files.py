"""Files that are whole or not there: written aside, flushed to disk, then renamed."""

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from drift.errors import FileError

FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)  # a write fails without the name of its file


@contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Fill a temporary folder in the block; it takes the place of `path` when the block ends, and only then."""
    target = Path(path)
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise FileError(f"{target} is a file or a link; give the name of a new folder, or of one to replace")
    _make_room(target)
    aside = target.with_name(f".{target.name}-{uuid.uuid4().hex}")
    old = aside.with_name(f"{aside.name}-old")
    aside.mkdir()  # not mkdtemp, which lets nobody else read the folder
    try:
        yield aside
        for file in aside.rglob("*"):
            _flush(file)
        _flush(aside)
        replaces = target.exists()
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
    """Write to a temporary name in the block; the file takes the place of `path` when the block ends, and only then.

    advice: what to do where that cannot be, to end a message with.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    if target.is_dir():
        raise FileError(f"{path} is a folder; give the name of a file")
    _make_room(target, advice)
    aside = target.with_name(f".{target.name}-{uuid.uuid4().hex}")
    try:
        yield aside
        _flush(aside)
        os.replace(aside, target)
        _flush(target.parent)
    except OSError as error:
        if error.errno not in FULL and (error.filename != str(aside) or error.errno == errno.ENOENT):
            raise  # of something else that the block does, or does not
        raise FileError(f"{target} cannot be written ({error.strerror}); {advice}") from error
    finally:
        aside.unlink(missing_ok=True)


def _make_room(target: Path, advice: str = "give another place") -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{target} cannot be written ({error.strerror}); {advice}") from error


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
