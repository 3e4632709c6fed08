"""However a command fails, the user sees one line and the right exit code; only defects keep their traceback."""

import errno
from pathlib import Path

import numpy as np
import pytest
import torch
import typer

from drift.cli.failures import NUMBERS, failure
from drift.errors import DriftError, Interrupted
from tests.cli.conftest import Call


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["frobnicate"], "drift: No such command 'frobnicate'; see drift --help"),
        (["fit"], "drift: Missing option '--out' / '-o'; see drift fit --help"),
        (["fit", "x", "--zzzz", "-o", "y"], "drift: No such option: --zzzz; see drift fit --help"),
        (["demo", "moons", "extra"], "drift: Got unexpected extra argument(s) (extra); see drift demo --help"),
        (["cache", "nope"], "drift: No such command 'nope'; see drift cache --help"),
        (["predict", "run"], "drift: Missing argument 'TABLE'; see drift predict --help"),
    ],
)
def test_a_wrong_call_is_one_line(call: Call, arguments: list[str], line: str) -> None:
    code, out, err = call(*arguments)
    assert (code, out, err) == (2, "", f"{line}\n")


@pytest.mark.parametrize("name", NUMBERS)
def test_an_environment_variable_that_is_no_number_is_named(
    call: Call, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "two")
    code, _, err = call("methods")
    message = f"drift: the environment variable {name} is 'two', not a whole number; unset or correct it\n"
    assert (code, err) == (2, message)


def allocation(allocate: object) -> BaseException:
    try:
        allocate()  # type: ignore[operator]
    except (MemoryError, RuntimeError) as error:
        return error
    pytest.skip("this machine promises any memory")


def test_memory_that_cannot_be_had_is_one_line_whoever_asks() -> None:
    for allocate in (lambda: torch.empty(2**46), lambda: np.empty(2**46), lambda: bytearray(2**60)):
        told = failure(allocation(allocate))
        assert told is not None
        assert told.code == 2
        assert told.line.startswith("not enough memory")


def test_every_other_failure_has_its_code() -> None:
    told = failure(OSError(errno.ENOSPC, "No space left on device", "/x/y"))
    assert told is not None
    assert (told.code, told.line.split(";")[0]) == (2, "/x/y: No space left on device")
    assert failure(SystemExit(7)).code == 2  # type: ignore[union-attr]
    assert failure(typer.Abort()).code == 1  # type: ignore[union-attr]
    assert failure(Interrupted("stopped")).code == 130  # type: ignore[union-attr]
    assert failure(DriftError("x")).line == "x"  # type: ignore[union-attr]


@pytest.mark.parametrize("defect", [RuntimeError("shapes differ"), KeyError("x"), ValueError("x"), AssertionError()])
def test_a_defect_keeps_its_traceback(defect: Exception) -> None:
    assert failure(defect) is None


@pytest.mark.parametrize("name", ["a" * 300, "a" * 5000])
@pytest.mark.parametrize("form", ["fit {}.csv -o out", "fit table.csv -o {}", "predict {} t.csv -o o.csv", "report {}"])
def test_a_name_that_is_too_long_is_one_line(call: Call, tmp_path: Path, name: str, form: str) -> None:
    (tmp_path / "table.csv").write_text("text,label\na b,x\nc d,y\n")
    arguments = [part.replace("table", str(tmp_path / "table")).format(name) for part in form.split()]
    code, _, err = call(*arguments)
    assert code == 2
    assert err.count("\n") == 1
    assert err.startswith("drift: ")
