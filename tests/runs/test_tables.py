"""Tables: what is best, tested and not run, and the same in every form they are written in."""

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from scipy import stats

from drift.errors import ConfigError
from drift.runs.comparing.statistics import TTest
from drift.runs.comparing.tables import (
    LATEX,
    Cell,
    ScoreTable,
    as_csv,
    as_latex,
    as_markdown,
    lines,
    show_table,
    write_table,
)

START = {0: 0.80, 1: 0.82, 2: 0.79}
DRIFT = {0: 0.85, 1: 0.84, 2: 0.86, 3: 0.99}  # seed 3 has no pair


def table(**changes: object) -> ScoreTable:
    rows = {
        "start": {"news 30": Cell(START, paper=85.1), "films": Cell({0: 0.7})},
        "DRIFT": {"news 30": Cell(DRIFT, paper=87.0), "films": Cell(hours=2.5)},
        "UDA": {"films": Cell({0: 0.6})},
    }
    below = {"title": "ScoreTable 2", "columns": ["news 30", "films"], "rows": rows, "baseline": "start"}
    return ScoreTable(**{**below, "budgets": {"news 30": "120 + 500"}, "notes": ["dev: 500"], **changes})  # type: ignore


def by_heading(shown: ScoreTable) -> dict[str, list[str]]:
    return {line.heading: line.texts for line in lines(shown) if not line.detail}


def printed(shown: ScoreTable, **settings: object) -> str:
    file = io.StringIO()
    show_table(shown, Console(file=file, **settings))  # type: ignore[arg-type]
    return file.getvalue()


def test_scores_budgets_what_was_not_run_and_what_does_not_exist() -> None:
    assert by_heading(table()) == {
        "gold labels": ["120 + 500", ""],
        "start": ["80.33 ± 1.53", "70.00"],
        "DRIFT": ["88.50 ± 7.05", "not run (about 2.5 h)"],
        "UDA": ["", "60.00"],
    }
    assert Cell().text() == "not run"


def test_a_mean_of_some_seeds_says_so_and_is_never_the_best() -> None:
    some = Cell({0: 0.9}, wanted=3)
    shown = table(rows={"start": {"films": Cell({0: 0.7})}, "DRIFT": {"films": some}, "UDA": {"films": Cell({0: 0.6})}})
    assert by_heading(shown)["DRIFT"] == ["", "90.00 (1 of 3 seeds)"]
    assert [shown.is_best(row, "films") for row in shown.rows] == [True, False, False]


def test_rows_that_are_no_rivals_are_never_the_best() -> None:
    assert table().is_best("DRIFT", "news 30")
    assert table(apart=["DRIFT"]).is_best("DRIFT", "news 30") is False


def test_seeds_that_mean_other_rows_are_no_pairs() -> None:
    theirs = {seed: score - 0.1 for seed, score in DRIFT.items()}
    cells = {"start": {"films": Cell(theirs)}, "DRIFT": {"films": Cell(DRIFT, rows_by_seed=True)}}
    found = table(rows=cells).test("DRIFT", "films")
    expected = stats.ttest_ind(list(DRIFT.values()), list(theirs.values()), equal_var=False)
    assert found is not None
    assert (found.pairs, found.p) == (0, pytest.approx(expected.pvalue))
    cells["start"]["films"] = Cell(theirs, rows_by_seed=True)
    paired = table(rows=cells).test("DRIFT", "films")
    assert paired is not None
    assert paired.pairs == 4


def test_a_row_is_tested_on_the_seeds_it_shares_with_the_baseline() -> None:
    found = table().test("DRIFT", "news 30")
    expected = stats.ttest_rel([DRIFT[seed] for seed in START], list(START.values()))
    assert found is not None
    assert found.pairs == 3
    assert found.p == pytest.approx(expected.pvalue, rel=1e-12)
    assert "  − start" in printed(table())
    assert f"+4.67 ± 1.45, p = {expected.pvalue:.3f}, 3 pairs" in printed(table())


@pytest.mark.parametrize(("row", "column"), [("start", "news 30"), ("DRIFT", "films"), ("UDA", "films")])
def test_the_baseline_itself_one_seed_and_none_are_not_tested(row: str, column: str) -> None:
    assert table().test(row, column) is None


def test_tests_that_are_given_take_the_place_of_paired_ones() -> None:
    welch = TTest(0.05, 0.01, 5.0, 0.0004, 0)
    shown = table(tests={("UDA", "films"): welch})
    assert shown.test("DRIFT", "news 30") is None
    assert "+5.00 ± 1.00, p < 0.001, unpaired" in printed(shown)


