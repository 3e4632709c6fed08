"""Methods, tasks, sources of labels and callbacks from outside the package: docs/extending.md, run as it is written."""

import csv
import html
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import drift
from drift.errors import ConfigError, FileError
from drift.imports import load_object
from drift.runs.result import REPORT, Run
from drift.tasks import Task
from drift.tasks.text.task import TextTask
from tests.cli.conftest import Call
from tests.runs.small import STEPS, small_encoder, small_table, write_csv

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
SHORT = {"model.max_length": 16}  # what the small encoder takes
FEW = [f"--set=training.{name}={value}" for name, value in STEPS.items()]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's Python files in a folder that is the working directory."""
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.S):
        if match := re.match(r"# (\S+\.py)\n", block):
            (tmp_path / match[1]).write_text(block)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith(("drift_task_", "drift_method_"))]:
        del sys.modules[name]


def write_vectors(path: Path, rows: int, *, seed: int, labeled: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Two clouds of points with a label column; rows after the first `labeled` have none."""
    generator = np.random.default_rng(seed)
    codes = np.arange(rows) % 2
    x = generator.normal(size=(rows, 3)) + 2.0 * codes[:, None]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "label"])
        for row, (point, code) in enumerate(zip(x, codes, strict=True)):
            writer.writerow([*point, ["low", "high"][code] if labeled is None or row < labeled else ""])
    return x.astype(np.float32), codes


def test_a_task_from_outside_fits_predicts_evaluates_and_reports(files: Path, call: Call) -> None:
    write_vectors(files / "train.csv", 120, seed=0, labeled=20)
    x, codes = write_vectors(files / "test.csv", 80, seed=1)
    task = "--task=vector_task.py:VectorTask"
    code, out, err = call("fit", "train.csv", task, "--test", "test.csv", "--seeds", "3", "-o", "run", "--quiet")
    assert (code, err) == (0, "")
    assert "drift on 120 rows; a small network" in out
    assert "Try next: drift predict run new.csv -o out.csv --task FILE.py:VectorTask" in out
    record = json.loads((files / "run" / "metrics.json").read_text())
    assert record["task"] == "vectors"
    assert min(scores["accuracy"] for scores in record["test"]["scores"]) > 0.85  # the clouds hardly overlap

    code, out, err = call("predict", "run", "test.csv", task, "-o", "predicted.csv")
    assert (code, err) == (0, "")
    predicted = (files / "predicted.csv").read_text().split()[1:]
    code, out, _ = call("evaluate", "run", "test.csv", task)
    right = np.mean([label == ["low", "high"][code] for label, code in zip(predicted, codes, strict=True)])
    assert f"{100 * right:.2f} %" in out

    (files / "run" / REPORT).unlink()
    code, out, err = call("report", "run", task)
    assert (code, err) == (0, "")
    page = (files / "run" / REPORT).read_text(encoding="utf-8")
    assert "Results per class" in page
    assert "drift predict run new.csv -o out.csv --task FILE.py:VectorTask" in page
    assert "drift.load('run', task=VectorTask)" in html.unescape(page)

    code, out, err = call("compare", "run", task)
    assert (code, err) == (0, "")
    assert "test accuracy" in out

    run = drift.load("run", task=load_object("vector_task.py:VectorTask", "task"))
    assert run.predict(x) == predicted == drift.predict(run, "test.csv")


@pytest.mark.parametrize("method", ["self-training", "mean-teacher", "hard-self-training", "supervised", "bond"])
def test_methods_that_need_only_rows_serve_a_task_from_outside(files: Path, method: str) -> None:
    write_vectors(files / "train.csv", 60, seed=0, labeled=20)
    task = load_object("vector_task.py:VectorTask", "task")
    run = drift.fit("train.csv", task=task, method=method, seeds=2, quiet=True, settings={"training": STEPS})
    assert run.record.steps == (4 if method == "supervised" else 8)
    with pytest.raises(ConfigError, match="uda is for text, not for --task vectors"):
        drift.fit("train.csv", task=task, method="uda", quiet=True)


def test_a_folder_of_an_unknown_task_is_one_line(files: Path, call: Call) -> None:
    write_vectors(files / "train.csv", 60, seed=0, labeled=20)
    assert call("fit", "train.csv", "--task=vector_task.py:VectorTask", *FEW, "-o", "run", "--quiet")[0] == 0
    with pytest.raises(FileError, match="run is a run of task 'vectors', which is not built in; pass its class"):
        drift.load("run")
    code, out, err = call("predict", "run", "train.csv", "-o", "x.csv")
    assert (code, out, len(err.splitlines())) == (2, "", 1)


def test_settings_of_code_from_outside_are_searched_by_workers(files: Path) -> None:
    pytest.importorskip("optuna", reason="needs optuna: pip install 'drift-ssl[tune]'")
    write_vectors(files / "train.csv", 60, seed=0, labeled=20)
    write_vectors(files / "dev.csv", 30, seed=1)
    run = drift.tune(
        "train.csv",
        dev="dev.csv",
        task="vector_task.py:VectorTask",
        method="entropy_method.py:EntropyMinimization",
        seeds=2,
        n_trials=2,
        n_jobs=2,
        quiet=True,
        settings={"training": STEPS},
    )
    assert isinstance(run, Run)
    assert [trial.ended for trial in run.record.tuning.tried] == ["complete"] * 2


def test_a_record_that_does_not_fit_is_one_line(files: Path) -> None:
    write_vectors(files / "train.csv", 60, seed=0, labeled=20)

    class Colored(load_object("vector_task.py:VectorTask", "task")):  # type: ignore[misc]
        def facts(self) -> dict[str, Any]:
            return {**super().facts(), "color": "red"}

    with pytest.raises(ConfigError, match="vectors: facts and judge do not fit ClassRecord: color: extra inputs"):
        drift.fit("train.csv", task=Colored, seeds=2, quiet=True, settings={"training": STEPS})


def test_a_subclass_of_a_task_has_its_defaults() -> None:
    class Headlines(TextTask):
        name = "headlines"

    class Bare(Task):
        name = "bare"

    kind = TextTask.kinds["frozen"]
    assert Headlines.defaults(kind, weak=True) == TextTask.defaults(kind, weak=True)
    with pytest.raises(ConfigError, match=r"there is no defaults.yaml beside Bare; add one, or override `defaults`"):
        Bare.defaults(kind, weak=True)


@pytest.fixture
def reviews(files: Path, capfd: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Options of a small run on texts."""
    table = small_table(40, labeled=12)
    table["body"] = [f"{text} good" if row % 3 else f"{text} !!!" for row, text in enumerate(table["body"])]
    encoder = small_encoder(files / "encoder")
    write_csv(files / "reviews.csv", table)
    capfd.readouterr()  # transformers draws a bar while it writes the encoder
    return {"model": encoder, "text": "body", "seeds": 2, "quiet": True, "settings": {"training": STEPS, **SHORT}}


def test_a_method_from_outside_is_trained_saved_and_resumed(files: Path, call: Call, reviews: dict[str, Any]) -> None:
    name = "entropy_method.py:EntropyMinimization"
    options = [
        "--text=body",
        "--label=topic",
        "--seeds=2",
        f"--model={reviews['model']}",
        "--quiet",
        "--no-onnx",
        "--set=model.max_length=16",
        *FEW,
    ]
    code, _, err = call(
        "fit",
        "reviews.csv",
        "--method",
        name,
        "--set=method.weight=0.3",
        *options,
        "--test",
        "reviews.csv",
        "-o",
        "run",
    )
    assert (code, err) == (0, "")
    config = (files / "run" / "config.yaml").read_text()
    assert f"name: {name}" in config
    assert "weight: 0.3" in config
    assert len(drift.load("run").predict(["market profit"])) == 1

    with pytest.raises(ConfigError, match="its code is run only if you name it"):
        drift.fit(out="run", resume=True, quiet=True)
    again = drift.fit(out="run", resume=True, quiet=True, method=name)
    assert "was finished before; nothing was trained" in again.notes[-1]

    method = load_object(name, "method")
    by_class = drift.fit("reviews.csv", label="topic", method=method, out="by_class", onnx=False, **reviews)
    assert by_class.record.method == "drift_method_entropy_method:EntropyMinimization"
    assert drift.fit(out="by_class", resume=True, quiet=True, method=method).notes[-1].endswith("nothing was trained")
    plain = drift.fit("reviews.csv", label="topic", method=method, **reviews)
    strong = {**reviews, "settings": {"training": STEPS, **SHORT, "method.weight": 30.0}}
    coupled = drift.fit("reviews.csv", label="topic", method=method, **strong)
    texts = small_table(40)["body"]
    assert not np.array_equal(plain.predict_proba(texts), coupled.predict_proba(texts))  # the term has a gradient

    code, _, err = call("fit", "reviews.csv", "--method", name, "--set=method.wieght=1", *options, "-o", "other")
    assert (code, "did you mean 'weight'" in err, len(err.splitlines())) == (2, True, 1)


def test_code_that_only_a_stored_configuration_names_is_not_run(
    files: Path, call: Call, reviews: dict[str, Any]
) -> None:
    (files / "trap.py").write_text("raise SystemExit('it was run')")
    for settings in (
        {"method": {"name": "trap.py:Method"}},
        {"task": "trap.py:Task"},
        {"task": "nodes", "model": {"name": "trap.py:make"}},
        {"data": {"rules": "trap.py"}},
    ):
        (files / "config.yaml").write_text(json.dumps({**settings, "data": {"train": "t", **settings.get("data", {})}}))
        code, out, err = call("fit", "--config", "config.yaml", "-o", "run")
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert "its code is run only if you name it" in err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("entropy_method.py:Nothing", "entropy_method.py has no class 'Nothing'"),
        ("none.py:Method", "none.py is not there"),
        ("my_rules.py:POSITIVE", "my_rules.py has no class 'POSITIVE'"),
        ("vector_task.py:VectorModel", "VectorModel"),
    ],
)
def test_what_is_no_method_is_refused_in_one_line(files: Path, call: Call, name: str, message: str) -> None:
    (files / "t.csv").write_text("text,label\na,x\nb,y\n")
    code, out, err = call("fit", "t.csv", "--method", name, "-o", "run")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert message in err


