"""The end of a session: the labels as a table, and the final run on it."""

import shlex
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drift.annotate.session import Annotation
from drift.errors import FileError

LINES_KEPT = 12  # of the final run's output


def write_labels(session: Annotation, out: str | Path) -> list[str]:
    """Write every row with its label, flag and note; return the options with which `drift fit` reads them."""
    labels = session.labels()
    with session.lock:
        flags, notes = set(session.state.flags), dict(session.state.notes)
    return session.pool.write(Path(out), labels, flags, notes)


@dataclass
class Finish:
    """Writes the labels and trains the final run in another process, so that the page goes on answering.

    out: the table to write. run: the folder of the final run. options: further options of `drift fit`.
    """

    session: Annotation
    out: Path
    run: Path
    options: Sequence[str] = ()
    _state: str = "open"
    _error: str = ""
    _lines: list[str] = field(default_factory=list)
    _thread: threading.Thread | None = None

    def start(self, *, train: bool = True) -> dict[str, Any]:
        """Write the labels, and begin to train if that is wanted."""
        if self._thread is not None and self._thread.is_alive():
            return self.status()
        columns = write_labels(self.session, self.out)
        self._state, self._error, self._lines = "written", "", []
        if train:
            self._folder = _new_folder(self.run)
            command = ["fit", str(self.out), *columns, "-o", str(self._folder), *self.options]
            self._state, self._command = "training", command
            self._thread = threading.Thread(target=self._train, args=(command,), daemon=True)
            self._thread.start()
        return self.status()

    def status(self) -> dict[str, Any]:
        """What has been done, and the commands that use it."""
        labels = len(self.session.state.marks)
        found: dict[str, Any] = {"state": self._state, "out": str(self.out), "labels": labels, "error": self._error}
        if self._state in ("training", "done", "failed"):
            found |= {"run": str(self._folder), "lines": self._lines[-LINES_KEPT:]}
            found["fit"] = "drift " + shlex.join(self._command)
            ending = self.out.name.removeprefix(self.out.name.split(".")[0])
            found["predict"] = f"drift predict {shlex.quote(str(self._folder))} new{ending} -o predicted{ending}"
        return found

    def report(self) -> bytes | None:
        """The page of the final run, when there is one."""
        try:
            return (self._folder / "report.html").read_bytes() if self._state == "done" else None
        except OSError:
            return None

    def wait(self) -> None:
        """Wait for the final run."""
        if self._thread is not None:
            self._thread.join()

    def _train(self, command: list[str]) -> None:
        done = subprocess.Popen(
            [sys.executable, "-m", "drift", *command, "--quiet"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.stdout is not None
        for line in done.stdout:
            self._lines.append(line.rstrip())
        failed = done.wait() != 0
        self._error = (self._lines[-1] if self._lines else "drift fit failed") if failed else ""
        self._state = "failed" if failed else "done"


def _new_folder(wanted: Path) -> Path:
    """A folder that does not exist: the wanted one, or that name with a number."""
    for number in range(1, 1000):
        folder = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        if not folder.exists():
            return folder
    raise FileError(f"{wanted} and 999 folders like it exist; move some away")
