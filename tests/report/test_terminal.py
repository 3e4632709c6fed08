"""Tables in narrow terminals: nothing is cut in a number, nothing is lost, and every line fits."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from drift.cli.show import show_table
from drift.report.terminal import column_blocks, fitted, shortened
from drift.runs.comparing.tables import Cell, ScoreTable
from drift.runs.comparing.tables import show_table as show_scores

TYPES = ["PERSON", "ORGANIZATION", "LOCATION", "PRODUCT", "EVENT", "WORK_OF_ART", "LAW", "LANGUAGE", "DATE", "QUANTITY"]
HEADINGS = ["rule", "votes for", "coverage", "overlap", "conflict", "spans", "precision", "recall", "F1"]
NUMBERS = ["12.3%", "1.2%", "0.4%", "1,234", "85.3% of 1,234", "44.2% of 2,345", "58.2%"]
ROWS = [[f"list_of_{name.lower()}s", name, *NUMBERS] for name in TYPES]
ROWS += [["together", ", ".join(TYPES), *NUMBERS], ["", "PERSON", *NUMBERS]]


def printed(width: int) -> str:
    file = io.StringIO()
    show_table(HEADINGS, ROWS, Console(file=file, force_terminal=True, width=width, color_system=None))
    return file.getvalue()


@pytest.mark.parametrize("width", [80, 100])
def test_ten_types_are_one_line_each(width: int) -> None:
    lines = printed(width).splitlines()
    assert max(map(len, lines)) <= width
    for name in TYPES:
        assert sum(line.startswith(f"list_of_{name.lower()}s") for line in lines) == 2  # one per part
    assert all(number.split(" of ")[0] in " ".join(lines) for number in NUMBERS)
    assert "… (10)" in printed(width)


def test_a_wide_terminal_shows_everything_at_once() -> None:
    lines = printed(220).splitlines()
    assert len(lines) == len(ROWS) + 1
    assert ", ".join(TYPES) in lines[-2]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12), st.integers(20, 120))
def test_every_column_is_in_one_block_and_wide_ones_stand_alone(widths: list[int], width: int) -> None:
    blocks = column_blocks(widths, width)
    assert [column for block in blocks for column in block[1:]] == list(range(1, len(widths)))
    for block in blocks:
        assert block[0] == 0
        assert len(block) <= 2 or sum(widths[column] + 2 for column in block) - 2 <= width


@pytest.mark.parametrize(
    ("text", "most", "short"),
    [
        ("short", 14, "short"),
        ("gazetteer_of_organizations", 14, "gazette…ations"),
        ("one, two, three, four", 15, "one, two, … (4)"),
        ("a name, another", 10, "a nam…ther"),
    ],
)
def test_names_keep_beginning_and_end(text: str, most: int, short: str) -> None:
    assert shortened(text, most) == short
    assert len(short) <= most


def test_rows_without_a_first_name_are_known_by_the_second() -> None:
    *_, (headings, rows) = fitted(HEADINGS, ROWS, 80, names=2)
    assert headings[0] == "rule"
    assert rows[-1][0] == "PERSON"


@pytest.mark.parametrize("width", [80, 100])
def test_scores_of_compared_runs_are_not_wrapped(width: int) -> None:
    scores = Cell({seed: 0.8 + 0.01 * seed for seed in range(10)})
    names = ("supervised", "drift (training.steps=300, method.alpha=0.7)")
    columns = ["test accuracy", "test macro-F1", "dev accuracy"]
    table = ScoreTable("Scores", columns, {name: dict.fromkeys(columns, scores) for name in names}, "supervised")
    file = io.StringIO()
    show_scores(table, Console(file=file, force_terminal=True, width=width, color_system=None))
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert sum(line.count("84.50 ± 3.03") for line in lines) == 6
    assert sum(line.count("p = 1.000, 10 pairs") for line in lines) == 3
    assert all(sum(column in line for line in lines) == 1 for column in columns)
