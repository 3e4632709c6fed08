"""A bar at a terminal, and not a byte anywhere else."""

import os
import pty
import subprocess
import sys

import pytest

from drift.training.progress import progress

CODE = """
import sys
from drift.training.progress import progress
with progress("Counting", 5, done=2, shown=SHOWN) as tick:
    for count in range(3):
        tick(f"loss 0.{count}")
print("rich" in sys.modules)
"""


def run_at_a_terminal(shown: bool) -> tuple[str, str]:
    """Standard output, and what a terminal on standard error received."""
    terminal, end = pty.openpty()
    code = CODE.replace("SHOWN", str(shown))
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=end, text=True, check=True, env=environment
    )
    os.close(end)
    received = b""
    try:
        while part := os.read(terminal, 65536):
            received += part
    except OSError:  # how Linux says that the other end is closed
        pass
    finally:
        os.close(terminal)
    return done.stdout.strip(), received.decode()


@pytest.mark.parametrize("shown", [True, False])
def test_a_pipe_gets_nothing(shown: bool, capfd: pytest.CaptureFixture[str]) -> None:
    with progress("Counting", 3, shown=shown) as tick:
        for _ in range(5):  # more than announced is no fault
            tick("loss 0.1")
    assert capfd.readouterr() == ("", "")


def test_a_terminal_gets_a_bar() -> None:
    out, received = run_at_a_terminal(shown=True)
    assert "Counting" in received
    assert "5/5" in received
    assert "loss 0.2" in received
    assert out == "True"


def test_a_terminal_gets_nothing_if_it_is_not_wanted() -> None:
    assert run_at_a_terminal(shown=False) == ("False", "")


def test_a_fault_in_the_block_comes_through(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), progress("Counting", 3):
        raise ZeroDivisionError
    assert capfd.readouterr() == ("", "")
