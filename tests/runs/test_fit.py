"""`drift.fit`: the same rows make the same classifier, and labels that it must not see change none of its bits."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

import drift
from drift.errors import ConfigError, DataError, DriftError, FileError, StateError
from drift.runs.result import Run
from drift.training.plan import Plan
from tests.runs.small import (
    COST,
    STEPS,
    metrics_of,
    same_weights,
    small_encoder,
    small_fit,
    small_table,
    weights,
    write_csv,
)

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
datasets = pytest.importorskip("datasets", reason="needs datasets: pip install 'drift-ssl[text]'")
pandas = pytest.importorskip("pandas")

Fit = Callable[..., Run]
TEXTS = small_table(12, seed=9)["body"]
CNN = {"model": {"maps": 5, "windows": [3, 2], "min_count": 1}}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def fit(encoder: str) -> Fit:
    def small(train: Any, **options: Any) -> Run:
        tables = ("unlabeled", "dev", "test")
        given = {name: pandas.DataFrame(options.pop(name)) for name in tables if isinstance(options.get(name), dict)}
        return small_fit(pandas.DataFrame(train) if isinstance(train, dict) else train, encoder, **options, **given)

    return small


def in_form(form: str, table: dict[str, list[Any]], folder: Path) -> Any:
    path = folder / f"table.{form}"
    if form == "DataFrame":
        return pandas.DataFrame(table)
    if form == "Dataset":
        return datasets.Dataset.from_dict(table)
    if form == "parquet":
        pandas.DataFrame(table).to_parquet(path)
    elif form == "jsonl.gz":
        lines = (json.dumps(dict(zip(table, row, strict=True))) for row in zip(*table.values(), strict=True))
        path.write_bytes(gzip.compress("\n".join(lines).encode()))
    else:
        write_csv(path, table)
    return path


def test_a_prior_of_another_number_of_classes_is_refused_before_anything_is_computed(fit: Fit) -> None:
    with pytest.raises(
        ConfigError, match=r"method\.prior has 3 shares, the labels have 2 classes; .* order: money, sport$"
    ):
        fit(small_table(24, labeled=8), settings={"method": {"prior": [1, 1, 1]}})


def test_a_prior_may_be_given_by_class_in_any_order(fit: Fit) -> None:
    table = small_table(24, labeled=8)
    by_order, by_name, other = (
        fit(table, settings={"method": {"prior": prior}})
        for prior in ([0.3, 0.7], {"sport": 0.7, "money": 0.3}, [0.7, 0.3])
    )
    assert same_weights(by_order, by_name)
    assert not same_weights(by_order, other)


def test_the_same_rows_make_the_same_classifier_whatever_they_come_in(fit: Fit, tmp_path: Path) -> None:
    table = small_table(24, labeled=8)
    runs = [fit(in_form(form, table, tmp_path)) for form in ("csv", "jsonl.gz", "parquet", "DataFrame", "Dataset")]
    assert all(same_weights(run, runs[0]) for run in runs)
    assert not same_weights(runs[0], fit(small_table(24, labeled=10)))  # which another label does not


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("frozen", {}),
        ("finetuned", {"finetune": True}),
        ("textcnn", {"model": "textcnn", "settings": CNN}),
    ],
)
def test_a_run_is_opened_as_it_was_left(fit: Fit, tmp_path: Path, kind: str, options: dict[str, Any]) -> None:
    run = fit(small_table(24, labeled=8), dev=small_table(8, seed=1), out=tmp_path / "run", **options)
    opened = drift.load(tmp_path / "run")
    assert (opened.model.kind, opened.classes) == (kind, ["money", "sport"])
    assert same_weights(run, opened)
    np.testing.assert_array_equal(opened.predict_proba(TEXTS), run.predict_proba(TEXTS))
    assert opened.predict(TEXTS) == run.predict(TEXTS)
    assert opened.metrics["calibration"]["temperature"] == opened.model.temperature != 1
    assert opened.notes == run.notes


def test_onnx_gives_the_same_probabilities(fit: Fit, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'drift-ssl[text]'")
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'drift-ssl[text]'")
    exact = {"model.precision": "float32"}  # as the ONNX model computes; by default some processors use bfloat16
    run = fit(small_table(24, labeled=8), dev=small_table(8, seed=1), out=tmp_path / "run", onnx=True, settings=exact)
    session = onnxruntime.InferenceSession(tmp_path / "run/model/model.onnx", providers=["CPUExecutionProvider"])
    inputs = run.model.tokenizer(TEXTS, padding=True, return_tensors="np")
    (found,) = session.run(None, {name: inputs[name].astype(np.int64) for name in ("input_ids", "attention_mask")})
    np.testing.assert_allclose(found, run.predict_proba(TEXTS), atol=1e-4)


def test_a_model_that_cannot_be_exported_is_kept_all_the_same(
    fit: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise StateError("the graph is far away")

    monkeypatch.setattr("drift.models.onnx_export.export_classifier", fails)
    fit(small_table(12), out=tmp_path / "frozen", onnx=True)
    opened = drift.load(tmp_path / "frozen")
    assert "warning: no model.onnx (the graph is far away)" in opened.notes
    fit(small_table(12), out=tmp_path / "cnn", onnx=True, model="textcnn", settings=CNN)
    assert any("no model.onnx" in note for note in drift.load(tmp_path / "cnn").notes)


def test_gold_labels_beside_weak_ones_change_no_bit(fit: Fit) -> None:
    table = small_table(24)
    table["crowd"] = [("sport", "money")[row % 2] if row % 5 == 0 else t for row, t in enumerate(table["topic"])]
    flipped = {**table, "topic": np.random.default_rng(0).permutation(table["topic"]).tolist()}
    one, other = (fit(each, weak="crowd", label="topic") for each in (table, flipped))
    assert same_weights(one, other)
    assert one.metrics["label_budget"] == {"train": 0, "dev": 0, "total": 0}


def test_labels_of_unlabelled_and_of_test_rows_change_no_bit(fit: Fit) -> None:
    more, test = small_table(16, seed=1), small_table(10, seed=2)
    flipped = [{**each, "topic": each["topic"][::-1]} for each in (more, test)]
    one = fit(small_table(8), unlabeled=more, test=test)
    other = fit(small_table(8), unlabeled=flipped[0], test=flipped[1])
    assert same_weights(one, other)
    assert one.model.temperature == other.model.temperature
    right, wrong = (run.metrics["test"]["scores"][0]["accuracy"] for run in (one, other))
    assert right == pytest.approx(1 - wrong)


def test_the_budget_counts_every_gold_label(fit: Fit) -> None:
    run = fit(small_table(24, labeled=9), dev=small_table(10, seed=1, labeled=7), test=small_table(10, seed=2))
    assert run.metrics["label_budget"] == {"train": 9, "dev": 7, "total": 16}
    run = fit(small_table(24), labels_per_class=3)
    assert run.metrics["label_budget"] == {"train": 6, "dev": 0, "total": 6}
    assert run.metrics["kept_because"] == "first: there is no dev set to choose by"


def test_a_seed_decides_everything(fit: Fit) -> None:
    one, again, other = (fit(small_table(24), labels_per_class=3, seed=seed) for seed in (1, 1, 2))
    assert same_weights(one, again)
    assert not same_weights(one, other)
    assert one.metrics["seeds"] == [1, 2]
    alone = fit(small_table(24), labels_per_class=3, seed=1, seeds=1)
    for name, value in weights(one).items():  # more seeds beside it change nothing but rounding
        torch.testing.assert_close(value, weights(alone)[name], atol=1e-5, rtol=1e-4)


def test_the_seed_that_is_kept_is_the_best_on_dev(fit: Fit) -> None:
    run = fit(small_table(24, labeled=4), dev=small_table(30, seed=1), seeds=5, training={"steps": 0})
    scores = [each["accuracy"] for each in run.metrics["dev"]["scores"]]
    assert scores[run.metrics["seeds"].index(run.metrics["kept_seed"])] == max(scores)
    dev = small_table(30, seed=1)
    right = np.mean([found == topic for found, topic in zip(run.predict(dev["body"]), dev["topic"], strict=True)])
    assert right == max(scores)


def test_a_configuration_given_back_gives_the_same_result(fit: Fit, tmp_path: Path) -> None:
    tables = {
        name: write_csv(tmp_path / f"{name}.csv", small_table(rows, seed=seed, labeled=labeled))
        for seed, (name, rows, labeled) in enumerate([("train", 24, 8), ("unlabeled", 6, 0), ("dev", 8, 8)])
    }
    first = fit(**tables, labels_per_class=3, seed=4, out=tmp_path / "first", settings={"method": {"tau": 0.4}})
    config = tmp_path / "first/config.yaml"
    again = drift.fit(config=config, out=tmp_path / "again", quiet=True, onnx=False)
    assert isinstance(again, Run)
    assert same_weights(first, again)
    assert (tmp_path / "again/config.yaml").read_text() == config.read_text()
    one, other = ({**metrics_of(tmp_path / name), **COST} for name in ("first", "again"))
    assert one == other


def test_the_configuration_says_what_was_done(fit: Fit, tmp_path: Path) -> None:
    fit(small_table(24, labeled=8), out=tmp_path / "run", label="topic", training={"steps": 3})
    config = yaml.safe_load((tmp_path / "run/config.yaml").read_text())
    assert config["training"]["steps"] == 3
    assert config["model"]["frozen"] is True
    assert config["data"]["label"] == "topic"
    assert config["data"]["train"] == "the DataFrame"


def test_a_plan_writes_nothing(encoder: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "dev": pandas.DataFrame(small_table(6, seed=1)),
        "out": tmp_path / "run",
        "model": encoder,
        "quiet": True,
        "settings": {"training": STEPS, "model": {"max_length": 32}},
    }
    plan = drift.plan(pandas.DataFrame(small_table(24, labeled=8)), **options)
    assert isinstance(plan, Plan)
    assert (plan.initial_steps, plan.steps, plan.budget.total) == (4, 4, 14)
    assert plan.evaluations == 3  # one per phase, and one of θinit
    assert "3 dev evaluations, " in plan.lines()[2]
    with pytest.warns(FutureWarning, match=r"fit\(dry_run=True\) is deprecated; use drift\.plan"):
        old: Any = drift.fit(pandas.DataFrame(small_table(24, labeled=8)), **options, dry_run=True)
    assert isinstance(old, Plan)
    assert (old.initial_steps, old.steps, old.evaluations, old.budget) == (4, 4, 3, plan.budget)
    assert not list(tmp_path.iterdir())


def test_a_parameter_that_does_not_exist_is_refused_by_every_function_that_takes_those_of_fit() -> None:
    for function in (drift.fit, drift.plan, drift.tune):
        with pytest.raises(TypeError, match="labels_per_clas"):
            function("rows.csv", labels_per_clas=3)  # type: ignore[operator]


def test_callbacks_are_called_during_training(fit: Fit) -> None:
    class Counting(drift.Callback):
        steps = evaluations = 0

        def on_step_end(self, state: Any) -> None:
            self.steps += 1

        def on_evaluate(self, state: Any, scores: Any) -> None:
            self.evaluations += 1

    counting = Counting()
    run = fit(small_table(24, labeled=8), dev=small_table(6, seed=1), callbacks=[counting])
    assert (counting.steps, counting.evaluations) == (run.metrics["steps"], 3) == (8, 3)


def test_a_finished_run_can_be_resumed_to_itself(fit: Fit, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", small_table(24, labeled=8))
    run = fit(path, out=tmp_path / "run")
    again = drift.fit(out=tmp_path / "run", resume=True, quiet=True, onnx=False)
    assert isinstance(again, Run)
    assert same_weights(run, again)


def test_what_is_said_beside_resume_is_heard(fit: Fit, tmp_path: Path) -> None:
    fit(write_csv(tmp_path / "t.csv", small_table(24, labeled=8)), out=tmp_path / "run")
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "run").rglob("*") if file.is_file()}
    for other in ({"test": "other.csv"}, {"method": "self-training"}, {"settings": {"training": {"steps": 7}}}):
        with pytest.raises(DriftError, match="resume with the same ones, or use a new folder"):
            drift.fit(out=tmp_path / "run", resume=True, quiet=True, **other)
    plan = drift.plan(out=tmp_path / "run", resume=True, quiet=True)
    assert (plan.initial_steps, plan.steps) == (4, 4)
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "run").rglob("*") if file.is_file()} == before


def test_a_run_is_not_resumed_with_other_tables(fit: Fit, tmp_path: Path) -> None:
    table = small_table(24, labeled=8)
    path = write_csv(tmp_path / "t.csv", table)
    fit(path, out=tmp_path / "run")
    for column, value in (("body", "another text"), ("topic", "sport")):
        write_csv(tmp_path / "t.csv", {**table, column: [value, *table[column][1:]]})
        with pytest.raises(StateError, match="the tables are not what they were when the run began"):
            drift.fit(out=tmp_path / "run", resume=True, quiet=True, onnx=False)


def test_cut_texts_are_told(fit: Fit) -> None:
    table = small_table(24)
    table["body"][3] = "goal " * 100_000
    for options in ({}, {"finetune": True, "training": {"steps": 1}}):
        notes = fit(table, **options).notes
        assert [note for note in notes if "were truncated" in note] == [
            "1 of 24 texts were truncated to 32 tokens; model.max_length sets the limit"
        ]


def test_the_record_says_which_class_shares_were_assumed_and_why(fit: Fit) -> None:
    table = small_table(24, labeled=8)
    shares = fit(table).record.class_shares
    assert sum(shares.shares) == pytest.approx(1)
    assert "predictions of the start on" in shares.source
    assert fit(table, settings={"method": {"prior": "uniform"}}).record.class_shares is None
    assert fit(table, method="supervised").record.class_shares is None


def test_empty_texts_are_texts(fit: Fit) -> None:
    table = small_table(24, labeled=8)
    table["body"][2] = table["body"][10] = ""
    run = fit(table, dev=small_table(6, seed=1))
    assert np.isfinite(run.predict_proba(["", "team"])).all()
    assert "warning: 2 of 24 rows have no text" in run.notes
    constant = fit({"body": ["same"] * 12, "topic": ["a", "b"] * 6}, text="body", label="topic")
    assert np.isfinite(constant.predict_proba(TEXTS)).all()
    with pytest.raises(DataError, match="column 'body' has no text in any row; name another with --text COLUMN"):
        fit({"body": [" ", None] * 6, "topic": ["a", "b"] * 6}, text="body", label="topic")


def test_labels_that_hardly_recur_are_warned_of(fit: Fit) -> None:
    texts = [f"text number {row}" for row in range(40)]
    notes = fit({"body": texts, "topic": texts}, text="body", label="topic").notes
    assert "warning: 40 labels are of 40 classes; is it the right column?" in notes
    some = fit({"body": texts, "topic": [f"class {row // 2}" for row in range(40)]}, text="body", label="topic")
    assert not [note for note in some.notes if "right column" in note]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "./none"}, "./none is not a model folder"),
        ({"settings": {"model": {"max_length": 2}}, "finetune": True}, "max_length is 2"),
        ({"model": "textcnn", "settings": {"model": {"vectors": "none.txt"}}}, "none.txt"),
        ({"labels_per_class": 20}, "class 'money' has 12 labelled rows, 20 were asked for"),
    ],
)
def test_a_run_that_cannot_begin_leaves_nothing_behind(
    fit: Fit, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(DriftError) as error:
        fit(small_table(24), out=tmp_path / "run", **options)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_folder_in_use_is_left_alone(fit: Fit, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(FileError, match="not empty"):
        fit(small_table(12), out=tmp_path)
    with pytest.raises(FileError, match="mine"):
        fit(small_table(12), out=tmp_path / "mine")
    with pytest.raises(DriftError, match="is not a run's folder"):
        drift.fit(out=tmp_path, resume=True)
    assert (tmp_path / "mine").read_text() == "mine"
    for function in (drift.fit, drift.plan):
        with pytest.raises(ConfigError, match="no table was given"):
            function(out=tmp_path / "new")


def test_a_run_is_one_line_and_survives_pickling(fit: Fit, tmp_path: Path) -> None:
    import joblib

    run = fit(small_table(24, labeled=8), test=small_table(10, seed=2), label="topic")
    assert repr(run).startswith("Run(text, drift, 2 classes, accuracy ")
    assert "on 10 test texts" in repr(run)
    assert "\n" not in repr(run)
    joblib.dump(run, tmp_path / "run.joblib")
    again = joblib.load(tmp_path / "run.joblib")
    np.testing.assert_array_equal(again.predict_proba(TEXTS), run.predict_proba(TEXTS))
