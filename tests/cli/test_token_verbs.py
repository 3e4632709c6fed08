"""`drift fit --task tokens` and what follows it, as people run them: results, and mistakes of every kind."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import drift
from tests.cli.conftest import Call, written_file
from tests.runs.small import STEPS, metrics_of, same_weights, small_fit
from tests.runs.small_tokens import read_jsonl, small_sentences, small_word_encoder, write_conll, write_jsonl

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")

RULES = """\
task: tokens
rules:
  - {name: places, type: LOC, phrases: [london, new york, berlin]}
  - {name: people, type: PER, phrases: [john, mary smith]}
"""
TEXT_RULES = "classes: [a, b]\nrules:\n  - {name: x, label: a, has: [london]}\n"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_word_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, encoder: str) -> Path:
    base = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRIFT_CACHE", str(base / "cache"))
        small_fit(write_jsonl(base / "t.jsonl", small_sentences(20)), encoder, task="tokens", out=base / "run")
    return base / "run"


@pytest.fixture
def folder(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a table each to train, choose and test on, and with rules."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    write_jsonl(tmp_path / "train.jsonl", small_sentences(20, labeled=8))
    write_jsonl(tmp_path / "dev.jsonl", small_sentences(8, seed=1))
    write_conll(tmp_path / "test.conll", small_sentences(10, seed=2))
    (tmp_path / "rules.yaml").write_text(RULES)
    return tmp_path


def quick(encoder: str) -> list[str]:
    """Options of `drift fit` that make what `small_fit` makes."""
    settings = [*(f"training.{name}={json.dumps(value)}" for name, value in STEPS.items()), "model.max_length=32"]
    chosen = [part for setting in settings for part in ("--set", setting)]
    return ["--task", "tokens", "--model", encoder, "--seeds", "2", "--quiet", "--no-onnx", "--frozen", *chosen]


def write_rows(path: Path, *rows: dict[str, Any]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_fit_predict_and_evaluate(folder: Path, call: Call, encoder: str) -> None:
    tables = ["--dev", "dev.jsonl", "--test", "test.conll"]
    code, out, err = call("fit", "train.jsonl", *tables, *quick(encoder), "-o", "runs/one")
    assert (code, err) == (0, "")
    for told in (" words; a head on a fixed encoder", "entity F1", "token accuracy", "gold labels", "Run: runs/one"):
        assert told in out
    twin = small_fit(
        "train.jsonl", encoder, task="tokens", dev="dev.jsonl", test="test.conll", out="runs/two", finetune=False
    )
    assert same_weights(twin, drift.load("runs/one"))

    assert written_file(call("predict", "runs/one", "dev.jsonl", "-o", "out.jsonl")) == "out.jsonl"
    assert [row["predicted"] for row in read_jsonl(Path("out.jsonl"))] == drift.predict("runs/one", "dev.jsonl")

    code, out, err = call("evaluate", "runs/one", "test.conll")
    assert (code, err) == (0, "")
    kept = metrics_of(folder / "runs/one")
    scores = kept["test"]["model"]
    assert out.startswith("10 of 10 rows have a label\n")
    for name, title in {"f1": "entity F1", "precision": "precision", "recall": "recall"}.items():
        assert f"{title:20} {100 * scores[name]:.2f} %" in out
    assert "\nPER " in out


def test_from_rules_and_no_tag_at_all(folder: Path, call: Call, encoder: str) -> None:
    write_jsonl(folder / "plain.jsonl", {"tokens": small_sentences(16)["tokens"]})
    code, out, err = call("fit", "plain.jsonl", "--rules", "rules.yaml", *quick(encoder), "-o", "run")
    assert (code, err) == (0, "")
    assert "Label budget: 0 gold labels" in out
    assert "words without a weak tag: O" in out


def test_a_dry_run_writes_nothing(folder: Path, call: Call, encoder: str) -> None:
    before = sorted(folder.rglob("*"))
    code, out, err = call("fit", "train.jsonl", "--finetune", *quick(encoder), "--dry-run", "-o", "run")
    assert (code, err) == (0, "")
    assert "4 steps to find the start" in out
    assert sorted(folder.rglob("*")) == before


def test_what_is_odd_but_right(folder: Path, call: Call, encoder: str) -> None:
    """One type alone; a dev set without entities; test sentences that were trained on, which is told."""
    write_rows(folder / "one.jsonl", *[{"tokens": ["john", "left"], "tags": ["B-PER", "O"]}] * 6)
    write_rows(folder / "none.jsonl", {"tokens": ["left"], "tags": ["O"]})
    tables = ["--dev", "none.jsonl", "--test", "one.jsonl"]
    code, out, err = call("fit", "one.jsonl", *tables, *quick(encoder), "-o", "run")
    assert (code, err) == (0, "")
    assert "warning: 6 test sentences are in train too" in out


MISTAKES = {
    "no file": (["none.jsonl"], "none.jsonl is not there"),
    "counts": (["counts.jsonl"], "counts.jsonl, row 2: 2 tokens and 1 labels"),
    "a column too few": (["short.conll"], "short.conll:2: 1 columns, the first line has 2"),
    "a tag outside the scheme": (["scheme.jsonl"], "scheme.jsonl, row 1, token 2: 'Q-X' is not a tag of IOB2"),
    "a tag outside the named scheme": (
        ["dev.jsonl", "--set", "data.scheme=BIOES", "--test", "wrong.conll"],
        "wrong.conll:2: 'X-PER' is not a tag of BIOES",
    ),
    "a scheme": (["dev.jsonl", "--set", "data.scheme=BIO"], "scheme 'BIO' is not one of IOB2"),
    "numbers for tags": (["numbers.jsonl"], "numbers.jsonl, row 1, token 1: 0 is not the name of a tag"),
    "spans that overlap": (["overlap.jsonl"], "overlap.jsonl, row 1: span 2-10 LOC overlaps 0-4 PER"),
    "a span that cuts a token": (["cut.jsonl"], "cut.jsonl, row 2: span 0-3 'joh' cuts the token 'john'"),
    "a span outside the text": (["outside.jsonl"], "outside.jsonl, row 1: span 5-99 is not within the 10 characters"),
    "no such column": (["dev.jsonl", "--tokens", "tokn"], "dev.jsonl has no column 'tokn'; did you mean 'tokens'?"),
    "no such column of tags": (["dev.jsonl", "--label", "ner_tag"], "did you mean 'ner_tags'?"),
    "no such weak column": (["dev.jsonl", "--weak", "noisy"], "dev.jsonl has no column 'noisy'"),
    "no column of words": (["other.jsonl"], "other.jsonl has no column 'tokens'"),
    "empty": (["empty.jsonl"], "empty.jsonl is empty"),
    "empty columns": (["empty.conll"], "empty.conll has no tokens in it"),
    "words in one string": (["joined.jsonl"], "column 'tokens' holds strings beside tags in 'labels'; give a list of"),
    "no tags": (["untagged.jsonl"], "untagged.jsonl: no word has a tag other than O"),
    "a type of dev alone": (
        ["train.jsonl", "--dev", "unseen.jsonl"],
        "unseen.jsonl, sentence 2: tag 'B-ORG' of 'john' is not among the training tags",
    ),
    "dev words without a tag": (["train.jsonl", "--dev", "holes.conll"], "holes.conll, sentence 1: 'left' has no tag"),
    "dev without tags": (["train.jsonl", "--dev", "untagged.jsonl"], "none of the 1 sentences has tags to score"),
    "rules for texts": (
        ["train.jsonl", "--rules", "texts.yaml"],
        "texts.yaml: these rules are for texts, not for tokens",
    ),
    "rules that find nothing": (["train.jsonl", "--rules", "tokyo.yaml"], "no word has a weak tag other than O"),
    "no rules": (["train.jsonl", "--rules", "none.yaml"], "none.yaml cannot be read"),
    "an unreadable model": (["train.jsonl", "--model", "./broken"], "./broken cannot be read as a text encoder"),
    "no model": (["train.jsonl", "--model", "./nothing"], "./nothing is not a model folder"),
    "labels per class": (
        ["train.jsonl", "--labels-per-class", "3"],
        "labels_per_class is not for --task tokens; words are labelled by the sentence: use data.labeled_rows",
    ),
    "too many rows": (["train.jsonl", "--set", "data.labeled_rows=9"], "8 sentences have tags; ask for fewer"),
    "textcnn": (["train.jsonl", "--model", "textcnn"], "'textcnn' is not a kind of model for tokens"),
    "another encoding": (["latin.conll"], "latin.conll:1: byte 0xe9 is not utf-8"),
    "another encoding in JSON": (["latin.jsonl"], "latin.jsonl:1: byte 0xe9 is not utf-8"),
    "what uncovered words are": (["train.jsonl", "--set", "data.uncovered=o"], "data.uncovered='o'"),
    "too few sub-words": (["train.jsonl", "--set", "model.max_length=5"], "leaves room for 3 sub-words"),
    "a task": (["train.jsonl", "--task", "token"], "there is no task 'token'; did you mean 'tokens'?"),
}


def write_mistakes(folder: Path) -> None:
    write_rows(folder / "counts.jsonl", {"tokens": ["a"], "tags": ["O"]}, {"tokens": ["a", "b"], "tags": ["O"]})
    write_rows(folder / "joined.jsonl", {"tokens": "Ann left", "labels": "B-PER O"})
    write_rows(folder / "scheme.jsonl", {"tokens": ["a", "b"], "tags": ["B-X", "Q-X"]})
    write_rows(folder / "numbers.jsonl", {"tokens": ["a", "b"], "tags": [0, 1]})
    write_rows(folder / "overlap.jsonl", {"text": "john lives", "spans": [[0, 4, "PER"], [2, 10, "LOC"]]})
    write_rows(folder / "cut.jsonl", *({"text": "john lives", "spans": [[0, end, "PER"]]} for end in (4, 3)))
    write_rows(folder / "outside.jsonl", {"text": "john lives", "spans": [[5, 99, "PER"]]})
    write_rows(folder / "other.jsonl", {"a": 1})
    write_rows(folder / "untagged.jsonl", {"tokens": ["john", "left"]})
    rows = {"tokens": ["left"], "tags": None}, {"tokens": ["john", "left"], "tags": ["B-ORG", "O"]}
    write_rows(folder / "unseen.jsonl", *rows)
    (folder / "short.conll").write_text("john\tB-PER\nleft\n")
    (folder / "wrong.conll").write_text("left\tO\njohn\tX-PER\n")
    (folder / "holes.conll").write_text("john\tB-PER\nleft\t_\n")
    (folder / "latin.conll").write_bytes("café\tO\n".encode("cp1252"))
    (folder / "latin.jsonl").write_bytes('{"tokens": ["café"], "tags": ["O"]}\n'.encode("cp1252"))
    (folder / "texts.yaml").write_text(TEXT_RULES)
    (folder / "tokyo.yaml").write_text(
        RULES.replace("london, new york, berlin", "tokyo").replace("john, mary smith", "x")
    )
    (folder / "empty.jsonl").touch()
    (folder / "empty.conll").touch()
    (folder / "broken").mkdir()
    (folder / "broken/config.json").write_text("{")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_fit_is_one_line_and_nothing_is_written(
    folder: Path, call: Call, encoder: str, mistake: str
) -> None:
    write_mistakes(folder)
    before = sorted(folder.rglob("*"))
    arguments, message = MISTAKES[mistake]
    code, out, err = call("fit", *quick(encoder), "-o", "run", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("drift: ")
    assert len(err.splitlines()) == 1
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "RUN", "none.jsonl", "-o", "out.conll"], "none.jsonl is not there"),
        (["predict", "RUN", "none.conll", "-o", "out.jsonl"], "none.conll is not there"),
        (["predict", "RUN", "empty.conll", "-o", "out.conll"], "empty.conll has no tokens in it"),
        (["predict", "RUN", "empty.conll", "-o", "out.csv"], "empty.conll has no tokens in it"),
        (["predict", "RUN", "other.jsonl", "-o", "out.csv"], "other.jsonl has no column 'tokens'"),
        (["predict", "RUN", "dev.jsonl", "-o", "out.csv", "--text", "tokn"], "did you mean 'tokens'?"),
        (["predict", "RUN", "dev.jsonl", "-o", "out.csv", "--text", "id"], "row 1: the tokens are '0', not a list"),
        (["predict", "RUN", "dev.jsonl", "-o", "out.xlsx"], "out.xlsx"),
        (["predict", "RUN", "latin.conll", "-o", "out.csv"], "latin.conll:1: byte 0xe9 is not utf-8"),
        (["evaluate", "RUN", "unseen.jsonl"], "label 'B-ORG' is not among the training labels"),
        (["evaluate", "RUN", "untagged.jsonl"], "none of the 1 sentences has tags to score against"),
        (["evaluate", "RUN", "counts.jsonl"], "counts.jsonl, row 2: 2 tokens and 1 labels"),
        (["evaluate", "RUN", "short.conll"], "short.conll:2: 1 columns"),
        (
            ["suggest", "RUN", "dev.jsonl", "-o", "out.csv"],
            "out.csv: tags are lists, which csv cannot hold; write .jsonl or .conll",
        ),
        (
            ["suggest", "RUN", "dev.jsonl", "-o", "out.jsonl"],
            "dev.jsonl: every sentence has tags; nothing is left to suggest",
        ),
    ],
)
def test_a_mistake_in_the_other_verbs(
    folder: Path, call: Call, trained: Path, arguments: list[str], message: str
) -> None:
    write_mistakes(folder)
    before = sorted(folder.rglob("*"))
    code, out, err = call(*(str(trained) if part == "RUN" else part for part in arguments))
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("verb", ["predict RUN test.conll -o out.conll", "evaluate RUN test.conll"])
def test_columns_are_read_at_a_terminal_too(
    folder: Path, call: Call, trained: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, _, err = call(*(str(trained) if part == "RUN" else part for part in verb.split()))
    assert code == 0
    if verb.startswith("predict"):
        assert "10 of 10 rows" in err


def test_another_encoding_is_read_where_it_is_named(folder: Path, call: Call, trained: Path) -> None:
    (folder / "latin.conll").write_bytes("café\tO\n".encode("cp1252"))
    assert call("predict", str(trained), "latin.conll", "-o", "out.conll", "--encoding", "cp1252")[0] == 0
    assert (folder / "out.conll").read_text(encoding="utf-8").startswith("café\t")


def test_a_model_that_was_damaged_is_one_line(folder: Path, call: Call, trained: Path) -> None:
    shutil.copytree(trained, "copy")
    Path("copy/model/model.safetensors").write_bytes(b"not weights")
    code, out, err = call("predict", "copy", "dev.jsonl", "-o", "out.jsonl")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert not Path("out.jsonl").exists()
