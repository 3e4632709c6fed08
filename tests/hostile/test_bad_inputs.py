"""Every bad call of the table ends with exit code 2, one line, no file written and no code of a stranger run."""

from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.hostile.cases import FIT, NODES, TOKENS, every
from tests.hostile.newer_cases import CHECK, CURVE, newer
from tests.hostile.newest_cases import newest

GOOD = (FIT, NODES, TOKENS, "label {table} --rules {rules} --text body", "report {run}", CHECK, CURVE)
LONGEST = 2000  # characters of a line: names of files may be long, lists are cut
CASES = list(dict.fromkeys([*every(), *newer(), *newest()]))


def test_the_table_is_large() -> None:
    assert len(CASES) > 1300


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "base", [FIT, NODES, TOKENS, "label {table} --rules {rules} --text body", "report {run}", CHECK, CURVE]
)
def test_the_calls_are_good_without_their_fault(call: Call, places: dict[str, str], out: Path, base: str) -> None:
    """Otherwise the table would test that something else is wrong."""
    quick = " --set training.steps=1 --set training.initial_steps=1 --no-onnx" if base.startswith("fit") else ""
    code, _, err = call(*[_filled(part, {**places, "out": str(out)}) for part in (base + quick).split(" ")])
    assert code == 0, err


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_a_bad_call_is_one_line(
    call: Call, places: dict[str, str], out: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.chdir(out.parent)
    monkeypatch.setattr("drift.annotate.server.Server.run", _never)
    monkeypatch.setattr("drift.web.listening.Listener.run", _never)
    arguments = [_filled(part, {**places, "out": str(out)}) for part in case.split(" ")]
    code, _, err = call(*arguments)
    lines = [line for line in err.splitlines() if not line.startswith("warning: ")]
    assert code == 2, err
    assert len(lines) == 1, err
    assert lines[0].startswith("drift: ")
    assert len(lines[0]) < LONGEST
    assert not list(out.parent.iterdir())


def _filled(part: str, places: dict[str, str]) -> str:
    """A part of a command line with names of files in place of {name}; other braces stay."""
    for name, place in places.items():
        part = part.replace(f"{{{name}}}", place)
    return part


def _never(*_: object) -> None:
    raise AssertionError("a bad call of drift annotate opened its page")
