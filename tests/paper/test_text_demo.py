"""The text demonstration on little data: it shows what was measured, and its files work with other commands."""

import csv
import html
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from drift.cli.main import app
from drift.errors import FileError
from drift.models import locating
from drift.models.catalogue import DEFAULT, ENCODERS, FALLBACK
from drift.models.locating import local_folder
from drift.paper.demos import DemoResult, docstrings, text_demo
from drift.paper.demos.text_demo import COMPARED_METHODS, KEYWORDS, _figure, _in_words
from drift.paper.self_training import DETACHED
from drift.runs.comparing.statistics import paired_t
from drift.runs.fit import fit
from drift.training.progress import progress
from drift.weak import RuleSet, label

SETTINGS = {"training": {"initial_steps": 20, "steps": 10}, "seeds": 3}
PARTS = {
    "numpy": ("numpy", ("fft", "polynomial")),
    "scikit-learn": ("sklearn", ("cluster", "svm")),
    "scipy": ("scipy", ("fft", "ndimage")),
    "torch": ("torch", ("distributions",)),
}
SETTING_NAMES = ("10 labels per library", "keyword rules")

needs_encoder = pytest.mark.skipif(local_folder(ENCODERS[DEFAULT]) is None, reason="the default encoder is not here")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> DemoResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRIFT_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(docstrings, "LIBRARIES", PARTS)
        patch.setattr(text_demo, "TRAIN_TEXTS", 20)
        patch.setattr(text_demo, "TEST_TEXTS", 8)
        patch.setattr(text_demo, "SETTINGS", SETTINGS)
        return text_demo.demo(tmp_path_factory.mktemp("demo") / "my out", progress)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@needs_encoder
def test_the_files_hold_the_texts_and_no_test_text_is_trained_on(result: DemoResult) -> None:
    folder = result.page.parent
    names = ["report.html", "rules.yaml", "test.csv", "text-accuracy.png", "text-accuracy.svg", "train.csv"]
    assert sorted(path.name for path in folder.iterdir()) == names
    train, test = rows(folder / "train.csv"), rows(folder / "test.csv")
    for table, count in ((train, 20), (test, 8)):
        assert [row["label"] for row in table] == [library for library in PARTS for _ in range(count)]
    assert not {row["text"] for row in train} & {row["text"] for row in test}


@needs_encoder
def test_the_table_holds_the_scores_of_fit_on_these_files(
    result: DemoResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path))
    folder = result.page.parent
    headings, cells = result.tables[0].headings, {row[0]: row[1:] for row in result.tables[0].rows}
    assert [*headings] == ["", *SETTING_NAMES]
    assert [*cells] == [*COMPARED_METHODS, "DRIFT minus DRIFT, detached", "p of a paired t-test"]

    def accuracy(name: str, column: int) -> np.ndarray:
        run = fit(
            folder / "train.csv",
            test=folder / "test.csv",
            text="text",
            label="label",
            **({"labels_per_class": 10}, {"rules": folder / "rules.yaml"})[column],
            method=COMPARED_METHODS[name],
            finetune=False,
            settings=SETTINGS,
            quiet=True,
        )
        assert run.record.label_budget.total == (40, 0)[column]
        shares = np.array([scores["accuracy"] for scores in run.record.test.scores])
        assert cells[name][column] == f"{100 * shares.mean():.2f} ± {100 * shares.std(ddof=1):.2f}"
        return shares

    test = paired_t(accuracy("DRIFT", 0), accuracy(DETACHED, 0))
    assert cells["DRIFT minus DRIFT, detached"][0] == test.gap()
    assert cells["p of a paired t-test"][0] == test.p_text()
    accuracy("Supervised", 1)


@needs_encoder
def test_coverage_and_accuracy_of_the_rules_are_right(result: DemoResult) -> None:
    folder = result.page.parent
    train = rows(folder / "train.csv")
    gold = [row["label"] for row in train]
    rules = RuleSet.from_file(folder / "rules.yaml")
    labels = label([row["text"] for row in train], rules).labels
    judged = [(weak, true) for weak, true in zip(labels, gold, strict=True) if weak is not None]
    right = sum(weak == true for weak, true in judged)
    assert f"{len(judged) / 80:.1%} of 80 training texts" in result.findings[-1]
    assert f"{right / len(judged):.1%} of {len(judged)} labels are right" in result.findings[-1]
    assert [row[0] for row in result.tables[1].rows] == [*KEYWORDS, "together"]


@needs_encoder
def test_the_page_has_tables_findings_figure_and_commands(result: DemoResult) -> None:
    page = html.unescape(result.page.read_text(encoding="utf-8"))
    assert all(finding in page for finding in result.findings)
    assert all(f">{cell}<" in page for table in result.tables for row in table.rows for cell in row)
    assert all(f"{command}\n" in page for command, _ in result.next_steps)
    assert page.count("data:image/png;base64,") == 1


@needs_encoder
def test_the_suggested_commands_run(result: DemoResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    short = ["--set", "training.initial_steps=5", "--set", "training.steps=5", "--set", "seeds=2", "--no-onnx"]
    for command, _ in result.next_steps:
        name, *arguments = shlex.split(command)
        assert name == "drift"
        more = short if "--rules" in arguments and arguments[0] == "fit" else []
        done = CliRunner().invoke(app, [*arguments, *more], catch_exceptions=False)
        assert done.exit_code == 0, done.output
    assert len(rows(tmp_path / "weak.csv")) == 80
    assert (tmp_path / "runs" / "rules" / "metrics.json").is_file()


def test_a_missing_encoder_is_an_error_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locating, "SOURCES", {})
    monkeypatch.setitem(ENCODERS, FALLBACK, replace(ENCODERS[FALLBACK], module="no_such_package"))
    with pytest.raises(FileError, match="pip install"):
        text_demo.demo(tmp_path / "out", progress)
    assert not (tmp_path / "out").exists()


def test_rules_vote_for_existing_libraries() -> None:
    assert {name.split(":")[0] for name in KEYWORDS} == set(docstrings.LIBRARIES)


@pytest.mark.parametrize(
    ("ours", "words"),
    [
        ([0.71, 0.72, 0.74], "DRIFT is better"),
        ([0.51, 0.52, 0.54], "DRIFT is worse"),
        ([0.62, 0.61, 0.63], "not significant"),
    ],
)
def test_wins_ties_and_losses_are_all_reported(ours: list[float], words: str) -> None:
    theirs = [0.61, 0.62, 0.63]
    text = _in_words("few labels", "Self-training", {"DRIFT": np.array(ours), "Self-training": np.array(theirs)})
    assert words in text
    assert f"{100 * np.mean(np.subtract(ours, theirs)):+.2f} ±" in text
    assert "3 pairs" in text


def test_the_figure_has_one_dot_per_seed_and_the_means() -> None:
    scores = {
        setting: dict(zip(COMPARED_METHODS, np.random.default_rng(number).random((3, 4)), strict=True))
        for number, setting in enumerate(SETTING_NAMES)
    }
    for axes, (setting, by_method) in zip(_figure(scores).axes, scores.items(), strict=True):
        assert axes.get_title() == setting
        assert [tick.get_text() for tick in axes.get_xticklabels()] == [*COMPARED_METHODS]
        dots = axes.collections[::2]  # each is followed by an error bar
        for x, (shares, dot, mean) in enumerate(zip(by_method.values(), dots, axes.containers, strict=True)):
            assert np.allclose(dot.get_offsets(), np.stack([np.full(4, x), 100 * shares], 1))
            assert np.allclose(mean.lines[0].get_ydata(), 100 * shares.mean())
