"""`drift compare` as people run it."""

from pathlib import Path

from tests.cli.conftest import Call
from tests.runs.test_comparing import OURS, THEIRS, written


def test_a_table_at_the_terminal_and_in_a_file(call: Call, tmp_path: Path) -> None:
    runs = [str(written(tmp_path / "plain", THEIRS, method="uda")), str(written(tmp_path / "ours", OURS))]
    code, output, errors = call("compare", *runs, "--paired-t", "-o", str(tmp_path / "table.tex"))
    assert (code, errors) == (0, "")
    assert f"{runs[1]}: drift" in output
    assert "90.00 ± 1.00" in output
    assert "3 pairs" in output
    assert r"\toprule" in (tmp_path / "table.tex").read_text()


def test_the_baseline_is_an_option(call: Call, tmp_path: Path) -> None:
    plain, ours = written(tmp_path / "plain", THEIRS), written(tmp_path / "ours", OURS)
    code, output, _ = call("compare", str(plain), str(ours), "--baseline", str(ours))
    assert code == 0
    assert f"− {ours}: drift" in output


def test_mistakes_are_one_line(call: Call, tmp_path: Path) -> None:
    good = str(written(tmp_path / "good", OURS))
    for arguments, told in (
        ([str(tmp_path / "nothing")], "is not there; give the folder of a run"),
        ([good, "-o", str(tmp_path / "table.doc")], "tables are written as .md, .tex, .csv"),
        ([good, str(written(tmp_path / "one", [0.5], method="uda")), "--paired-t"], "leave out --paired-t"),
    ):
        code, output, errors = call("compare", *arguments)
        assert (code, output, errors.count("\n")) == (2, "", 1)
        assert told in errors
