"""Tagging files of sentences: every row and column is kept, and entities have their positions in the text."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drift
from drift.data.tags import spans_of
from drift.errors import DataError, DriftError, FileError
from drift.runs.result import Run
from drift.tasks.tokens.predict import ROWS_PER_CHUNK
from tests.runs.small import small_fit
from tests.runs.small_tokens import read_jsonl, small_sentences, small_word_encoder, write_conll, write_jsonl

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
datasets = pytest.importorskip("datasets", reason="needs datasets: pip install 'drift-ssl[text]'")
pandas = pytest.importorskip("pandas")

ROWS = 2 * ROWS_PER_CHUNK + 20
TEST = small_sentences(30, seed=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a run that was trained a little, so that some of its predictions are wrong."""
    base = tmp_path_factory.mktemp("predict")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRIFT_CACHE", str(base / "cache"))
        small_fit(
            pandas.DataFrame(small_sentences(30)),
            small_word_encoder(base / "encoder"),
            {"initial_steps": 60, "initial_learning_rate": 0.03, "batch_size": 64},
            task="tokens",
            dev=pandas.DataFrame(small_sentences(8, seed=1)),
            test=pandas.DataFrame(TEST),
            out=base / "run",
        )
    return base / "run"


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return drift.load(folder)


def test_every_row_and_column_is_kept_in_order(run: Run, folder: Path, tmp_path: Path) -> None:
    table = small_sentences(ROWS, seed=3)
    table["tokens"][ROWS_PER_CHUNK] = []
    table["ner_tags"][ROWS_PER_CHUNK] = []
    ticks: list[None] = []
    source = write_jsonl(tmp_path / "new.jsonl", table)
    tags = drift.predict(folder, source, tmp_path / "out.jsonl", tick=lambda: ticks.append(None))
    rows = read_jsonl(tmp_path / "out.jsonl")
    assert len(ticks) == 3
    assert list(rows[0]) == ["id", "tokens", "ner_tags", "predicted", "entities"]
    for name in table:
        assert [row[name] for row in rows] == table[name]
    assert [row["predicted"] for row in rows] == run.predict(table["tokens"]) == drift.predict(run, source) == tags
    assert (rows[ROWS_PER_CHUNK]["predicted"], rows[ROWS_PER_CHUNK]["entities"]) == ([], [])


def test_entities_are_the_spans_of_the_tags(run: Run, tmp_path: Path) -> None:
    drift.predict(run, pandas.DataFrame(TEST), tmp_path / "out.jsonl")
    seen = 0
    for row, probabilities in zip(read_jsonl(tmp_path / "out.jsonl"), run.predict_proba(TEST["tokens"]), strict=True):
        text, words = " ".join(row["tokens"]), row["tokens"]
        spans = spans_of(row["predicted"])
        assert len(row["entities"]) == len(spans)
        for entity, span in zip(row["entities"], spans, strict=True):
            assert entity["text"] == text[entity["start"] : entity["end"]] == " ".join(words[span.start : span.end])
            assert entity["label"] == span.type
            of_type = [code for code, tag in enumerate(run.classes) if tag[2:] == span.type]
            sure = probabilities[span.start : span.end, of_type].sum(1).mean()
            assert entity["confidence"] == pytest.approx(sure, abs=1e-6)
            seen += 1
    assert seen > 10


def test_positions_are_characters_of_the_raw_text(run: Run, tmp_path: Path) -> None:
    texts = ["  john  lives in new york.\nmary smith(london)", "", "😀 ann, berlin"]
    drift.predict(run, pandas.DataFrame({"text": texts}), tmp_path / "out.jsonl")
    rows = read_jsonl(tmp_path / "out.jsonl")
    assert [row["text"] for row in rows] == texts
    assert [bool(row["entities"]) for row in rows] == [True, False, True]
    for row in rows:
        words = [match.span() for match in re.finditer(r"\w+|[^\w\s]", row["text"])]  # every punctuation mark is a word
        assert len(row["predicted"]) == len(words)
        expected = [(words[span.start][0], words[span.end - 1][1]) for span in spans_of(row["predicted"])]
        assert [(each["start"], each["end"]) for each in row["entities"]] == expected
        assert all(each["text"] == row["text"][each["start"] : each["end"]] for each in row["entities"])


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_tags_are_json_text_in_formats_without_lists(run: Run, tmp_path: Path, form: str) -> None:
    drift.predict(run, pandas.DataFrame(TEST), tmp_path / f"out.{form}")
    frame = getattr(pandas, f"read_{form}")(tmp_path / f"out.{form}")
    assert [json.loads(tags) for tags in frame["predicted"]] == run.predict(TEST["tokens"])
    assert all(set(each) >= {"start", "end", "label"} for row in frame["entities"] for each in json.loads(row))
    assert list(frame["id"]) == TEST["id"]


