"""The main demonstration on few texts and a tiny encoder: its files, its figures, and the commands it suggests."""

import csv
import html
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import drift
from drift.cli.main import app
from drift.errors import DataError
from drift.paper.demos import DemoResult, topics, topics_demo
from drift.paper.demos.topics import TOPICS, topic_texts
from drift.training.progress import progress
from tests.runs.small import STEPS, small_encoder

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
pytest.importorskip("datasets", reason="needs datasets: pip install 'drift-ssl[text]'")

SMALL = {
    "statistics": (("scipy", ("stats/_distn_infrastructure.py", "stats/qmc")), ("torch", ("distributions",))),
    "signal processing": (("scipy", ("fft",)), ("numpy", ("fft",))),
    "email and web": (("http", (".",)),),
}
TRAIN, TEST = 8, 4


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> DemoResult:
    folder = tmp_path_factory.mktemp("topics")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRIFT_CACHE", str(folder / "cache"))
        patch.setattr(topics, "TOPICS", SMALL)
        patch.setattr(topics_demo, "TOPICS", SMALL)
        patch.setattr(topics_demo, "KEYWORDS", {name: topics_demo.KEYWORDS[name] for name in SMALL})
        patch.setattr(topics_demo, "TRAIN_TEXTS", TRAIN)
        patch.setattr(topics_demo, "TEST_TEXTS", TEST)
        settings = {"model": {"name": small_encoder(folder / "encoder")}, "training": STEPS, "seeds": 2}
        patch.setattr(topics_demo, "SETTINGS", settings)
        patch.setattr(topics_demo, "encoder_path", str)
        topics_demo.demo(folder / "my out", progress)
        return topics_demo.demo(folder / "my out", progress)  # the runs of an earlier demonstration are replaced


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_files_hold_the_texts_and_no_test_text_is_trained_on(result: DemoResult) -> None:
    folder = result.page.parent
    tables = {name: rows(folder / f"{name}.csv") for name in ("texts", "few", "all", "test")}
    assert {name: len(table) for name, table in tables.items()} == {
        "texts": 3 * TRAIN,
        "few": 3 * TRAIN,
        "all": 3 * TRAIN,
        "test": 3 * TEST,
    }
    assert [*tables["texts"][0]] == ["text"]
    for name in SMALL:
        assert sum(row["topic"] == name for row in tables["few"]) == topics_demo.LABELS
    assert all(few["topic"] in ("", row["topic"]) for few, row in zip(tables["few"], tables["all"], strict=True))
    assert not {row["text"] for row in tables["all"]} & {row["text"] for row in tables["test"]}


def test_the_table_holds_the_scores_of_the_kept_runs(result: DemoResult) -> None:
    folder = result.page.parent
    cells = {row[0]: row[1:] for row in result.tables[0].rows}
    assert [*cells] == ["class names only", "5 labels per class", "keyword rules", "every label"]
    assert [cells[name][0] for name in cells] == ["0", str(3 * topics_demo.LABELS), "0", str(3 * TRAIN)]
    for source, name in topics_demo.FOLDERS.items():
        scores = drift.evaluate(folder / name, folder / "test.csv")
        assert cells[source][2] == f"{100 * scores['accuracy']:.1f}"


def test_the_page_has_table_findings_and_picture(result: DemoResult) -> None:
    page = html.unescape(result.page.read_text(encoding="utf-8"))
    assert all(finding in page for finding in result.findings)
    assert all(f">{cell}<" in page for row in result.tables[0].rows for cell in row if cell)
    assert page.count("data:image/png;base64,") == 1
    assert all(f"{command}\n" in page for command, _ in result.next_steps)


def test_the_command_that_uses_its_model_runs(
    result: DemoResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name, *arguments = shlex.split(result.next_steps[0][0])
    assert name == "drift"
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert len(rows(tmp_path / "predicted.csv")) == 3 * TEST


def test_this_machine_has_enough_texts_of_every_subject() -> None:
    train, test = topic_texts(topics_demo.TRAIN_TEXTS, topics_demo.TEST_TEXTS, seed=0)
    assert set(topics_demo.KEYWORDS) == set(TOPICS) == set(train.topic) == set(test.topic)
    assert len(train.text) == topics_demo.TRAIN_TEXTS * len(TOPICS)
    assert not set(train.text) & set(test.text)
    assert not any("matplotlib" in text.lower() for text in train.text + test.text)


def test_too_few_texts_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "TOPICS", {"none": (("no_such_package", (".",)),)})
    with pytest.raises(DataError, match=r"none: 0 docstrings in the installed sources, 230 are needed"):
        topic_texts(150, 80, seed=0)
