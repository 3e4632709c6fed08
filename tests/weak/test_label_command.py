"""The command `drift label`: the table it writes, what it prints, and its error messages."""

import csv
import io
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from drift.cli.label import label
from drift.errors import DriftError
from drift.weak import casting

APP = typer.Typer(rich_markup_mode="markdown")
APP.command()(label)

TABLE = """\
id,text,topic,old
1,The team won,Sports,Sports
2,"Profit, at last",Business,
3,President of the team,World,
4,,Sports,
5,Nothing here,Weather,
"""
RULES = """\
classes: [World, Sports, Business]
rules:
  - {name: politics, label: World, has: [president]}
  - {name: games, label: Sports, has: [team]}
  - {name: money, label: Business, matches: '^profit'}
  - {name: older, column: old}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "texts.csv").write_text(TABLE)
    (tmp_path / "rules.yaml").write_text(RULES)
    return tmp_path


def run(*arguments: str) -> str:
    """Run the command and return what it prints; a DriftError is raised as it is."""
    done = CliRunner().invoke(APP, ["texts.csv", "--rules", "rules.yaml", *arguments])
    if isinstance(done.exception, DriftError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text())))


def test_every_column_is_kept_and_weak_is_added(folder: Path) -> None:
    out = run("-o", "weak.csv")
    written = rows(folder / "weak.csv")
    assert [{key: row[key] for key in ("id", "text", "topic", "old")} for row in written] == rows(folder / "texts.csv")
    assert [row["weak"] for row in written] == ["Sports", "Business", "", "", ""]
    assert "Written: weak.csv" in out
    assert "Labelled: 40.0% of 5 (Sports 1, Business 1)" in out
    assert "ccuracy" not in out


def test_gold_gives_accuracy_with_its_denominator(folder: Path) -> None:
    out = run("--label", "topic")
    assert "Accuracy of the weak labels: 100.0% of 2" in out
    assert [line.split()[-3:] for line in out.splitlines() if line.startswith("games")] == [["50.0%", "of", "2"]]
    assert "'Weather' (1)" in out
    assert sorted(path.name for path in folder.iterdir()) == ["rules.yaml", "texts.csv"]


def test_votes_ties_and_the_name_of_the_column(folder: Path) -> None:
    run("-o", "out.csv", "--votes", "--ties", "order", "--column", "guess")
    written = rows(folder / "out.csv")
    assert list(written[0])[4:] == ["guess", "vote_politics", "vote_games", "vote_money", "vote_older"]
    assert list(written[2].values())[4:] == ["World", "World", "Sports", "", ""]


@pytest.mark.parametrize("extra", [["--jobs", "2"], ["--ties", "random", "--seed", "3"]])
def test_batches_and_processes_do_not_change_the_result(
    folder: Path, monkeypatch: pytest.MonkeyPatch, extra: list[str]
) -> None:
    whole = run("-o", "whole.csv", "--label", "topic", *extra)
    monkeypatch.setattr(casting, "TEXTS_PER_BATCH", 1)
    assert run("-o", "parts.csv", "--label", "topic", *extra) == whole.replace("whole.csv", "parts.csv")
    assert (folder / "parts.csv").read_text() == (folder / "whole.csv").read_text()


def test_parquet(folder: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    run("-o", "weak.parquet")
    assert parquet.read_table(folder / "weak.parquet")["weak"].to_pylist() == ["Sports", "Business", None, None, None]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text", "txt"], "texts.csv has no column 'txt'; did you mean 'text'?"),
        (["--label", "topics"], "texts.csv has no column 'topics'; did you mean 'topic'?"),
        (["--column", "id"], "texts.csv has a column 'id' already"),
        (["--rules", "none.yaml"], "none.yaml cannot be read"),
        (["--jobs", "0"], "--jobs 0 is not a number of processes"),
        (["--text", "old", "-o", "out.xyz"], "out.xyz"),
    ],
)
def test_errors_are_one_line_and_nothing_is_written(folder: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(DriftError) as error:
        run("-o", "out.csv", *arguments)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert sorted(path.name for path in folder.iterdir()) == ["rules.yaml", "texts.csv"]


def test_an_error_in_the_middle_of_the_table_leaves_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(casting, "TEXTS_PER_BATCH", 1)
    (folder / "texts.csv").write_text(TABLE + "6,Late,World,Wrold\n")
    with pytest.raises(DriftError, match="row 6: column 'old' has 'Wrold'; did you mean 'World'"):
        run("-o", "out.csv")
    assert not (folder / "out.csv").exists()
    assert sorted(path.name for path in folder.iterdir()) == ["rules.yaml", "texts.csv"]
