"""`drift annotate` in a process of its own, as people start it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest


class Command:
    """The command in a folder that has an encoder. options: of the command."""

    def __init__(self, folder: Path, options: list[str]) -> None:
        self.folder, self.options = folder, options
        self.start()

    def start(self) -> None:
        more = ["--model", "encoder", "--no-browser", "--quiet"]
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "drift", "annotate", *self.options, *more],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "DRIFT_CACHE": str(self.folder / "cache")},
        )
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if found := re.match(r"Open (http://127\.0\.0\.1:\d+/\S+/)", line):
                self.url = found[1]
                return
        pytest.fail("".join(lines))

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