def test_the_best_of_a_column_is_bold_and_equal_as_printed_is_equal() -> None:
    rows = {name: {"a": Cell({0: score})} for name, score in {"x": 0.9, "y": 0.900001, "z": 0.8}.items()}
    tied = table(rows=rows, columns=["a"], baseline=None)
    assert [tied.is_best(row, "a") for row in rows] == [True, True, False]
    alone = table(rows={"x": {"a": Cell({0: 0.9})}, "y": {"a": Cell(hours=1)}}, columns=["a"], baseline=None)
    assert not alone.is_best("x", "a")
    assert "**88.50 ± 7.05**" in as_markdown(table())
    assert r"\textbf{88.50 $\pm$ 7.05}" in as_latex(table())
    assert "\x1b[1m88.50 ± 7.05" in printed(table(), force_terminal=True, width=200)


def test_the_papers_figures_stand_below_ours_only_where_there_are_any() -> None:
    below = [line.texts for line in lines(table()) if line.heading == "in the paper"]
    assert below == [["85.10", ""], ["87.00", ""]]


def test_an_unknown_baseline_is_refused() -> None:
    with pytest.raises(ConfigError, match="no row 'uda' to test against; rows are start, DRIFT, UDA"):
        table(baseline="uda")


def test_csv_has_a_line_a_cell_and_numbers_that_read_back() -> None:
    found = {(line["method"], line["column"]): line for line in csv.DictReader(io.StringIO(as_csv(table())))}
    assert set(found) == {("start", "news 30"), ("start", "films"), ("DRIFT", "news 30"), ("DRIFT", "films")} | {
        ("UDA", "films")
    }
    ours = found["DRIFT", "news 30"]
    assert float(ours["mean"]) == pytest.approx(100 * np.mean(list(DRIFT.values())), rel=1e-12)
    assert float(ours["deviation"]) == pytest.approx(100 * np.std(list(DRIFT.values()), ddof=1), rel=1e-12)
    assert (ours["seeds"], ours["pairs"], ours["baseline"], ours["gold_labels"]) == ("4", "3", "start", "120 + 500")
    missing = found["DRIFT", "films"]
    assert (missing["seeds"], missing["mean"], missing["hours"], missing["p"]) == ("0", "", "2.5", "")


def test_latex_is_a_booktabs_table_with_as_many_columns_in_every_line() -> None:
    body = as_latex(table())
    assert r"\begin{tabular}{lrr}" in body
    assert all(rule in body for rule in (r"\toprule", r"\midrule", r"\bottomrule"))
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 1 + len(list(lines(table())))
    assert {line.count(" & ") for line in rows} == {2}


ANY_TEXT = st.text(max_size=12) | st.text(alphabet="\\|&%$#_{}~^*`<>[]\n ±α", max_size=12)


@given(ANY_TEXT, ANY_TEXT)
def test_names_never_break_a_table(row: str, column: str) -> None:
    shown = table(rows={row: {column: Cell({0: 0.5})}}, columns=[column], baseline=None, notes=[row], title=column)
    unescaped = [re.sub(r"\\.", "", line) for line in as_markdown(shown).split("\n")]
    assert [line.count("|") for line in unescaped if line.startswith("|")] == [3, 3, 3, 3]
    line = next(line for line in as_latex(shown).split("\n") if "50.00" in line)
    ours = line.removesuffix(r" & 50.00 \\")
    for written in sorted(LATEX.values(), key=len, reverse=True):
        ours = ours.replace(written, "")
    assert not set(ours) & set("\\&%$#_{}~^")
    assert next(csv.DictReader(io.StringIO(as_csv(shown), newline="")))["method"] == row
    assert "50.00" in printed(shown)


def test_marks_that_mean_something_to_who_reads_the_file_do_not() -> None:
    shown = ScoreTable("t", ["c"], {"*a&lt;b ~~x~~ $y$": {"c": Cell({0: 0.5})}})
    assert r"| \*a\&lt;b \~\~x\~\~ \$y\$ |" in as_markdown(shown)
    assert r"{*}a\&lt;b" in as_latex(shown)  # a bare star would belong to the break before


@pytest.mark.parametrize("ending", [".md", ".tex", ".csv"])
def test_a_file_is_written_by_its_ending_over_what_was_there(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "deep" / f"table{ending}"
    for _ in range(2):
        assert write_table(table(), path) == path
    assert "DRIFT" in path.read_text(encoding="utf-8")
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_another_ending_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"table\.xls: tables are written as \.md, \.tex, \.csv; give a file"):
        write_table(table(), tmp_path / "table.xls")
    assert not list(tmp_path.iterdir())
