"""Runs from class names and from several sources of noisy labels, with and without gold labels."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import drift
from drift.cli.main import app
from drift.errors import ConfigError, DriftError, LabelError
from drift.runs.report import write_report
from drift.runs.request import request
from drift.runs.run import new_task, prepare
from drift.runs.summary import limits, result
from drift.tasks.text.labeling import label_by_names
from tests.runs.small import WORDS, metrics_of, same_weights, small_encoder, small_fit, small_table, write_csv

NAMES = {"money": " ".join(WORDS["money"]), "sport": " ".join(WORDS["sport"])}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture
def table(tmp_path: Path) -> dict[str, list[Any]]:
    """60 texts with votes of three annotators, the second of whom is often wrong."""
    columns = small_table(60)
    truth, rng = columns["topic"], np.random.default_rng(0)
    other = {"money": "sport", "sport": "money"}
    columns["anna"] = list(truth)
    columns["ben"] = [other[name] if rng.random() < 0.4 else name for name in truth]
    columns["gpt"] = [None if row % 3 == 0 else name for row, name in enumerate(truth)]
    columns["gpt_sure"] = [0.9] * 60
    return columns


def without(columns: dict[str, list[Any]], *names: str) -> dict[str, list[Any]]:
    return {name: values for name, values in columns.items() if name not in names}


def texts_only(tmp_path: Path, rows: int = 60) -> str:
    return write_csv(tmp_path / "texts.csv", {"body": small_table(rows)["body"]})


def test_soft_weak_labels_can_be_kept_in_the_game(tmp_path: Path, encoder: str, table: dict[str, list[Any]]) -> None:
    source = write_csv(tmp_path / "votes.csv", without(table, "topic"))
    kept, thrown = (
        small_fit(source, encoder, weak=["anna", "ben", "gpt=gpt_sure"], training={"keep_weak_labels": keep})
        for keep in (True, False)
    )
    assert not same_weights(kept, thrown)


def test_class_names_alone_make_a_run_that_predicts_from_its_folder(tmp_path: Path, encoder: str) -> None:
    test = write_csv(tmp_path / "test.csv", small_table(20, seed=1))
    run = small_fit(texts_only(tmp_path), encoder, classes=NAMES, test=test, label="topic", out=tmp_path / "run")
    assert run.classes == ["money", "sport"]
    metrics = metrics_of(tmp_path / "run")
    assert metrics["label_budget"]["total"] == 0
    assert metrics["weak"] is True
    found = metrics["sources"]
    (names,) = found["sources"]
    assert (names["name"], names["source"], names["coverage"]["of"]) == ("class names", "names", 60)
    assert sum(each["texts"] for each in found["caught"]) == 60
    assert all(1 <= len(each["examples"]) <= 3 for each in found["caught"])
    assert metrics["choice"]["kept_start"] == 2
    assert "class names already use all texts" in metrics["choice"]["reason"]
    assert "the start was kept (labels from class names" in result(run.record)
    assert not any("did not help" in limit for limit in limits(run.record))
    again = drift.load(tmp_path / "run")
    texts = small_table(6, seed=2)["body"]
    np.testing.assert_array_equal(again.predict_proba(texts), run.predict_proba(texts))
    page = write_report(tmp_path / "run").read_text(encoding="utf-8")
    assert "What the class names caught" in page


def test_after_names_the_game_is_played_on_request(tmp_path: Path, encoder: str) -> None:
    asked = small_fit(texts_only(tmp_path), encoder, {"return_to_start": False}, classes=NAMES, out=tmp_path / "run")
    assert {each["name"] for each in metrics_of(tmp_path / "run")["source_changes"]} == {"class names"}
    labeled = write_csv(tmp_path / "some.csv", small_table(60))
    both = small_fit(labeled, encoder, classes=NAMES, label="topic", gold="train", labels_per_class=2)
    assert asked.record.phases[-1].phase == "game"
    assert both.record.phases[-1].phase == "start"


def test_names_in_any_form_are_the_same_run(tmp_path: Path, encoder: str) -> None:
    file = tmp_path / "classes.yaml"
    file.write_text("".join(f"{name}: {phrase}\n" for name, phrase in NAMES.items()), encoding="utf-8")
    source = texts_only(tmp_path)
    runs = [small_fit(source, encoder, classes=classes) for classes in (NAMES, file, {**NAMES})]
    assert same_weights(runs[0], runs[1])
    assert same_weights(runs[0], runs[2])


def test_labels_of_every_row_only_measure_and_labels_of_some_rows_are_trained_on(tmp_path: Path, encoder: str) -> None:
    whole = write_csv(tmp_path / "whole.csv", small_table(40))
    some = write_csv(tmp_path / "some.csv", small_table(40, labeled=8))
    measured, trained = (small_fit(source, encoder, classes=NAMES) for source in (whole, some))
    assert measured.record.label_budget.total == 0
    assert measured.record.sources.sources[0].accuracy.of > 0
    assert any("they only measure" in note for note in measured.notes)
    assert trained.record.label_budget.train == 8
    assert any("8 labels in column 'topic' are trained on" in note for note in trained.notes)
    assert trained.record.estimate is not None  # cross-fitted on the gold labels
    ignored = small_fit(some, encoder, classes=NAMES, gold="measure")
    assert ignored.record.label_budget.total == 0
    assert same_weights(measured, small_fit(texts_only(tmp_path, 40), encoder, classes=NAMES))


def test_gold_rows_keep_their_labels_in_both_phases(tmp_path: Path, encoder: str) -> None:
    """The sources say the opposite of the gold labels: the batches still hold the gold ones."""
    columns = small_table(30, labeled=10)
    other = {"money": "sport", "sport": "money", None: "money"}
    columns["wrong"] = [other[name] for name in columns["topic"]]
    columns["wrong"][29] = "sport"
    columns["sure"] = [0.9] * 30
    source = write_csv(tmp_path / "t.csv", columns)
    settings = {"model.max_length": 32}
    spec = request(source, model=encoder, weak="wrong=sure", label="topic", gold="train", seeds=2, settings=settings)
    task = new_task(spec, quiet=True)
    task.read(spec.sources)
    training = prepare(task).training
    first, second = training.labeled, training.second
    assert second is not None
    gold = [0 if name == "money" else 1 for name in columns["topic"][:10]]
    for trial in range(2):
        for row, label in zip(second.rows[trial].tolist(), second.labels[trial].tolist(), strict=True):
            assert label == gold[row]
        kept_out = set(range(10)) - set(second.rows[trial].tolist())
        _, y = first.pair(torch.arange(first.rows.shape[1]).expand(2, -1))
        for row, target in zip(first.rows[trial].tolist(), y[trial].tolist(), strict=True):
            if row < 10 and row not in kept_out:
                assert target == [float(gold[row] == 0), float(gold[row] == 1)]
            else:
                assert max(target) == pytest.approx(0.9)
    assert training.budget.train == 10


def test_one_hard_column_is_the_same_run_however_it_is_given(tmp_path: Path, encoder: str, table: Any) -> None:
    source = write_csv(tmp_path / "t.csv", without(table, "topic"))
    one = small_fit(source, encoder, weak="anna")
    assert same_weights(one, small_fit(source, encoder, weak=["anna"]))
    as_json = [json.dumps({name: 1.0}) for name in table["anna"]]
    probabilities = write_csv(tmp_path / "p.csv", {"body": table["body"], "votes": as_json})
    assert same_weights(one, small_fit(probabilities, encoder, weak="votes"))


def test_several_sources_are_combined_and_judged(tmp_path: Path, encoder: str, table: Any) -> None:
    source = write_csv(tmp_path / "t.csv", table)
    weak = ["anna", "ben", "gpt=gpt_sure"]
    run = small_fit(source, encoder, weak=weak, classes=NAMES, label="topic", out=tmp_path / "run")
    found = run.record.sources
    assert [each.name for each in found.sources] == ["anna", "ben", "gpt", "class names"]
    by_name = {each.name: each for each in found.sources}
    assert by_name["anna"].accuracy.rate == 1.0
    assert by_name["anna"].estimated_accuracy > by_name["ben"].estimated_accuracy
    assert by_name["gpt"].coverage.count == 40
    assert len(found.agreement) == 6
    assert found.disagreements
    assert found.disagreements[0].label in ("money", "sport")
    config = (tmp_path / "run" / "config.yaml").read_text(encoding="utf-8")
    assert "gpt=gpt_sure" in config
    page = write_report(tmp_path / "run").read_text(encoding="utf-8")
    assert "Texts on which sources disagree most" in page


def test_votes_against_classes_are_counted_as_such(tmp_path: Path, encoder: str, table: dict[str, list[Any]]) -> None:
    table["third"] = ["art"] * 4 + table["anna"][4:]
    table["against"] = [f"not {'sport' if name == 'money' else 'money'}" for name in table["topic"]]
    source = write_csv(tmp_path / "t.csv", table)
    found = small_fit(source, encoder, weak=["anna", "ben", "third", "against"], label="topic").record.sources.sources
    assert found[3].labels == {"art": 0, "money": 0, "sport": 0, "not money": 30, "not sport": 30}
    assert found[3].accuracy.rate == 1.0
    assert found[3].estimated_accuracy > 0.9
    only = write_csv(tmp_path / "only.csv", {"body": table["body"], "against": [*table["against"][:59], "not art"]})
    with pytest.raises(LabelError, match="name 0 of 3 classes: the others are only excluded"):
        small_fit(only, encoder, weak="against")


def test_rules_and_columns_are_sources_of_one_run(tmp_path: Path, encoder: str, table: Any) -> None:
    rules = tmp_path / "rules.yaml"
    listed = [f"  - {{name: {name}, label: {name}, has: [{', '.join(WORDS[name])}]}}" for name in WORDS]
    rules.write_text("rules:\n" + "\n".join(listed) + "\n", encoding="utf-8")
    source = write_csv(tmp_path / "t.csv", without(table, "topic"))
    run = small_fit(source, encoder, weak="ben", rules=rules)
    assert [each.name for each in run.record.sources.sources] == ["ben", "rules"]
    assert run.record.rules is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": "money"}, "only the class 'money' is named"),
        ({"classes": "money, politics", "weak": "anna"}, "is not among the classes"),
        ({"weak": ["anna", "nobody"]}, "no column 'nobody'"),
        ({"weak": "anna=ben"}, "give a number from 0 to 1"),
        ({"weak": ["anna", "ben", "anna"]}, "--weak anna is given twice"),
        ({"weak": ["anna", "ben"], "task": "tokens"}, "more_weak is not for --task tokens"),
        ({"classes": "a, b", "task": "nodes"}, "classes is not for --task nodes"),
        ({"classes": "a, b", "gold": "some"}, "gold"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, encoder: str, table: Any, options: dict[str, Any], message: str) -> None:
    source = write_csv(tmp_path / "t.csv", without(table, "topic"))
    with pytest.raises(DriftError, match=message) as caught:
        small_fit(source, encoder, **options)
    assert isinstance(caught.value, (ConfigError, LabelError))


def test_an_annotator_who_always_says_the_same_is_noted(tmp_path: Path, encoder: str, table: Any) -> None:
    table["lazy"] = ["sport"] * 60
    table["silent"] = [None] * 60
    source = write_csv(tmp_path / "t.csv", without(table, "topic"))
    run = small_fit(source, encoder, weak=["anna", "lazy", "silent"])
    assert any("'lazy' says 'sport' on each of its 60 rows" in note for note in run.notes)
    assert any("'silent' abstains on every row" in note for note in run.notes)


def test_labelling_by_names_writes_labels_and_shows_examples(tmp_path: Path, encoder: str) -> None:
    source, out = write_csv(tmp_path / "t.csv", small_table(40)), tmp_path / "out.csv"
    done = label_by_names(source, NAMES, out, text="body", gold="topic", model=encoder, max_length=32)
    assert done.coverage.count == sum(label is not None for label in done.labels) == 20
    assert done.accuracy.of == 20
    header, *rows = out.read_text(encoding="utf-8").splitlines()
    assert header == "id,body,topic,weak,nearest"
    assert len(rows) == 40


def test_commands(tmp_path: Path, encoder: str) -> None:
    source, classes = write_csv(tmp_path / "t.csv", small_table(40)), tmp_path / "classes.yaml"
    classes.write_text("".join(f"{name}: {phrase}\n" for name, phrase in NAMES.items()), encoding="utf-8")
    run = CliRunner().invoke
    labelled = run(app, ["label", source, "--classes", str(classes), "--model", encoder, "--label", "topic", "--quiet"])
    assert labelled.exit_code == 0, labelled.output
    assert "nearest text" in labelled.output
    assert "Labelled: 50.0% of 40 texts" in labelled.output
    settings = ["training.initial_steps=4", "training.steps=4", "training.trackers=[]", "model.max_length=32"]
    sets = [part for each in settings for part in ("--set", each)]
    arguments = ["fit", source, "--classes", str(classes), "--model", encoder, "--seeds", "2", "--quiet", *sets]
    fitted = run(app, [*arguments, "-o", str(tmp_path / "run")])
    assert fitted.exit_code == 0, fitted.output
    assert "class names" in fitted.output
    assert "Label budget: 0 gold labels" in fitted.output
    neither = run(app, ["label", source])
    assert isinstance(neither.exception, ConfigError)
