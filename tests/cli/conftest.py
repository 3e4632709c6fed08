"""The `drift` command, called in the process of the tests."""

import re
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


def written_file(result: tuple[int, str, str]) -> str:
    """The file that `drift predict` says it has written, on its last line; it also says how much memory it took."""
    code, out, err = result
    assert (code, err) == (0, "")
    found = re.fullmatch(r"Written: (.+) \(peak memory \d+\.\d GB\)", out.splitlines()[-1])
    assert found is not None, out
    return found[1]
