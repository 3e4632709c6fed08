"""A lock on a folder that one process at a time may write."""

import os
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any

from drift.errors import FileError, StateError

try:
    fcntl: Any = import_module("fcntl")
except ImportError:  # Windows, which cannot lock folders: nothing is locked there
    fcntl = None

_HELD: set[tuple[int, int]] = set()  # folders that this process has locked: a search trains a run in its own folder


class FolderLock:
    """The right to write into a folder, for as long as a block runs.

        with FolderLock("run") as lock:
            lock.take(create=True)

    path: the folder; None locks nothing.

    The folder itself is locked, so no file is left behind, and the system releases the lock however the process ends.
    File systems that cannot lock folders, and Windows, go without.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self.path = None if path is None else Path(path)
        self._handle: int | None = None
        self._identity: tuple[int, int] | None = None

    def take(self, *, create: bool = False) -> None:
        """Lock the folder if it exists; StateError if another process has it. create: make the folder first."""
        if self.path is None or self._handle is not None:
            return
        try:
            if create:
                self.path.mkdir(parents=True, exist_ok=True)
            if fcntl is None or not self.path.is_dir():
                return
            handle = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise FileError(f"{self.path} cannot be written ({error.strerror}); give another folder") from error
        status = os.fstat(handle)
        identity = status.st_dev, status.st_ino
        try:
            if identity not in _HELD:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _HELD.add(identity)
                self._handle, self._identity = handle, identity
                return
        except BlockingIOError as error:
            os.close(handle)
            raise StateError(
                f"another process is writing to {self.path}; wait until it has ended, or give another folder"
            ) from error
        except OSError:  # a file system without such locks
            pass
        os.close(handle)

    def __enter__(self) -> "FolderLock":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handle is not None and self._identity is not None:
            _HELD.discard(self._identity)
            os.close(self._handle)
            self._handle = None
