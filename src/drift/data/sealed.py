"""Files that end with a checksum of their content, and are read only if it fits and their owner is trusted.

The checksum finds files that were damaged, or changed by hand. It is no signature: whoever may write into the folder as
the same user can write a fitting one.
"""

import hashlib
import os
import stat
import warnings
from pathlib import Path
from typing import BinaryIO

MARK = b"drift-sha256/1\0\0"
SIZE = len(MARK) + hashlib.sha256().digest_size  # of the end. Readers of .npy and Arrow streams do not look at it
BLOCK = 2**20  # bytes in memory at a time


def seal(path: Path) -> None:
    """Append a checksum to a file that is complete."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        digest = _digest(file, size)
        file.seek(0, os.SEEK_END)
        file.write(MARK + digest)


def is_sealed(path: Path) -> bool:
    """Whether a file can be trusted: the owner is this user or root, not everybody may write it, the checksum fits.

    A warning says what is wrong. A file that is missing or was cut short gives none.
    """
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return False
            if reason := _not_trusted(status):
                return _refused(path, reason)
            file.seek(max(status.st_size - SIZE, 0))
            end = file.read()
            if len(end) != SIZE or not end.startswith(MARK):
                return False
            file.seek(0)
            if _digest(file, status.st_size - SIZE) != end[len(MARK) :]:
                return _refused(path, "was changed since it was written")
    except OSError:
        return False
    return True


def sealed_content(path: Path) -> bytes | None:
    """The content of a file; None if it cannot be trusted."""
    return path.read_bytes()[:-SIZE] if is_sealed(path) else None


def is_owned(path: Path) -> bool:
    """Whether the owner of a file is this user or root, and not everybody may write it; if not, a warning says so."""
    try:
        reason = _not_trusted(path.stat())
    except OSError:
        return False
    return not reason or _refused(path, reason)


def _digest(file: BinaryIO, size: int) -> bytes:
    """The checksum of the first bytes of a file."""
    digest = hashlib.sha256()
    while size and (block := file.read(min(BLOCK, size))):
        digest.update(block)
        size -= len(block)
    return digest.digest()


def _not_trusted(status: os.stat_result) -> str:
    """Why another user may have written a file; empty if nobody else could. Windows has no such owners."""
    if os.name == "nt":
        return ""
    if status.st_uid not in (os.getuid(), 0):
        return f"belongs to another user (id {status.st_uid})"
    return "may be written by everybody" if status.st_mode & stat.S_IWOTH else ""


def _refused(path: Path, reason: str) -> bool:
    warnings.warn(f"{path}, a file of the cache, {reason}; it is not used", stacklevel=4)
    return False
