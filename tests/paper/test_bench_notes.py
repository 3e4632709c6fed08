"""What the notes of a table say: where settings come from, what differs from official code, wins, ties and losses."""

from pathlib import Path
from typing import Any

import pytest

from drift.methods import METHODS
from drift.paper.bench.catalogue import find_exhibit
from drift.paper.bench.notes import differs, notes_of, outcome_notes
from drift.paper.bench.planning import jobs_of, part_of
from drift.runs.comparing.tables import Cell, ScoreTable


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_DATA", str(tmp_path))


def notes(name: str, cell: str, methods: list[str], group: str = "frozen", **options: Any) -> str:
    exhibit = part_of(find_exhibit(name), [cell], methods, [group])
    return "\n".join(notes_of(exhibit, "laptop", group, jobs_of(exhibit, "laptop", 1, **options)))


def test_the_notes_say_where_the_settings_of_each_row_come_from() -> None:
    text = notes("weak", "agnews-weak", ["start", "drift", "fixmatch", "uast", "bond"])
    assert "chosen on dev: Start; DRIFT\n" in text
    assert "published them, steps and learning rates of the preset: FixMatch\n" in text
    assert "UAST: passes 10 (30), sample 4096 (16384), chosen 2048 (4096)" in text
    assert "BOND: teacher_every 100 (450)" in text


def test_the_notes_say_which_rows_were_searched() -> None:
    text = notes("semi", "agnews-30", ["start", "uda", "train-on-dev"], trials=9)
    assert "searched on dev, 9 trials for each run of each method" in text
    assert "where the method has them: Start; UDA" in text
    assert "chosen on dev: Train on dev" in text


def test_the_notes_say_what_is_drawn() -> None:
    assert "75% of a pool of 4,000 training texts" in notes("semi", "agnews-30", ["drift"], pool=4000)
    assert "pool" not in notes("semi", "agnews-30", ["drift"])


def test_differences_are_read_from_docstrings() -> None:
    text = """Title.

    Equations.

    Differs from paper: not this.
    Differs from the official code: one
    and a half.
    Differs from the official code: two.

    More.
    """
    assert differs(text) == "one and a half; two"
    assert differs("Nothing.") == ""


def test_notes_list_the_differences_of_methods_and_models_once() -> None:
    text = notes("graphs", "cora-10", ["GRAND", "DRIFT+GRAND", "GraphVAT", "APPNP"], "graph")
    assert text.count("GRAND differs from the official code") == 1
    assert "graphvat differs from the official code: all neighbours count" in text
    assert "APPNP differs from the official code: no dropout of edges" in text
    assert METHODS["graphvat"].__doc__


def test_wins_ties_and_losses_are_counted_after_the_correction() -> None:
    def cells(*means: float) -> dict[str, Cell]:
        return {
            column: Cell({seed: mean + seed / 1000 + seed % 3 / 10_000 for seed in range(5)})
            for column, mean in zip("abc", means, strict=True)
        }

    rows = {"x": {column: Cell({seed: 0.5 + seed / 1000 for seed in range(5)}) for column in "abc"}}
    rows |= {"y": cells(0.6, 0.5, 0.4)}
    table = ScoreTable("", ["a", "b", "c"], rows, "x", corrects=True)
    assert outcome_notes(table) == ["wins/ties/losses against x after the correction: y 1/1/1"]
    assert outcome_notes(ScoreTable("", ["a"], {"y": {"a": Cell({0: 0.5})}})) == []
