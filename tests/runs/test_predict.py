"""Predicting and scoring tables: every row and column is kept, in pieces as in one, and scores are scikit-learn's."""

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

import drift
from drift.errors import ConfigError, DataError, DriftError, FileError, LabelError
from drift.runs.predict import predict_file
from drift.runs.result import Run
from drift.tasks.record import VERSION
from tests.runs.small import metrics_of, small_encoder, small_fit, small_table, write_csv

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
datasets = pytest.importorskip("datasets", reason="needs datasets: pip install 'drift-ssl[text]'")
pandas = pytest.importorskip("pandas")

ROWS = 1100  # more than two pieces
ADDED = ["predicted", "confidence", "p_money", "p_sport"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run that learned a little, so that it is right here and wrong there."""
    base = tmp_path_factory.mktemp("predict")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRIFT_CACHE", str(base / "cache"))
        train = write_csv(base / "train.csv", small_table(24, labeled=6))
        dev = pandas.DataFrame(small_table(8, seed=1))
        small_fit(train, small_encoder(base / "encoder"), dev=dev, out=base / "run", text="body", label="topic")
    return base / "run"


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return drift.load(folder)


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def test_every_row_and_column_is_kept_in_order(run: Run, folder: Path, tmp_path: Path) -> None:
    table = small_table(ROWS, seed=3)
    table["body"][700] = ""
    path = write_csv(tmp_path / "new.csv", table)
    chunks: list[None] = []
    labels = drift.predict(folder, path, tmp_path / "out.csv", tick=lambda: chunks.append(None))
    found = rows(tmp_path / "out.csv")
    assert len(chunks) == 3
    assert labels == [row["predicted"] for row in found] == drift.predict(run, path)
    assert list(found[0]) == ["id", "body", "topic", *ADDED]
    for name in table:
        assert [row[name] for row in found] == table[name]
    expected = run.predict_proba(table["body"])
    np.testing.assert_allclose([[float(row[name]) for name in ADDED[2:]] for row in found], expected, atol=1e-5)
    assert [row["predicted"] for row in found] == run.predict(table["body"])
    assert all(row["confidence"] == row[f"p_{row['predicted']}"] for row in found)


@pytest.mark.parametrize("form", ["csv", "tsv.gz", "jsonl.gz", "parquet"])
def test_every_form_holds_the_same_predictions(run: Run, tmp_path: Path, form: str) -> None:
    table = small_table(20, seed=3)
    drift.predict(run, pandas.DataFrame(table), tmp_path / f"out.{form}")
    labels = drift.predict(run, tmp_path / f"out.{form}")
    assert labels == run.predict(table["body"]) == drift.predict(run, datasets.Dataset.from_dict(table))


def test_the_columns_that_were_found_in_training_are_those_of_every_later_table(folder: Path, tmp_path: Path) -> None:
    train = {"note": ["what somebody wrote about it, at some length"] * 24, **small_table(24, labeled=6)}
    run = small_fit(pandas.DataFrame(train), str(folder.parent / "encoder"))  # "body" and "topic" by their names
    assert run.metrics["columns"] == {"text": "body", "label": "topic"}
    new = small_table(10, seed=3)
    other = {"text": ["team"] * 10, "label": ["sport"] * 10, **new}  # where others are more obvious
    assert drift.predict(run, pandas.DataFrame(other)) == run.predict(new["body"])
    expected = drift.evaluate(run, pandas.DataFrame(new))
    assert drift.evaluate(run, pandas.DataFrame(other)) == expected


def test_rows_below_the_threshold_get_no_label(run: Run, tmp_path: Path) -> None:
    table = small_table(60, seed=3)
    confidence = run.predict_proba(table["body"]).max(1)
    threshold = float(np.median(confidence))
    found = drift.predict(run, pandas.DataFrame(table), abstain_below=threshold)
    assert found == [
        label if sure else None for label, sure in zip(run.predict(table["body"]), confidence >= threshold, strict=True)
    ]
    assert 0 < sum(label is None for label in found) < 60
    drift.predict(run, pandas.DataFrame(table), tmp_path / "out.csv", abstain_below=threshold)
    assert [row["predicted"] or None for row in rows(tmp_path / "out.csv")] == found
    assert all(float(row["confidence"]) > 0 for row in rows(tmp_path / "out.csv"))


def test_a_file_is_predicted_to_the_same_table_without_keeping_labels(run: Run, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "new.csv", small_table(ROWS, seed=3))
    chunks: list[None] = []
    options: dict[str, Any] = {"abstain_below": 0.55, "tick": lambda: chunks.append(None)}
    assert predict_file(run, path, tmp_path / "out.csv", **options) == ROWS
    assert len(chunks) == 3
    drift.predict(run, path, tmp_path / "twin.csv", abstain_below=0.55)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "twin.csv").read_bytes()


def test_columns_of_the_table_are_never_written_over(run: Run, tmp_path: Path) -> None:
    path = Path(write_csv(tmp_path / "0.csv", small_table(6, seed=3)))
    for number in (1, 2, 3):
        drift.predict(run, path, tmp_path / f"{number}.csv")
        path = tmp_path / f"{number}.csv"
    names = list(rows(path)[0])
    assert len(names) == 3 + 3 * len(ADDED)
    assert names[-4:] == [f"{name}_by_drift_by_drift" for name in ADDED]


def test_the_source_may_be_the_target(run: Run, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", small_table(600, seed=3))
    drift.predict(run, path, path)
    assert [row["predicted"] for row in rows(Path(path))] == run.predict(small_table(600, seed=3)["body"])


def test_scores_are_scikit_learns(run: Run, tmp_path: Path) -> None:
    table = small_table(ROWS, seed=3)
    table["topic"] = [topic if row % 10 else "" for row, topic in enumerate(table["topic"])]
    table["topic"][1:40:4] = ["money"] * 10
    found = drift.evaluate(run, write_csv(tmp_path / "t.csv", table), abstain_below=0.6)
    known = [row for row, topic in enumerate(table["topic"]) if topic]
    truth, guess = [table["topic"][row] for row in known], run.predict([table["body"][row] for row in known])
    assert (found["rows"], found["labeled_rows"]) == (ROWS, len(known))
    assert found["accuracy"] == pytest.approx(accuracy_score(truth, guess))
    assert found["macro_f1"] == pytest.approx(f1_score(truth, guess, average="macro"))
    sure = run.predict_proba(table["body"]).max(1)[known] >= 0.6
    assert found["covered"] == pytest.approx(sure.mean())
    if sure.any():
        assert found["accuracy_where_sure"] == pytest.approx((np.array(truth) == np.array(guess))[sure].mean())
    assert "covered" not in drift.evaluate(run, tmp_path / "t.csv")


def test_where_nothing_is_sure_there_is_no_accuracy(run: Run) -> None:
    found = drift.evaluate(run, pandas.DataFrame(small_table(6)), abstain_below=1.0)
    assert (found["covered"], found["accuracy_where_sure"]) == (0, None)


def test_predictions_are_never_taken_for_labels(run: Run, tmp_path: Path) -> None:
    plain = write_csv(tmp_path / "new.csv", {"body": small_table(20, seed=3)["body"]})
    for number in range(2):  # a second time on its own table, whose new columns have longer names
        drift.predict(run, plain, tmp_path / f"predicted{number}.csv")
        plain = str(tmp_path / f"predicted{number}.csv")
        with pytest.raises(DataError, match="no column that looks like labels"):
            drift.evaluate(run, plain)


def test_columns_are_those_of_training_unless_told(run: Run, tmp_path: Path) -> None:
    table = small_table(6, seed=3)
    decoy = {"text": ["something else entirely"] * 6, "label": ["x"] * 6, **table}
    assert drift.predict(run, pandas.DataFrame(decoy)) == run.predict(table["body"])
    assert drift.evaluate(run, pandas.DataFrame(decoy))["labeled_rows"] == 6
    renamed = pandas.DataFrame({"review": table["body"], "stars": table["topic"]})
    assert drift.predict(run, renamed, text="review") == run.predict(table["body"])
    for verb in (drift.predict, drift.evaluate, drift.suggest):
        with pytest.raises(ConfigError, match="the DataFrame has no column 'body', which the run was trained on; name"):
            verb(run, renamed)
    assert drift.predict(run, pandas.DataFrame(decoy), text="text") == run.predict(decoy["text"])


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (
            {"body": ["a"], "topic": ["weather"]},
            {},
            "row 1: label 'weather' is not among the training labels (money, sp",
        ),
        ({"body": ["a"], "topic": [None]}, {}, "none of the 1 rows has a label to score against"),
        ({"body": ["a"]}, {}, "no column that looks like labels; name it with --label"),
        ({"body": ["a"], "topic": ["money"]}, {"label": "topics"}, "has no column 'topics'; did you mean 'topic'?"),
        ({"body": ["a"], "topic": ["money"]}, {"text": "bdy"}, "has no column 'bdy'; did you mean 'body'?"),
        ({"body": ["a", 7], "topic": ["money"] * 2}, {}, "row 2: the text is 7, not a string"),
    ],
)
def test_tables_that_do_not_fit_are_one_line(
    run: Run, table: dict[str, list[Any]], options: dict[str, str], message: str
) -> None:
    with pytest.raises((ConfigError, DataError, LabelError)) as error:
        drift.evaluate(run, pandas.DataFrame(table), **options)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_fault_leaves_no_table_behind(run: Run, tmp_path: Path) -> None:
    frame = pandas.DataFrame({"body": [*small_table(600)["body"], 7]})
    with pytest.raises(DataError, match="row 601"):
        drift.predict(run, frame, tmp_path / "out.csv")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    for folder, message in ((tmp_path, "finished run"), (tmp_path / "none", "none is not there; give the folder")):
        with pytest.raises(FileError, match=message):
            drift.load(folder)
    for content, message in {
        "[]": "metrics.json is not the record of a run; copy the run's folder again",
        "{}": "metrics.json is not the record of a run",
        '{"task": 3}': "metrics.json is not the record of a run",
        '{"task": "text"}': r"metrics.json is damaged: unit: field required \(and \d+ more faults\); copy",
        '{"task": "images"}': "is a run of task 'images', which is not built in; pass its class as task=",
        "{": "metrics.json cannot be read .*finished run",
    }.items():
        (tmp_path / "metrics.json").write_text(content)
        with pytest.raises(FileError, match=message) as error:
            drift.load(tmp_path)
        assert "\n" not in str(error.value)


def test_a_run_without_its_model_or_of_another_task_or_version(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "run")
    with pytest.raises(FileError, match="is a run of task 'text', not of 'tokens'"):
        drift.load(tmp_path / "run", task="tokens")
    shutil.rmtree(tmp_path / "run" / "model")
    with pytest.raises(DriftError, match="cannot be opened as a trained model"):
        drift.load(tmp_path / "run")
    record = metrics_of(tmp_path / "run")
    assert record["version"] == VERSION
    (tmp_path / "run" / "metrics.json").write_text(json.dumps({**record, "version": VERSION + 1}))
    with pytest.raises(FileError, match=f"version {VERSION + 1}; this drift reads up to {VERSION}: install a newer"):
        drift.load(tmp_path / "run")


def test_a_record_without_a_version_is_read(run: Run, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "run")
    record = metrics_of(folder)
    del record["version"]
    (tmp_path / "run" / "metrics.json").write_text(json.dumps(record))
    opened = drift.load(tmp_path / "run")
    assert opened.record.version == 1
    assert opened.metrics == record
    assert opened.predict(["team", "bank"]) == run.predict(["team", "bank"])


def test_metrics_and_notes_are_what_the_folder_holds_and_copies(run: Run, folder: Path) -> None:
    assert run.metrics == metrics_of(folder)
    assert run.notes == metrics_of(folder)["notes"]
    run.notes.append("mine")
    run.metrics["steps"] = 0
    assert run.metrics == metrics_of(folder)
    assert run.notes == metrics_of(folder)["notes"]
