"""Going on from a run: new rows and a new class, through `--from RUN --add TABLE`, again and again."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import drift
from drift.cli.main import app
from drift.errors import ConfigError, LabelError
from tests.runs.small import STEPS, same_weights, small_encoder, small_fit, small_table, write_csv

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
pandas = pytest.importorskip("pandas")

ART = {"body": ["season price goal market"] * 3 + ["win bank coach stock", "team shares"], "topic": ["art"] * 4 + [""]}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Any:
    base = tmp_path_factory.mktemp("going-on")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRIFT_CACHE", str(base / "cache"))
        write_csv(base / "t.csv", small_table(24, labeled=8))
        write_csv(base / "art.csv", ART)
        small_fit(str(base / "t.csv"), small_encoder(base / "encoder"), out=base / "one")
        yield base


def test_a_new_class_is_learned_beside_the_labels_of_the_old_run(base: Path) -> None:
    run = drift.fit(from_run=base / "one", add=base / "art.csv", out=base / "two", quiet=True)
    assert run.classes == ["art", "money", "sport"]
    assert run.record.training_rows == 29
    assert run.record.label_budget.train == 12
    assert any("5 rows were added from" in note and "4 with a label" in note for note in run.notes)
    assert run.labeled is not None
    assert sorted(set(run.labeled.labels)) == ["art", "money", "sport"]


def test_it_equals_a_table_with_all_rows(base: Path, tmp_path: Path) -> None:
    table = small_table(24, labeled=8)
    whole = {name: table[name] + ART[name] for name in ART}
    source = write_csv(tmp_path / "whole.csv", whole)
    settings = {"training": STEPS, "model": {"max_length": 32, "name": str(base / "encoder")}}
    one = drift.fit(source, settings=settings, labels_are="per-class", seeds=2, quiet=True)
    assert same_weights(one, drift.fit(from_run=base / "one", add=str(base / "art.csv"), quiet=True))


def test_the_next_run_has_all_tables(base: Path, tmp_path: Path) -> None:
    drift.fit(from_run=base / "one", add=base / "art.csv", out=tmp_path / "two", quiet=True)
    more = pandas.DataFrame({"body": ["goal goal", "profit"], "topic": ["sport", "law"]})
    third = drift.fit(from_run=tmp_path / "two", add=more, out=tmp_path / "three", quiet=True)
    assert third.classes == ["art", "law", "money", "sport"]
    assert third.record.training_rows == 31
    with pytest.raises(ConfigError, match="give them again, all in a list"):
        drift.fit(from_run=tmp_path / "three", add=more, quiet=True)


def test_on_the_command_line(base: Path, tmp_path: Path) -> None:
    command = ["fit", "--from", str(base / "one"), "--add", str(base / "art.csv"), "-o", str(tmp_path / "run")]
    done = CliRunner().invoke(app, [*command, "--quiet"])
    assert done.exit_code == 0, done.output
    assert drift.load(tmp_path / "run").classes == ["art", "money", "sport"]


def test_where_classes_are_named_a_new_one_is_named_too(base: Path, tmp_path: Path) -> None:
    names = {"money": "stock market bank", "sport": "team game goal"}
    texts = write_csv(tmp_path / "texts.csv", {"body": small_table(24)["body"]})
    with pytest.raises(LabelError, match=r"'art' is a label, and not among the classes.*add it to --classes"):
        small_fit(texts, str(base / "encoder"), classes=names, add=str(base / "art.csv"))
    run = small_fit(texts, str(base / "encoder"), classes={**names, "art": "coach"}, add=str(base / "art.csv"))
    assert run.classes == ["art", "money", "sport"]
    assert run.record.label_budget.train == 4


def test_a_table_without_labels_and_other_tasks_are_refused(base: Path, tmp_path: Path) -> None:
    plain = write_csv(tmp_path / "plain.csv", {"body": small_table(24)["body"]})
    with pytest.raises(ConfigError, match="no column that looks like labels"):
        drift.fit(from_run=base / "one", add=plain, quiet=True)
    with pytest.raises(ConfigError, match="add is not for --task tokens"):
        drift.fit("sentences.jsonl", task="tokens", add=plain)
    same = write_csv(tmp_path / "same.csv", {"body": ["a b"] * 6, "topic": ["art"] * 6})
    with pytest.raises(LabelError, match="at least two classes"):
        drift.fit(same, add=same, quiet=True)