@pytest.mark.parametrize("form", ["jsonl.gz", "parquet", "conll", "conll.gz"])
def test_written_files_can_be_read_again(run: Run, tmp_path: Path, form: str) -> None:
    drift.predict(run, pandas.DataFrame(TEST), tmp_path / f"out.{form}")
    assert drift.predict(run, tmp_path / f"out.{form}") == run.predict(TEST["tokens"])
    scores = drift.evaluate(run, tmp_path / f"out.{form}")
    if "conll" in form:  # whose tags are the predicted ones
        assert scores["f1"] == 1
    else:
        assert scores == drift.evaluate(run, pandas.DataFrame(TEST))


def test_blank_cells_stay_blank_if_lists_are_text(run: Run, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "in.jsonl", small_sentences(3, labeled=1))
    drift.predict(run, tmp_path / "in.jsonl", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert json.loads(rows[0]["ner_tags"]) == small_sentences(3)["ner_tags"][0]
    assert [row["ner_tags"] for row in rows[1:]] == ["", ""]


def test_columns_of_the_table_are_never_overwritten(run: Run, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", {"tokens": [["john"]], "predicted": ["mine"], "entities": [7]})
    drift.predict(run, source, source)
    (row,) = read_jsonl(Path(source))
    assert (row["predicted"], row["entities"]) == ("mine", 7)
    assert row["predicted_by_drift"] == run.predict([["john"]])[0]


def test_conll_columns_are_read_and_written(run: Run, tmp_path: Path) -> None:
    write_conll(tmp_path / "in.conll", TEST)
    drift.predict(run, tmp_path / "in.conll", tmp_path / "out.jsonl")
    rows = read_jsonl(tmp_path / "out.jsonl")
    assert [row["tokens"] for row in rows] == TEST["tokens"]
    assert [row["predicted"] for row in rows] == run.predict(TEST["tokens"])


@pytest.mark.parametrize("word", ["", " ", "a\tb", "a\nb", "a\r", " a"])
def test_a_word_that_conll_columns_cannot_hold_is_refused(run: Run, tmp_path: Path, word: str) -> None:
    table = pandas.DataFrame({"tokens": [["john"], ["in", word]]})
    with pytest.raises(DataError, match=r"the DataFrame, row 2: .* cannot stand in CoNLL columns"):
        drift.predict(run, table, tmp_path / "out.conll")
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("out.conll", "out.jsonl"):
        with pytest.raises(FileError, match="cannot be written"):
            drift.predict(run, pandas.DataFrame(TEST), tmp_path / "file" / name)


def test_entities_below_the_threshold_are_left_out(run: Run, tmp_path: Path) -> None:
    drift.predict(run, pandas.DataFrame(TEST), tmp_path / "all.jsonl")
    before = read_jsonl(tmp_path / "all.jsonl")
    threshold = float(np.median([each["confidence"] for row in before for each in row["entities"]]))
    drift.predict(run, pandas.DataFrame(TEST), tmp_path / "sure.jsonl", abstain_below=threshold)
    after = read_jsonl(tmp_path / "sure.jsonl")
    for whole, sure in zip(before, after, strict=True):
        assert sure["entities"] == [each for each in whole["entities"] if each["confidence"] >= threshold]
        assert len(spans_of(sure["predicted"])) == len(sure["entities"])
    assert sum(len(row["entities"]) for row in after) < sum(len(row["entities"]) for row in before)


def test_scores_are_those_of_the_run(run: Run, tmp_path: Path) -> None:
    scores = drift.evaluate(run, write_conll(tmp_path / "test.conll", TEST))
    kept = run.record.model_scores("test")
    assert {name: scores[name] for name in kept} == pytest.approx(kept)
    assert scores["by_type"] == run.metrics["by_type"]
    # The temperature is in the float32 weights, so that a row near the edge of a bin may change it.
    assert scores["calibration_error"] == pytest.approx(run.metrics["calibration"]["error_after"], abs=1e-3)
    assert 0 < scores["f1"] < 1


def test_scores_say_how_many_sentences_they_are_of(run: Run) -> None:
    table = pandas.DataFrame(small_sentences(12, seed=4, labeled=5))
    scores = drift.evaluate(run, table)
    assert (scores["rows"], scores["labeled_rows"]) == (12, 5)
    assert scores["f1"] == drift.evaluate(run, table[:5])["f1"]


def test_columns_are_those_that_were_named_in_training(folder: Path, tmp_path: Path) -> None:
    named = {"words_of_it": TEST["tokens"], "tags_of_it": TEST["ner_tags"]}
    encoder = str(folder.parent / "encoder")
    run = small_fit(pandas.DataFrame(named), encoder, task="tokens", tokens="words_of_it", label="tags_of_it")
    decoy = {"tokens": [["ann"]] * 30, "tags": [["O"]] * 30, **named}
    assert drift.predict(run, pandas.DataFrame(decoy)) == run.predict(TEST["tokens"])
    expected = drift.evaluate(run, pandas.DataFrame(named))
    assert drift.evaluate(run, pandas.DataFrame(decoy)) == expected
    assert drift.evaluate(run, pandas.DataFrame(TEST)) == expected  # if they are missing, obvious ones are taken
    assert drift.evaluate(run, write_conll(tmp_path / "t.conll", TEST)) == expected
    assert drift.predict(run, pandas.DataFrame(decoy), text="tokens") == run.predict(decoy["tokens"])


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ({"tokens": [["a"]], "tags": [["B-ORG"]]}, {}, "word 1: label 'B-ORG' is not among the training labels"),
        ({"tokens": [["a"]], "tags": [None]}, {}, "none of the 1 sentences has tags to score against"),
        ({"tokens": [["a"]]}, {}, "none of the 1 sentences has tags to score against"),
        ({"tokens": [["a"]], "tags": [["O"]]}, {"label": "tgs"}, "did you mean 'tags'?"),
        ({"tokens": [["a"]], "tags": [["O"]]}, {"text": "tokns"}, "did you mean 'tokens'?"),
        ({"tokens": [["a", 7]], "tags": [["O", "O"]]}, {}, "row 1, token 2: 7 is not a string"),
    ],
)
def test_tables_that_do_not_fit_are_one_line(
    run: Run, table: dict[str, list[Any]], options: dict[str, str], message: str
) -> None:
    with pytest.raises(DriftError) as error:
        drift.evaluate(run, pandas.DataFrame(table), **options)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_an_error_leaves_no_table_behind(run: Run, tmp_path: Path) -> None:
    frame = pandas.DataFrame({"tokens": [*small_sentences(ROWS_PER_CHUNK)["tokens"], [7]]})
    with pytest.raises(DataError, match=f"row {ROWS_PER_CHUNK + 1}, token 1: 7 is not a string"):
        drift.predict(run, frame, tmp_path / "out.jsonl")
    assert not list(tmp_path.iterdir())


def test_a_sentence_of_a_hundred_thousand_words(run: Run, tmp_path: Path) -> None:
    words = ["john", "lives", "in", "new", "york"] * 20_000
    write_jsonl(tmp_path / "long.jsonl", {"tokens": [words], "tags": [["B-PER", "O", "O", "B-LOC", "I-LOC"] * 20_000]})
    drift.predict(run, tmp_path / "long.jsonl", tmp_path / "out.jsonl")
    (row,) = read_jsonl(tmp_path / "out.jsonl")
    assert len(row["predicted"]) == len(words)
    last = row["entities"][-1]
    assert " ".join(words)[last["start"] : last["end"]] == last["text"]
    assert drift.evaluate(run, tmp_path / "long.jsonl")["by_type"]["PER"]["true"] == 20_000
