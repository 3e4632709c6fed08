"""The labelling loop: rows are suggested, a person fills in labels, and a run with them uses exactly these."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drift
from drift.errors import ConfigError, DriftError, LabelError
from tests.runs.small import same_weights, small_encoder, small_fit, small_table, write_csv
from tests.runs.small_graphs import small_graph, small_node_fit, write_tables
from tests.runs.small_tokens import read_jsonl, small_sentences, small_word_encoder, write_conll, write_jsonl

pandas = pytest.importorskip("pandas")
transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def filled_in(path: Path, truth: list[Any], label: str = "topic", *, keep: int | None = None) -> Any:
    """The table of suggestions as a person returns it. keep: rows that get a label, if not all."""
    table = pandas.read_csv(path)
    assert table[label].isna().all()
    table[label] = [truth[row - 1] for row in table["row"]]
    if keep is not None:
        table.loc[keep:, label] = None
    table.to_csv(path, index=False)
    return table


def test_filled_labels_are_the_same_as_labels_in_the_table(encoder: str, tmp_path: Path) -> None:
    truth, table = small_table(30)["topic"], small_table(30, labeled=8)
    train = write_csv(tmp_path / "train.csv", table)
    first = small_fit(train, encoder, out=tmp_path / "one", text="body", label="topic")
    drift.suggest(tmp_path / "one", train, 6, out=tmp_path / "ask.csv")
    chosen = filled_in(tmp_path / "ask.csv", truth, keep=4)
    again = drift.fit(from_run=tmp_path / "one", labels=tmp_path / "ask.csv", out=tmp_path / "two", quiet=True)
    assert again.record.label_budget.train == first.record.label_budget.train + 4
    assert any("4 labels were read" in note and "2 rows without a label" in note for note in again.notes)
    for row in chosen["row"][:4]:
        table["topic"][row - 1] = truth[row - 1]
    whole = small_fit(pandas.DataFrame(table), encoder, text="body", label="topic", labels_are="suggested")
    assert same_weights(again, whole)
    # The next round keeps the labels of this one, and does not suggest its rows again.
    drift.suggest(tmp_path / "two", train, 4, out=tmp_path / "more.csv")
    filled_in(tmp_path / "more.csv", truth)
    third = drift.fit(from_run=tmp_path / "two", labels=tmp_path / "more.csv", quiet=True)
    assert third.record.label_budget.train == again.record.label_budget.train + 4
    assert json.loads(json.dumps(again.record.columns)) == first.record.columns


def test_rows_are_found_by_content_if_the_table_was_sorted_and_other_tables_are_refused(
    encoder: str, tmp_path: Path
) -> None:
    table = pandas.DataFrame(small_table(20, labeled=6))
    truth = small_table(20)["topic"]
    labels = pandas.DataFrame({"row": [11, 12], "body": list(table["body"][10:12]), "topic": truth[10:12]})
    options = {"text": "body", "label": "topic"}
    backwards = table[::-1].reset_index(drop=True)
    run = small_fit(backwards, encoder, labels=labels, **options)
    assert run.record.label_budget.train == 8
    assert any("2 labels of the DataFrame were found by content" in note for note in run.notes)
    labels["body"] = ["never seen", "nor this"]
    with pytest.raises(
        LabelError, match=r"row 1: row 11 of the DataFrame holds something else, and 'never seen' is in"
    ):
        small_fit(table, encoder, labels=labels, **options)
    labels["topic"] = None
    with pytest.raises(LabelError, match="column 'topic' is empty in all 2 rows; fill in some"):
        small_fit(table, encoder, labels=labels, **options)


def test_labels_of_an_unlabelled_table_are_not_dropped_silently(encoder: str, tmp_path: Path) -> None:
    train = write_csv(tmp_path / "train.csv", small_table(12))
    more = write_csv(tmp_path / "more.csv", small_table(10, seed=1, labeled=4))
    options = {"unlabeled": more, "text": "body", "label": "topic"}
    ignored = small_fit(train, encoder, **options)
    warning = f"warning: 4 of 10 rows of {more} have a label in column 'topic', which --unlabeled ignores"
    assert any(note.startswith(warning) for note in ignored.notes)
    used = small_fit(train, encoder, labels=more, **options)
    assert used.record.label_budget.train == ignored.record.label_budget.train + 4
    assert not any("--unlabeled ignores" in note for note in used.notes)


def test_filled_labels_are_gold_beside_weak_ones(encoder: str) -> None:
    table = pandas.DataFrame(small_table(16))
    table["weak"] = table.pop("topic")
    truth = ["sport" if weak == "money" else "money" for weak in table["weak"][:8]]  # these weak labels are wrong
    labels = pandas.DataFrame({"body": table["body"][:8], "topic": truth})
    run = small_fit(table, encoder, labels=labels, text="body", weak="weak")
    column = table.assign(topic=[*truth, *[None] * 8])
    assert same_weights(run, small_fit(column, encoder, text="body", label="topic", weak="weak", gold="train"))
    assert run.metrics["label_budget"]["train"] == 8


def test_a_run_in_memory_names_what_is_missing(encoder: str, tmp_path: Path) -> None:
    small_fit(pandas.DataFrame(small_table(12)), encoder, out=tmp_path / "run", text="body", label="topic")
    with pytest.raises(ConfigError, match="was trained on the DataFrame, which is not in a file; give train again"):
        drift.fit(from_run=tmp_path / "run", quiet=True)
    with pytest.raises(ConfigError, match="leave out config and resume"):
        drift.fit(from_run=tmp_path / "run", resume=True, quiet=True)


@pytest.mark.parametrize("form", ["jsonl", "conll"])
def test_sentences(tmp_path: Path, form: str) -> None:
    encoder = small_word_encoder(tmp_path / "encoder")
    truth, table = small_sentences(16), small_sentences(16, labeled=6)
    train = write_jsonl(tmp_path / "train.jsonl", table)
    first = small_fit(train, encoder, task="tokens", finetune=False, out=tmp_path / "one")
    asked = tmp_path / f"ask.{form}"
    chosen = drift.suggest(tmp_path / "one", train, 3, out=asked)
    assert {each.row for each in chosen} <= set(range(7, 17))
    tags = [truth["ner_tags"][each.row - 1] for each in chosen]
    if form == "jsonl":
        rows = read_jsonl(asked)
        assert [(row["row"], row["ner_tags"]) for row in rows] == [(each.row, None) for each in chosen]
        for row, filled in zip(rows, tags, strict=True):
            row["ner_tags"] = filled
        write_jsonl(asked, {name: [row[name] for row in rows] for name in rows[0]})
    else:
        blocks = [block.splitlines() for block in asked.read_text().strip().split("\n\n")]
        assert [[line.split("\t")[:2] for line in block] for block in blocks] == [
            [[word, "_"] for word in truth["tokens"][each.row - 1]] for each in chosen
        ]
        lines = [
            "\n".join(line.replace("\t_\t", f"\t{tag}\t") for line, tag in zip(block, filled, strict=True))
            for block, filled in zip(blocks, tags, strict=True)
        ]
        asked.write_text("\n\n".join(lines) + "\n")
    again = drift.fit(from_run=tmp_path / "one", labels=asked, quiet=True)
    words = sum(map(len, tags))
    assert again.record.label_budget.train == first.record.label_budget.train + words


def test_sentences_that_cannot_be_written_or_have_tags(tmp_path: Path) -> None:
    encoder = small_word_encoder(tmp_path / "encoder")
    run = small_fit(pandas.DataFrame(small_sentences(8)), encoder, task="tokens", finetune=False)
    table = pandas.DataFrame(small_sentences(4))
    with pytest.raises(ConfigError, match=r"tags are lists, which csv cannot hold; write \.jsonl or \.conll"):
        drift.suggest(run, table, 2, out=tmp_path / "ask.csv")
    with pytest.raises(LabelError, match="every sentence has tags"):
        drift.suggest(run, table, 2)
    conll = write_conll(tmp_path / "all.conll", small_sentences(4))
    assert len(drift.suggest(run, conll, 2)) == 2  # the last column of a CoNLL file is tags only if it is named
    with pytest.raises(LabelError, match="every sentence has tags"):
        drift.suggest(run, conll, 2, label="2")


def test_nodes(tmp_path: Path) -> None:
    truth = small_graph(30, splits={})
    few = small_graph(30, splits={}, labels=np.where(np.arange(30) < 9, truth.labels, -1))
    nodes, edges = write_tables(tmp_path, few)
    first = small_node_fit(nodes, edges=edges, out=tmp_path / "one")
    chosen = drift.suggest(tmp_path / "one", nodes, 5, out=tmp_path / "ask.csv")
    assert len(chosen) == 5
    table = pandas.read_csv(tmp_path / "ask.csv")
    assert table["label"].isna().all()
    table["label"] = [truth.classes[truth.labels[int(name[1:])]] for name in table["node"]]
    table.to_csv(tmp_path / "ask.csv", index=False)
    again = drift.fit(from_run=tmp_path / "one", labels=tmp_path / "ask.csv", quiet=True)
    assert again.record.label_budget.train == first.record.label_budget.train + 5
    table["node"] = "n99"
    with pytest.raises(DriftError, match=r"row 1: .*no node 'n99'"):
        drift.fit(from_run=tmp_path / "one", labels=table, quiet=True)
    with pytest.raises(LabelError, match="every node has a label"):
        drift.suggest(again, small_graph(30, splits={}), 5)
