"""The journal of a labelling session: what was done, one JSON object per line, on disk before it counts as done.

The file is only appended to. A line that a crash cut off is removed when the journal is opened again: it was never
reported as saved. Any other damage is an error.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from drift.errors import FileError, StateError

FORMAT = "drift-annotate/1"


class Journal:
    """A file that one process at a time may append to.

    path: the file; it is created if it does not exist (`is_new`). header: describes what is labelled. A journal with
    another header belongs to other texts, and is refused.
    """

    def __init__(self, path: str | os.PathLike[str], header: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self._lock = _Lock(self.path.with_name(f".{self.path.name}.lock"))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.take()
            self.is_new = not self.path.exists()
            self.events = self._read({"format": FORMAT, **header})
            self._file = self.path.open("ab", buffering=0)
            if not self.path.stat().st_size:
                self._write({"format": FORMAT, **header})
                _flush_folder(self.path.parent)
        except OSError as error:
            self._lock.release()
            if isinstance(error, FileError):
                raise
            raise FileError(f"{self.path} cannot be written ({error.strerror}); give another place with -o") from error
        except BaseException:
            self._lock.release()
            raise

    def append(self, event: Mapping[str, Any]) -> None:
        """Add an event. When this returns, the event is on disk and survives a crash of the process or the machine."""
        try:
            self._write(event)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise FileError(f"{self.path} cannot be written ({reason}); the last label is not saved") from error

    def close(self) -> None:
        """Close the file and let others open it."""
        self._file.close()
        self._lock.release()

    def remove(self) -> None:
        """Close the journal, and delete the file and its lock: for a session that could not begin."""
        self.close()  # first: Windows deletes no open file
        self.path.unlink(missing_ok=True)
        self._lock.path.unlink(missing_ok=True)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, event: Mapping[str, Any]) -> None:
        line = json.dumps(event, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        before = os.fstat(self._file.fileno()).st_size
        try:
            written = 0
            while written < len(line):
                written += self._file.write(line[written:]) or 0
            os.fsync(self._file.fileno())
        except OSError:
            with suppress(OSError):  # a full disk: half a line in the middle would make the file unreadable
                self._file.truncate(before)
            raise

    def _read(self, header: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The events so far; the end of a line that was cut off is removed."""
        if not self.path.exists():
            return []
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        lines = list(self._parsed(content[:whole]))
        if whole < len(content):
            with self.path.open("r+b") as file:
                file.truncate(whole)
                os.fsync(file.fileno())
        if not lines:
            return []
        if lines[0].get("format") != FORMAT:
            raise FileError(f"{self.path} is not a journal of drift annotate; give another place with -o")
        if differs := [name for name, value in header.items() if lines[0].get(name) != value]:
            raise StateError(
                f"{self.path} is a journal of other texts (another {differs[0]}); put the table back as it was, or"
                " give another place with -o"
            )
        return lines[1:]

    def _parsed(self, content: bytes) -> Iterator[dict[str, Any]]:
        for number, line in enumerate(content.splitlines(), 1):
            try:
                event = json.loads(line)
            except ValueError as error:
                raise FileError(f"{self.path}:{number} is damaged ({error}); restore the file from a copy") from error
            if not isinstance(event, dict):
                raise FileError(f"{self.path}:{number} is damaged (not an object); restore the file from a copy")
            yield event


class _Lock:
    """A lock on a file beside the journal. The system releases it when the process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def take(self) -> None:
        file = self.path.open("a+b")
        try:
            _lock(file)
        except OSError as error:
            file.seek(0)
            owner = file.read(20).decode("ascii", "replace").strip()
            file.close()
            raise StateError(
                f"another drift annotate{f' (process {owner})' if owner else ''} works on these labels;"
                " use its page, or stop it first"
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()).encode())
        file.flush()
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            self._file.close()  # the file stays: another process may be waiting for it
            self._file = None


def _lock(file: IO[bytes]) -> None:
    """Take the lock, or raise OSError at once."""
    if os.name == "nt":
        import msvcrt

        file.seek(1 << 30)  # beyond the content, which others may read
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _flush_folder(folder: Path) -> None:
    """Write the entry of a new file to disk. Windows cannot do so."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
