"""`drift fit`, `predict`, `evaluate`, `label` and `methods` as people run them: results, mistakes, and Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import drift
from drift.data import tables
from drift.methods import METHODS
from tests.cli.conftest import Call, written_file
from tests.runs.small import STEPS, metrics_of, same_weights, small_encoder, small_fit, small_table, write_csv

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
pytest.importorskip("datasets", reason="needs datasets: pip install 'drift-ssl[text]'")

SCRIPT = Path(sys.executable).with_name("drift")
RULES = """\
classes: [money, sport]
rules:
  - {name: games, label: sport, has: [team, goal, coach, win]}
  - {name: banks, label: money, has: [bank, stock, fund, trade]}
"""


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, encoder: str) -> Path:
    base = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRIFT_CACHE", str(base / "cache"))
        small_fit(write_csv(base / "t.csv", small_table(24, labeled=8)), encoder, out=base / "run", label="topic")
    return base / "run"


@pytest.fixture
def folder(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a table each to train, choose and test on, and with rules."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    write_csv(tmp_path / "train.csv", small_table(24, labeled=8))
    write_csv(tmp_path / "full.csv", small_table(24))
    write_csv(tmp_path / "dev.csv", small_table(8, seed=1))
    write_csv(tmp_path / "test.csv", small_table(10, seed=2))
    (tmp_path / "rules.yaml").write_text(RULES)
    return tmp_path


def quick(encoder: str, **training: object) -> list[str]:
    """Options of `drift fit` that make what `small_fit` makes."""
    steps = {**STEPS, **training}
    settings = [*(f"training.{name}={json.dumps(value)}" for name, value in steps.items()), "model.max_length=32"]
    chosen = [part for setting in settings for part in ("--set", setting)]
    return ["--model", encoder, "--seeds", "2", "--quiet", "--no-onnx", *chosen]


def test_fit_predict_and_evaluate(folder: Path, call: Call, encoder: str) -> None:
    code, out, err = call(
        "fit", "train.csv", "--dev", "dev.csv", "--test", "test.csv", *quick(encoder), "-o", "runs/one"
    )
    assert (code, err) == (0, "")
    for words in ("drift on 24 texts", "± ", "Label budget: 16 gold labels (8 to train, 8 dev)", "Run: runs/one"):
        assert words in out
    twin = small_fit("train.csv", encoder, dev="dev.csv", test="test.csv", out="runs/two")
    assert same_weights(twin, drift.load("runs/one"))
    configs = [(folder / "runs" / name / "config.yaml").read_text() for name in ("one", "two")]
    assert configs[0] == configs[1]

    assert written_file(call("predict", "runs/one", "test.csv", "-o", "out.jsonl")) == "out.jsonl"
    written = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert [row["predicted"] for row in written] == drift.predict("runs/one", "test.csv")

    code, out, err = call("evaluate", "runs/one", "test.csv", "--abstain-below", "0.9")
    scores = drift.evaluate("runs/one", "test.csv", abstain_below=0.9)
    assert (code, err) == (0, "")
    assert out.startswith("10 of 10 rows have a label in column 'topic'\n")
    assert f"accuracy             {100 * scores['accuracy']:.2f} %" in out
    assert f"covered              {100 * scores['covered']:.2f} %" in out
    kept = metrics_of(folder / "runs/one")
    place = kept["seeds"].index(kept["kept_seed"])
    assert kept["test"]["scores"][place]["accuracy"] == pytest.approx(scores["accuracy"])


def test_from_rules_and_no_label_at_all(folder: Path, call: Call, encoder: str) -> None:
    assert call("label", "full.csv", "--rules", "rules.yaml", "-o", "weak.csv")[0] == 0
    code, out, _ = call("fit", "weak.csv", "--weak", "weak", *quick(encoder), "-o", "column")
    assert code == 0
    assert "Label budget: 0 gold labels" in out
    assert call("fit", "full.csv", "--rules", "rules.yaml", *quick(encoder), "-o", "rules")[0] == 0
    assert same_weights(drift.load("column"), drift.load("rules"))


def test_models_are_listed_and_so_are_encoders_on_the_shelf(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "small-encoder").mkdir()
    (tmp_path / "small-encoder" / "config.json").write_text("{}")
    (tmp_path / "no-encoder").mkdir()
    monkeypatch.setenv("DRIFT_MODELS", str(tmp_path))
    code, out, _ = call("models")
    assert code == 0
    assert {line.split()[0] for line in out.splitlines()} >= {"default", "textcnn", "vampire", "gcn", "grand"}
    assert "small-encoder     text, tokens  in $DRIFT_MODELS" in out
    assert "no-encoder" not in out
    monkeypatch.delenv("DRIFT_MODELS")
    assert "DRIFT_MODELS" not in call("models")[1]


def test_methods_are_listed_a_line_each(call: Call) -> None:
    code, out, _ = call("methods")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["method", *METHODS]


def test_a_dry_run_writes_nothing(folder: Path, call: Call, encoder: str) -> None:
    before = sorted(folder.rglob("*"))
    code, out, err = call("fit", "train.csv", *quick(encoder), "--dry-run", "-o", "run")
    assert (code, err) == (0, "")
    assert "4 steps to find the start" in out
    assert sorted(folder.rglob("*")) == before


MISTAKES = {
    "no file": (["none.csv"], "none.csv is not there"),
    "no table": ([], "no table was given"),
    "no column": (["train.csv", "--text", "bdy"], "train.csv has no column 'bdy'; did you mean 'body'?"),
    "one column for two": (["train.csv", "--text", "body", "--label", "body"], "each must be a column of its own"),
    "empty": (["empty.csv"], "empty.csv is empty"),
    "a line too long": (["broken.csv"], "broken.csv:3: 4 fields, the header has 3"),
    "another encoding": (["latin.csv"], "latin.csv:2: byte 0xe9 is not utf-8"),
    "no format": (["train.xlsx"], "train.xlsx"),
    "a class of dev alone": (["train.csv", "--dev", "other.csv"], "other.csv, row 1: label 'weather' is not among"),
    "one class": (["one.csv", "--label", "topic"], "every label is 'money'"),
    "several labels per row": (["several.csv"], "column 'topic' holds several labels per row, such as 'money|sport'"),
    "too many a class": (["full.csv", "--labels-per-class", "13"], "class 'money' has 12 labelled rows"),
    "a rule's class": (["full.csv", "--rules", "class.yaml"], "did you mean 'sport'?"),
    "a rule's pattern": (["full.csv", "--rules", "pattern.yaml"], "cannot read the pattern '(['"),
    "no rules": (["full.csv", "--rules", "none.yaml"], "none.yaml cannot be read"),
    "method": (["train.csv", "--method", "drfit"], "did you mean 'drift'?"),
    "setting": (
        ["train.csv", "--set", "training.stps=3"],
        "there is no 'training.stps'; did you mean 'training.steps'?",
    ),
    "setting without its group": (["train.csv", "--set", "steps=3"], "no 'steps'; did you mean 'training.steps'?"),
    "a share too few": (
        ["train.csv", "--set", "method.prior={money: 0.5}"],
        "method.prior has no share for class 'sport'; give a share for each of the 2 classes",
    ),
    "a share of no class": (
        ["train.csv", "--set", "method.prior={money: 0.5, sport: 0.3, weather: 0.2}"],
        "method.prior has a share for 'weather', which is not a class; the classes are 'money', 'sport'",
    ),
    "a share in words": (
        ["train.csv", "--set", "method.prior={money: half, sport: half}"],
        "or one number per class: a list in class order, or {class: share}",
    ),
    "a forgotten task": (["train.csv", "--edges", "e.csv"], "edges is not for --task text; use --task nodes"),
    "setting like no other": (["train.csv", "--set", "training.foo=3"], "there is no 'training.foo' (there are: seed,"),
    "setting of the method": (["train.csv", "--set", "method.alhpa=3"], "did you mean 'alpha'?"),
    "group": (["train.csv", "--set", "model=textcnn"], "is not a group of settings"),
    "preset": (["train.csv", "--preset", "agnew"], "did you mean 'agnews'?"),
    "profile": (["train.csv", "--profile", "papr"], "did you mean 'paper'?"),
    "no value": (["train.csv", "--set", "training.steps"], "write key=value"),
    "no configuration": (["train.csv", "--config", "none.yaml"], "none.yaml cannot be read"),
    "no model": (["train.csv", "--model", "./nothing"], "./nothing is not a model folder"),
    "in use": (["train.csv", "-o", "used"], "used is not empty; give another folder"),
    "a file": (["train.csv", "-o", "train.csv"], "'train.csv' is a file"),
    "no run": (["--resume", "-o", "used"], "used is not a run's folder"),
    "no run for the table": (["train.csv", "--resume", "-o", "none"], "none holds no run to resume"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_fit_is_one_line_and_nothing_is_written(
    folder: Path, call: Call, encoder: str, mistake: str
) -> None:
    (folder / "empty.csv").touch()
    (folder / "broken.csv").write_text("id,body,topic\n1,a b,x\n2,a,b,y\n")
    (folder / "latin.csv").write_bytes("body,topic\ncafé,money\n".encode("cp1252"))
    (folder / "train.xlsx").touch()
    write_csv(folder / "other.csv", {**small_table(2), "topic": ["weather", "art"]})
    write_csv(folder / "one.csv", {**small_table(9), "topic": ["money"] * 9})
    write_csv(folder / "several.csv", {**small_table(12), "topic": ["money", "sport", "money|sport"] * 4})
    (folder / "class.yaml").write_text(RULES.replace("label: sport", "label: sprot"))
    (folder / "pattern.yaml").write_text(RULES.replace("has: [bank, stock, fund, trade]", "matches: '(['"))
    (folder / "used").mkdir()
    (folder / "used/mine").write_text("mine")
    before = sorted(folder.rglob("*"))
    arguments, message = MISTAKES[mistake]
    code, out, err = call("fit", *quick(encoder), "-o", "run", *arguments)
    assert (code, out) == (2, "")
    assert sum(message in line for line in err.splitlines()) == 1
    if "Usage" not in err:  # how the parser of options tells of a fault
        assert len(err.splitlines()) == 1
        assert err.startswith("drift: ")
    assert "Traceback" not in err
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "none", "test.csv", "-o", "out.csv"], "none is not there; give the folder of a run"),
        (["predict", "RUN", "none.csv", "-o", "out.csv"], "none.csv is not there"),
        (["predict", "RUN", "test.csv", "-o", "out.xlsx"], "out.xlsx"),
        (["predict", "RUN", "test.csv", "-o", "out.csv", "--text", "bdy"], "did you mean 'body'?"),
        (["predict", "RUN", "latin.csv", "-o", "out.csv"], "latin.csv:2: byte 0xe9 is not utf-8"),
        (["predict", "RUN", "late.csv", "-o", "out.csv"], "late.csv:602: 4 fields"),
        (["evaluate", "RUN", "test.csv", "--label", "topics"], "did you mean 'topic'?"),
        (["evaluate", "RUN", "other.csv"], "other.csv, row 1: label 'weather' is not among the training labels"),
        (["label", "test.csv", "--rules", "none.yaml"], "none.yaml cannot be read"),
    ],
)
def test_a_mistake_in_the_other_verbs(
    folder: Path, call: Call, trained: Path, arguments: list[str], message: str
) -> None:
    (folder / "latin.csv").write_bytes("body,topic\ncafé,money\n".encode("cp1252"))
    write_csv(folder / "other.csv", {**small_table(2), "topic": ["weather", "art"]})
    with Path(write_csv(folder / "late.csv", small_table(600))).open("a") as file:
        file.write("1,2,3,4\n")
    before = sorted(folder.rglob("*"))
    code, out, err = call(*(str(trained) if part == "RUN" else part for part in arguments))
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
    assert sorted(folder.rglob("*")) == before


def test_another_encoding_is_read_where_it_is_named(folder: Path, call: Call, trained: Path) -> None:
    (folder / "latin.csv").write_bytes("body,topic\ncafé team,money\n".encode("cp1252"))
    assert call("predict", str(trained), "latin.csv", "-o", "out.csv", "--encoding", "cp1252")[0] == 0
    assert "café team" in (folder / "out.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "verb", ["predict RUN test.csv -o out.csv", "evaluate RUN test.csv", "suggest RUN test.csv --label="]
)
def test_rows_are_counted_at_a_terminal_unless_quiet(
    folder: Path, call: Call, trained: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    arguments = [str(trained) if part == "RUN" else part for part in verb.split()]
    code, _, err = call(*arguments)
    assert code == 0
    assert "10 of 10 rows" in err
    code, _, err = call(*arguments, "--quiet", *(["--force"] if verb.startswith("predict") else []))
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("verb", "told"),
    [
        (
            ["fit", "train.csv", "-o", "run"],
            "stopped; continue training that had begun with drift fit --resume -o RUN",
        ),
        (["label", "train.csv", "--rules", "rules.yaml"], "stopped"),
    ],
)
def test_ctrl_c_outside_of_training_is_one_line(
    folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch, verb: list[str], told: str
) -> None:
    def pressed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tables, "read_file", pressed)
    code, out, err = call(*verb)
    assert (code, out, err.strip()) == (130, "", f"drift: {told}")


def test_stopped_by_ctrl_c_it_goes_on_to_the_same_bits(folder: Path, call: Call, encoder: str) -> None:
    options = quick(encoder, steps=1500, trace_every=50, checkpoint_every=500)
    process = subprocess.Popen(
        [str(SCRIPT), "fit", "train.csv", *options, "-o", "run"], stderr=subprocess.PIPE, text=True, cwd=folder
    )
    trace = folder / "run/trace.jsonl"
    while process.poll() is None and not (trace.exists() and "self_trained" in trace.read_text()):
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130, err
    assert "continue with drift fit --resume -o run" in err
    assert len(err.splitlines()) == 1
    assert not (folder / "run/model").exists()
    assert call("predict", "run", "test.csv", "-o", "out.csv")[0] == 2

    assert call("fit", "--resume", "-o", "run", "--quiet", "--no-onnx")[0] == 0
    assert call("fit", "train.csv", *options, "-o", "straight")[0] == 0
    stopped, straight = drift.load("run"), drift.load("straight")
    assert same_weights(stopped, straight)
    np.testing.assert_array_equal(stopped.predict_proba(["team"]), straight.predict_proba(["team"]))


def test_predict_sums_up_and_replaces_a_file_only_if_told(folder: Path, call: Call, trained: Path) -> None:
    code, out, err = call("predict", str(trained), "test.csv", "-o", "out.csv")
    assert (code, err) == (0, "")
    labels = drift.predict(trained, "test.csv")
    shares = {name: f"{name} {100 * labels.count(name) / 10:.0f} %" for name in ("money", "sport")}
    assert out.startswith("10 texts: ")
    assert all(share in out for name, share in shares.items() if name in labels)
    confidence = drift.load(trained).predict_proba(small_table(10, seed=2)["body"]).max(1)
    assert f"mean confidence {100 * confidence.mean():.0f} %; below 60 % in {(confidence < 0.6).sum()} " in out

    (folder / "mine.csv").write_text("mine")
    code, out, err = call("predict", str(trained), "test.csv", "-o", "mine.csv")
    assert (code, out) == (2, "")
    assert err == "drift: mine.csv is there already; give --force to replace it, or another name\n"
    assert (folder / "mine.csv").read_text() == "mine"
    code, out, _ = call("predict", str(trained), "test.csv", "-o", "mine.csv", "--force", "--abstain-below", "1")
    assert code == 0
    assert "no label for 10 (100 %): the confidence is too low" in out


def test_scores_of_each_class_are_shown(folder: Path, call: Call, trained: Path) -> None:
    _, out, _ = call("evaluate", str(trained), "test.csv")
    by_class = drift.evaluate(trained, "test.csv")["by_class"]
    for name, scores in by_class.items():
        cells = [f"{100 * scores[score]:.1f}" for score in ("precision", "recall", "f1")]
        assert [name, *cells, str(scores["true"])] in [line.split() for line in out.splitlines()]


def test_a_fit_ends_with_its_result_and_what_limits_it(folder: Path, call: Call, encoder: str) -> None:
    code, out, _ = call("fit", "train.csv", "--test", "test.csv", *quick(encoder), "-o", "run")
    assert code == 0
    record = drift.load("run").record
    accuracy = 100 * record.model_scores("test")["accuracy"]
    assert f"Result: accuracy {accuracy:.1f} % on 10 test texts, 95 % interval " in out
    assert "; self-training: " in out
    assert "Limited by: training was stopped before it had converged" in out
    assert "few labels (8 for 2 classes)" in out
    assert out.index("Label budget") < out.index("Result:") < out.index("Try next: drift predict run")
