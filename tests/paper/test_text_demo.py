"""The text demonstration, made short: what it says is what was measured, and its files go on working."""

import csv
import html
import importlib.util
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from drift.cli.main import app
from drift.errors import ConfigError
from drift.models import encoders
from drift.paper.demos import docstrings, text_demo
from drift.paper.demos.demo import Shown
from drift.paper.demos.text_demo import COMPARED_METHODS, KEYWORDS, _figure, _in_words
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
SETTING_NAMES = ("10 labels a library", "keyword rules")

needs_encoder = pytest.mark.skipif(
    importlib.util.find_spec(encoders.DEFAULT_PACKAGE) is None, reason="the default encoder is not installed"
)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
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
def test_the_files_hold_the_texts_and_no_test_text_is_trained_on(shown: Shown) -> None:
    folder = shown.page.parent
    names = ["report.html", "rules.yaml", "test.csv", "text-accuracy.png", "text-accuracy.svg", "train.csv"]
    assert sorted(path.name for path in folder.iterdir()) == names
    train, test = rows(folder / "train.csv"), rows(folder / "test.csv")
    for table, count in ((train, 20), (test, 8)):
        assert [row["label"] for row in table] == [library for library in PARTS for _ in range(count)]
    assert not {row["text"] for row in train} & {row["text"] for row in test}


@needs_encoder
def test_the_table_holds_what_fit_measures_on_these_files(
    shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path))
    folder = shown.page.parent
    headings, cells = shown.tables[0].headings, {row[0]: row[1:] for row in shown.tables[0].rows}
    assert [*headings] == ["", *SETTING_NAMES]
    assert [*cells] == [*COMPARED_METHODS, "DRIFT minus Self-training", "p of a paired t-test"]

    def accuracy(name: str, place: int) -> np.ndarray:
        run = fit(
            folder / "train.csv",
            test=folder / "test.csv",
            text="text",
            label="label",
            **({"labels_per_class": 10}, {"rules": folder / "rules.yaml"})[place],
            method=COMPARED_METHODS[name],
            finetune=False,
            settings=SETTINGS,
            quiet=True,
        )
        assert run.metrics["label_budget"]["total"] == (40, 0)[place]
        shares = np.array([scores["accuracy"] for scores in run.metrics["test"]["scores"]])
        assert cells[name][place] == f"{100 * shares.mean():.2f} ± {100 * shares.std(ddof=1):.2f}"
        return shares

    test = paired_t(accuracy("DRIFT", 0), accuracy("Self-training", 0))
    assert cells["DRIFT minus Self-training"][0] == test.gap()
    assert cells["p of a paired t-test"][0] == test.p_text()
    accuracy("Supervised", 1)


@needs_encoder
def test_coverage_and_accuracy_of_the_rules_are_theirs(shown: Shown) -> None:
    folder = shown.page.parent
    train = rows(folder / "train.csv")
    gold = [row["label"] for row in train]
    rules = RuleSet.from_file(folder / "rules.yaml")
    labels = label([row["text"] for row in train], rules).labels
    judged = [(said, right) for said, right in zip(labels, gold, strict=True) if said is not None]
    right = sum(said == right for said, right in judged)
    assert f"{len(judged) / 80:.1%} of 80 training texts" in shown.findings[-1]
    assert f"{right / len(judged):.1%} of {len(judged)} labels are right" in shown.findings[-1]
    assert [row[0] for row in shown.tables[1].rows] == [*KEYWORDS, "together"]


@needs_encoder
def test_the_page_holds_tables_findings_figure_and_commands(shown: Shown) -> None:
    page = html.unescape(shown.page.read_text(encoding="utf-8"))
    assert all(finding in page for finding in shown.findings)
    assert all(f">{cell}<" in page for table in shown.tables for row in table.rows for cell in row)
    assert all(f"{command}\n" in page for command, _ in shown.next_steps)
    assert page.count("data:image/png;base64,") == 1


@needs_encoder
def test_the_commands_it_ends_with_run(shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    short = ["--set", "training.initial_steps=5", "--set", "training.steps=5", "--set", "seeds=2", "--no-onnx"]
    for command, _ in shown.next_steps:
        name, *arguments = shlex.split(command)
        assert name == "drift"
        more = short if "--rules" in arguments and arguments[0] == "fit" else []
        done = CliRunner().invoke(app, [*arguments, *more], catch_exceptions=False)
        assert done.exit_code == 0, done.output
    assert len(rows(tmp_path / "weak.csv")) == 80
    assert (tmp_path / "runs" / "rules" / "metrics.json").is_file()


def test_a_missing_encoder_is_said_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "DEFAULT_PACKAGE", "no_such_package")
    with pytest.raises(ConfigError, match="pip install"):
        text_demo.demo(tmp_path / "out", progress)
    assert not (tmp_path / "out").exists()


def test_rules_vote_for_libraries_that_there_are() -> None:
    assert {name.split(":")[0] for name in KEYWORDS} == set(docstrings.LIBRARIES)


@pytest.mark.parametrize(
    ("ours", "words"),
    [
        ([0.71, 0.72, 0.74], "DRIFT is better"),
        ([0.51, 0.52, 0.54], "DRIFT is worse"),
        ([0.62, 0.61, 0.63], "not significant"),
    ],
)
def test_wins_ties_and_losses_are_all_said(ours: list[float], words: str) -> None:
    theirs = [0.61, 0.62, 0.63]
    text = _in_words("few labels", "Self-training", {"DRIFT": np.array(ours), "Self-training": np.array(theirs)})
    assert words in text
    assert f"{100 * np.mean(np.subtract(ours, theirs)):+.2f} ±" in text
    assert "3 pairs" in text


def test_the_figure_has_a_dot_a_seed_and_means_beside_them() -> None:
    scores = {
        setting: dict(zip(COMPARED_METHODS, np.random.default_rng(place).random((3, 4)), strict=True))
        for place, setting in enumerate(SETTING_NAMES)
    }
    for axes, (setting, of) in zip(_figure(scores).axes, scores.items(), strict=True):
        assert axes.get_title() == setting
        assert [tick.get_text() for tick in axes.get_xticklabels()] == [*COMPARED_METHODS]
        dots = axes.collections[::2]  # each followed by the bar of its errors
        for place, (shares, dot, mean) in enumerate(zip(of.values(), dots, axes.containers, strict=True)):
            assert np.allclose(dot.get_offsets(), np.stack([np.full(4, place), 100 * shares], 1))
            assert np.allclose(mean.lines[0].get_ydata(), 100 * shares.mean())
