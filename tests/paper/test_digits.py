"""The comparison on digits: which rows and labels each method gets."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier

from drift.errors import LabelError
from drift.paper.demos import digits
from drift.paper.demos.digits import OURS, SCIKIT_LEARN, TEST_ROWS, compare
from drift.paper.self_training import DETACHED
from drift.training.progress import progress


class Recorder(DummyClassifier):
    """A real classifier (the commonest class) that keeps what it was given."""

    seen: list[dict[str, Any]]

    def fit(self, X: Any, y: Any) -> "Recorder":
        self.seen.append({"X": X, "y": y})
        return super().fit(X, y)

    def score(self, X: Any, y: Any) -> float:
        self.seen[-1].update(X_test=X, y_test=y)
        return super().score(X, y)


def recorded(labels_per_class: int | None, seeds: list[int]) -> tuple[dict[str, list[dict[str, Any]]], list[int]]:
    seen: dict[str, list[dict[str, Any]]] = {"a": [], "b": []}
    ticks: list[int] = []

    def builder(name: str):
        def build(seed: int) -> Recorder:
            model = Recorder(strategy="prior")
            model.seen = seen[name]
            return model

        return build

    compare({name: builder(name) for name in seen}, labels_per_class, seeds, tick=lambda: ticks.append(1))
    return seen, ticks


def test_every_method_gets_the_same_splits_and_test_rows_are_never_trained_on() -> None:
    X, _ = load_digits(return_X_y=True)
    seen, ticks = recorded(5, [0, 1])
    assert len(ticks) == 4
    for one, other in zip(seen["a"], seen["b"], strict=True):
        assert all(np.array_equal(one[key], other[key]) for key in one)
    for fit in seen["a"]:
        assert len(fit["X_test"]) == TEST_ROWS
        assert len(fit["X"]) == len(X) - TEST_ROWS
        together = np.concatenate([fit["X"], fit["X_test"]])
        assert np.array_equal(np.sort(together, axis=0), np.sort(X, axis=0))
        kinds, counts = np.unique(fit["y"][fit["y"] != -1], return_counts=True)
        assert kinds.tolist() == list(range(10))
        assert counts.tolist() == [5] * 10
        assert -1 not in fit["y_test"]
    assert not np.array_equal(seen["a"][0]["X_test"], seen["a"][1]["X_test"])


def test_kept_labels_are_the_true_ones() -> None:
    X, y = load_digits(return_X_y=True)
    own = {row.tobytes(): label for row, label in zip(X, y, strict=True)}
    fit = recorded(5, [3])[0]["a"][0]
    chosen = fit["y"] != -1
    assert [own[row.tobytes()] for row in fit["X"][chosen]] == fit["y"][chosen].tolist()


def test_without_a_budget_every_training_row_keeps_its_label() -> None:
    fit = recorded(None, [0])[0]["a"][0]
    assert -1 not in fit["y"]


def test_more_labels_than_exist_are_refused() -> None:
    with pytest.raises(LabelError, match="ask for fewer labels"):
        recorded(500, [0])


def test_our_methods_differ_only_in_the_coupling() -> None:
    settings = {name: build(3).get_params() for name, build in OURS.items()}
    couplings = {name: values.pop("coupling") for name, values in settings.items()}
    assert couplings == {"Supervised": "none", DETACHED: "detached", "DRIFT": "differentiable"}
    assert settings["Supervised"] == settings[DETACHED] == settings["DRIFT"]
    assert settings["DRIFT"]["random_state"] == 3


def test_a_tiny_comparison_of_the_real_methods_learns() -> None:
    ours = {name: lambda seed, build=build: build(seed).set_params(steps=20) for name, build in OURS.items()}
    scores = compare({**ours, **SCIKIT_LEARN}, 5, [0])
    assert [*scores] == [*OURS, *SCIKIT_LEARN]
    for row in scores.values():
        assert len(row.accuracy) == len(row.seconds) == 1
        assert row.accuracy[0] > 0.7  # chance is 0.1
        assert row.seconds[0] > 0


def test_the_demo_shows_the_same_numbers_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = {
        name: lambda seed, build=build: build(seed).set_params(initial_steps=30, steps=10, hidden=(16,))
        for name, build in OURS.items()
    }
    monkeypatch.setattr(digits, "OURS", tiny)
    result = digits.demo(tmp_path / "out", progress)
    page = result.page.read_text(encoding="utf-8")
    assert result.page == tmp_path / "out" / "report.html"
    assert [row[0] for row in result.tables[0].rows] == [*OURS]
    for row in result.tables[0].rows:
        assert all(f">{cell}<" in page for cell in row)
    assert all(finding in page for finding in result.findings)
