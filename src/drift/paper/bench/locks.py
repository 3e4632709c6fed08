"""A lock on a file between processes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any


def _module(name: str) -> Any:
    """A module that not every system has, or None."""
    try:
        return import_module(name)
    except ImportError:
        return None


FCNTL, MSVCRT = _module("fcntl"), _module("msvcrt")  # Unix, Windows
WAIT = 0.1  # seconds between two attempts on Windows


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file, which is created if needed; wait for it if another process holds it.

    The system releases the lock if the process dies. Where Python has neither `fcntl` nor `msvcrt`, nothing is locked:
    two benches must not use the same folder there at the same time.
    """
    with path.open("w") as file:
        if FCNTL is not None:
            FCNTL.flock(file, FCNTL.LOCK_EX)  # released when the file is closed
            yield
        elif MSVCRT is not None:
            with _locked_on_windows(file):
                yield
        else:
            yield


@contextmanager
def _locked_on_windows(file: IO[str]) -> Iterator[None]:
    """Lock the first byte. The call fails at once if the lock is taken, so it is repeated."""
    while True:
        try:
            MSVCRT.locking(file.fileno(), MSVCRT.LK_NBLCK, 1)
            break
        except OSError:
            time.sleep(WAIT)
    try:
        yield
    finally:
        file.seek(0)
        MSVCRT.locking(file.fileno(), MSVCRT.LK_UNLCK, 1)
