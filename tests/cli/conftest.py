"""The `drift` command, called in the process of the tests."""

import sys
from collections.abc import Callable

import pytest

from drift.cli.main import run

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    """The command in this process: exit code, output and errors."""

    def drift_command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["drift", *arguments])
        with pytest.raises(SystemExit) as end:
            run()
        return end.value.code or 0, *capfd.readouterr()

    return drift_command
