"""Rows to label next: the least certain of the whole table, without near-copies and labelled rows."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import typer
from typer.testing import CliRunner

from drift import load, suggest
from drift.cli.suggest import suggest as command
from drift.data.word_tokens import WordTokenizer
from drift.errors import ConfigError, FileError, LabelError
from drift.models.textcnn import TextCNN
from drift.runs.result import Run
from drift.tasks.record import VERSION
from drift.tasks.text.model import TextModel
from drift.tasks.text.record import TextRecord
from drift.tasks.text.task import TextTask
from drift.training.seeding import seeded

WORDS = [f"{first}{second}zq{second}{first}" for first in "abcdefgh" for second in "abcdefgh"]
CLASSES = ["one", "two", "three"]
RECORD = {
    "version": VERSION,
    "task": "text",
    "unit": "texts",
    "measures": {"accuracy": "accuracy"},
    "method": "supervised",
    "model": "textcnn",
    "kind": "textcnn",
    "classes": CLASSES,
    "weak": False,
    "training_rows": 3,
    "label_budget": {"train": 3, "dev": 0, "total": 3},
    "seeds": [0],
    "kept_seed": 0,
    "kept_because": "first: there is no dev set to choose by",
    "steps": 0,
    "seconds": 0.0,
    "start_on_dev": None,
    "best_steps": None,
    "columns": {"text": "body", "label": "subject"},
}


@pytest.fixture
def run() -> Run:
    """A small classifier of made-up words with random weights. Its record names no columns."""
    with seeded(0):
        module = TextCNN(torch.randn(len(WORDS) + 2, 8), len(CLASSES), (1, 2), 8)
    model = TextModel(module.eval(), WordTokenizer(WORDS), CLASSES, "textcnn")
    return Run(model, TextRecord.model_validate({**RECORD, "columns": {}}), TextTask)


def texts(rows: int) -> list[str]:
    """Texts of words that hardly share a character."""
    draw = np.random.default_rng(0)
    return [" ".join(draw.choice(WORDS, 6, replace=False)) for _ in range(rows)]


def margins(run: Run, of: list[str]) -> np.ndarray:
    ordered = np.sort(run.predict_proba(of), axis=-1)
    return np.asarray(ordered[:, -1] - ordered[:, -2])


def test_suggestions_are_doubtful_rows_of_the_whole_table(run: Run) -> None:
    table = texts(1500)  # several chunks
    suggestions = suggest(run, pd.DataFrame({"text": table}), 20)
    everywhere = margins(run, table)
    assert np.mean([each.margin for each in suggestions]) < everywhere.mean()
    assert [each.margin for each in suggestions] == sorted(each.margin for each in suggestions)
    assert max(each.row for each in suggestions) > 1024  # of the last chunk, too
    for each in suggestions:
        probabilities = run.predict_proba([each.text])[0]
        assert each.text == table[each.row - 1]
        assert each.predicted == CLASSES[int(probabilities.argmax())]
        assert each.confidence == pytest.approx(float(probabilities.max()), abs=1e-5)
        assert each.margin == pytest.approx(margins(run, [each.text])[0], abs=1e-5)
        assert each.why.startswith(f"{each.predicted} {100 * each.confidence:.0f} %, ")


def test_rows_with_a_label_or_without_a_text_are_left_out(run: Run) -> None:
    table = pd.DataFrame({"text": texts(40), "topic": ["one", None, " ", ""] * 10})
    table.loc[1, "text"] = None
    table.loc[2, "text"] = "  "
    rows = {each.row - 1 for each in suggest(run, table, 40)}  # the label column is guessed from its name
    assert rows
    assert rows <= set(range(3, 40)) - set(range(0, 40, 4))
    assert {each.row - 1 for each in suggest(run, table, 40, label="")} & set(range(0, 40, 4))


def test_copies_do_not_crowd_out_the_rest(run: Run) -> None:
    table = texts(300)
    doubtful = table[int(margins(run, table).argmin())]
    suggestions = suggest(run, pd.DataFrame({"text": [doubtful] * 1000 + table}), 5)
    assert [each.text for each in suggestions].count(doubtful) <= 1
    assert len({each.text for each in suggestions}) == 5


def test_near_copies_are_suggested_once(run: Run) -> None:
    first, second = texts(2)
    table = pd.DataFrame({"text": [first, f"{first}!", f"{first.upper()}", second]})
    suggestions = suggest(run, table, 4)
    assert len(suggestions) == 2
    assert {each.text.lower().rstrip("!") for each in suggestions} == {first, second}


def test_the_table_keeps_all_columns_and_overwrites_none(run: Run, tmp_path: Path) -> None:
    table = pd.DataFrame({"row": range(100, 120), "text": texts(20), "label": [None] * 20})
    suggestions = suggest(run, table, 5, out=tmp_path / "next.csv")
    written = pd.read_csv(tmp_path / "next.csv")
    assert list(written) == ["row", "text", "label", "row_by_drift", "predicted", "confidence", "why"]
    assert list(written["row_by_drift"]) == [each.row for each in suggestions]
    assert list(written["row"]) == [99 + each.row for each in suggestions]
    assert list(written["text"]) == [each.text for each in suggestions]
    assert written["label"].isna().all()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n": 0}, ConfigError, "0 rows"),
        ({"label": "labl"}, ConfigError, "did you mean 'label'"),
        ({"text": "body"}, ConfigError, "no column 'body'"),
        ({"out": "next.docx"}, FileError, "docx"),
        ({}, LabelError, "the DataFrame: every row has a label in column 'label' or no text"),
    ],
)
def test_bad_input_is_refused(run: Run, options: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        suggest(run, pd.DataFrame({"text": texts(3), "label": ["one"] * 3}), **options)


@pytest.fixture
def folder(run: Run, tmp_path: Path) -> Path:
    run.model.save(tmp_path / "run" / "model")
    (tmp_path / "run" / "metrics.json").write_text(json.dumps(RECORD))
    return tmp_path / "run"


def test_a_model_with_its_record_is_enough(folder: Path) -> None:
    assert len(suggest(folder, pd.DataFrame({"body": texts(5)}), 5)) == 5


def test_the_columns_of_training_are_read_from_the_run(folder: Path) -> None:
    table = pd.DataFrame({"text": ["a decoy"] * 10, "body": texts(10), "subject": ["one"] * 5 + [None] * 5})
    suggestions = suggest(folder, table, 10)
    assert {each.row for each in suggestions} <= set(range(6, 11))
    assert all(each.text == table["body"][each.row - 1] for each in suggestions)


def test_the_command_shows_rows_or_writes_them(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    table, out = tmp_path / "data.jsonl", tmp_path / "next.jsonl"
    table.write_text("".join(json.dumps({"body": text}) + "\n" for text in [*texts(9), "[bold]ab"]))
    app = typer.Typer()
    app.command()(command)
    expected = suggest(load(folder), table, 10)
    listed = CliRunner().invoke(app, [str(folder), str(table), "-n", "10"])
    assert listed.exit_code == 0
    assert [line.split()[0] for line in listed.output.splitlines()[1:11]] == [str(each.row) for each in expected]
    assert "[bold]ab" in listed.output
    written = CliRunner().invoke(app, [str(folder), str(table), "-n", "20", "-o", str(out)])
    assert written.output.startswith(f"Written: {out} (10 rows); fill in labels")
    assert "\n10 rows, not 20:" in written.output
    assert [json.loads(line)["row"] for line in out.read_text().splitlines()] == [each.row for each in expected]
