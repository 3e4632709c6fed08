"""Files that are whole or not there: written aside, flushed to disk, then renamed."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Fill a temporary folder in the block; it takes the place of `path` when the block ends, and only then."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield aside
        for file in aside.rglob("*"):
            _flush(file)
        _flush(aside)
        if target.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
            os.replace(target, old)  # rename onto an empty folder
            os.replace(aside, target)
            shutil.rmtree(old)
        else:
            os.replace(aside, target)
        _flush(target.parent)
    finally:
        if aside.exists():
            shutil.rmtree(aside)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
