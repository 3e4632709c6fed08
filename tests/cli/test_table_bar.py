"""A bar over a table counts its rows at a terminal, and leaves everything else alone."""

import sys
from pathlib import Path

import pytest

from drift.cli.table_bar import table_bar


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text("text\n" + "the team\n" * 1100)
    return tmp_path / "t.csv"


def test_rows_are_counted_at_a_terminal_and_the_last_piece_is_not_a_whole_one(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with table_bar("Predicting", table, 512, encoding="utf-8", quiet=False) as tick:
        for _ in range(3):
            tick()
    out, err = capsys.readouterr()
    assert out == ""
    assert "Predicting" in err
    assert "3/3" in err
    assert "1,100 of 1,100 rows" in err


@pytest.mark.parametrize("quiet", [True, False])
def test_unseen_it_writes_nothing_and_reads_nothing(
    quiet: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if quiet:  # else a pipe
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with table_bar("Predicting", tmp_path / "not there.csv", 512, encoding="utf-8", quiet=quiet) as tick:
        tick()
    assert capsys.readouterr() == ("", "")