def test_a_source_of_labels_from_outside(files: Path, reviews: dict[str, Any]) -> None:
    by_file = drift.fit("reviews.csv", rules="my_rules.py", **reviews)
    rules = load_object_rules(files / "my_rules.py")
    by_object = drift.fit("reviews.csv", rules=rules, **reviews)
    assert by_file.record.weak_labels.labeled.count == 40  # every text ends with one of the two
    assert by_file.record.rules == by_object.record.rules
    assert by_file.classes == ["bad", "good"]
    texts = small_table(20)["body"]
    assert np.array_equal(by_file.predict_proba(texts), by_object.predict_proba(texts))


def load_object_rules(path: Path) -> Any:
    module = ModuleType("my_rules")
    exec(path.read_text(), module.__dict__)
    return module.rules


def test_a_callback_ends_the_game_and_sees_every_hook(files: Path, reviews: dict[str, Any]) -> None:
    stop = load_object("stop_early.py:StopWhenLossIsLow", "callback")
    calls: list[str] = []

    class Recorder(drift.Callback):
        def __getattribute__(self, name: str) -> Any:
            if name.startswith("on_"):
                calls.append(name)
            return super().__getattribute__(name)

    options = {**reviews, "settings": {"training": {**STEPS, "evaluate_every": 1, "trace_every": 1}, **SHORT}}
    run = drift.fit("reviews.csv", label="topic", dev="reviews.csv", callbacks=[stop(below=1e9), Recorder()], **options)
    assert run.record.steps == STEPS["initial_steps"] + 1
    hooks = {name for name in vars(drift.Callback) if name.startswith("on_")}
    assert set(calls) == hooks
    assert calls[0] == "on_run_begin"
    assert calls[-1] == "on_run_end"
    assert calls.count("on_phase_begin") == calls.count("on_phase_end") == 2
