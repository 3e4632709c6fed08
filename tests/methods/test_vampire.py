"""VAMPIRE as a method: it selects its model, which other methods can use too."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drift
from drift.errors import ConfigError
from tests.runs.small import STEPS, metrics_of, small_table

pytest.importorskip("datasets", reason="needs datasets: pip install 'drift-ssl[text]'")
pandas = pytest.importorskip("pandas")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def fit(**options: Any) -> Any:
    def table(rows: int, **of_table: Any) -> Any:
        columns = small_table(rows, **of_table)
        return pandas.DataFrame({**columns, "body": [" ".join(text.split()[:3]) for text in columns["body"]]})

    return drift.fit(table(40, labeled=10), dev=table(10, seed=1), quiet=True, settings={"training": STEPS}, **options)


def test_the_method_names_its_model() -> None:
    run = fit(method="vampire")
    assert (run.metrics["kind"], run.metrics["model"], run.metrics["method"]) == ("vampire", "vampire", "vampire")
    assert run.metrics["steps"] == STEPS["initial_steps"]  # there is no second phase


@pytest.mark.parametrize("method", ["drift", "supervised"])
def test_the_model_serves_other_methods(method: str) -> None:
    run = fit(model="vampire", method=method)
    assert (run.metrics["kind"], run.metrics["method"]) == ("vampire", method)


def test_another_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="vampire trains vampire, not textcnn; leave --model out"):
        fit(method="vampire", model="textcnn")


def test_a_saved_run_says_the_same_and_why_it_has_no_onnx_file(tmp_path: Path) -> None:
    run = fit(method="vampire", out=tmp_path / "run")
    texts = ["team goal", "bank fund", ""]
    np.testing.assert_array_equal(drift.load(tmp_path / "run").predict_proba(texts), run.predict_proba(texts))
    assert any(note.startswith("no model.onnx: VAMPIRE") for note in metrics_of(tmp_path / "run")["notes"])
