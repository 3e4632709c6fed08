"""`drift fit --tune` as people run it."""

from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.runs.small import metrics_of
from tests.runs.small_graphs import small_graph, write_npz

pytest.importorskip("optuna", reason="needs optuna: pip install 'drift-ssl[tune]'")

FEW = [f"--set=training.{name}" for name in ("initial_steps=4", "steps=4", "evaluate_every=2", "trackers=[]")]


def test_settings_are_searched_then_trained_then_taken_up_again(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    graph, run = str(write_npz(tmp_path / "graph.npz", small_graph(45))), tmp_path / "run"
    tune = ["fit", "--tune", "--trials", "2", "-o", str(run)]
    code, output, errors = call(*tune, "--graph", graph, "--seeds", "2", *FEW)
    assert code == 0, errors
    assert "settings were searched on dev: 2 trials" in output
    before = metrics_of(run)
    assert before["tuning"]["trials"] == 2
    code, output, errors = call(*tune, "--resume")
    assert code == 0, errors
    assert metrics_of(run)["tuning"] == before["tuning"]
    assert metrics_of(run)["test"] == before["test"]


def test_trials_at_once(call: Call, tmp_path: Path) -> None:
    graph, run = str(write_npz(tmp_path / "graph.npz", small_graph(45))), tmp_path / "run"
    tune = ["fit", "--tune", "--trials", "2", "--jobs", "2", "-o", str(run)]
    code, _, errors = call(*tune, "--graph", graph, "--seeds", "2", *FEW)
    assert code == 0, errors
    assert metrics_of(run)["tuning"]["trials"] == 2


@pytest.mark.parametrize("option", ["--jobs=2", "--cluster=ray", "--trials=3"])
def test_options_of_a_search_without_one_are_one_line(call: Call, tmp_path: Path, option: str) -> None:
    code, output, errors = call("fit", "rows.csv", option, "-o", str(tmp_path / "run"))
    assert (code, output, errors.count("\n")) == (2, "", 1)
    assert "give --tune too" in errors


def test_no_dev_set_is_one_line_and_nothing_is_written(call: Call, tmp_path: Path) -> None:
    code, output, errors = call("fit", "rows.csv", "--tune", "-o", str(tmp_path / "run"))
    assert (code, output, errors.count("\n")) == (2, "", 1)
    assert "there is no dev set; give one with --dev" in errors
    assert not list(tmp_path.iterdir())
