"""The main job on texts of this machine: `drift.fit` from class names, from five labels per class, and from rules."""

import shlex
import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from drift.data.files import atomic_file
from drift.data.labels import sample_per_class
from drift.data.table_writer import TableWriter
from drift.models.locating import encoder_path
from drift.paper.demos import Bar, DemoResult
from drift.paper.demos.topics import TOPICS, Texts, topic_texts
from drift.report import figures
from drift.report.page import Picture, Section, Table, write_page
from drift.runs.fit import fit
from drift.runs.result import REPORT, Run
from drift.tasks.record_parts import HeldOutScores
from drift.training.run_folder import CONFIG
from drift.weak import RuleSet

TRAIN_TEXTS, TEST_TEXTS, LABELS = 150, 80, 5  # per subject
SETTINGS: dict[str, Any] = {}  # overrides the defaults of `drift fit`
NAMES, FEW, RULES, ALL = "class names only", f"{LABELS} labels per class", "keyword rules", "every label"
FOLDERS = {NAMES: "names", FEW: "few", RULES: "rules"}  # of the runs that are kept

# Written from knowledge of the subjects; not tuned on the texts.
KEYWORDS = {
    "statistics": ["distribution", "probability", "hypothesis", "variance", "statistic", "random variable"],
    "optimization": ["minimize", "minimum", "objective", "solver", "root", "constraint", "optimizer"],
    "signal processing": ["filter", "frequency", "signal", "spectrum", "Fourier", "wavelet"],
    "neural networks": ["module", "layer", "tensor", "convolution", "activation", "pooling"],
    "plotting": ["axes", "axis", "figure", "plot", "draw", "color", "legend"],
    "email and web": ["header", "message", "URL", "HTTP", "request", "cookie", "server"],
}

Runs = Mapping[str, Run]
"""Trained runs by the source of their labels."""


def demo(out: Path, bar: Bar, *, quiet: bool = True) -> DemoResult:
    """Train from each source of labels, and score on the same test texts. Everything is written to the folder `out`.

    quiet: no bars of the runs.
    """
    encoder_path("default")  # if it is missing, the error says what to install
    with bar("Reading docstrings", 1) as tick:
        _write_files(out, *topic_texts(TRAIN_TEXTS, TEST_TEXTS, seed=0))
        tick()
    runs = _fit(out, quiet=quiet)
    table, findings = _table(runs), _findings(runs)
    steps = _next_steps(out)
    page = write_page(
        out / REPORT,
        "What is this docstring about?",
        [
            Section("Results", findings, [table], [_picture(out, runs)]),
            Section("Method", _method()),
            Section("The same on the command line", commands=_commands(out)),
            Section("More commands", commands=[command for command, _ in steps]),
        ],
    )
    return DemoResult([table], findings, page, steps)


def _write_files(out: Path, train: Texts, test: Texts) -> None:
    """Write the tables, without labels, with few, and with all, and the rules."""
    codes = np.array([list(TOPICS).index(topic) for topic in train.topic])
    kept = set(sample_per_class(codes, LABELS, seed=0).tolist())
    tables = {
        "texts": {"text": train.text},
        "few": {"text": train.text, "topic": [t if row in kept else "" for row, t in enumerate(train.topic)]},
        "all": train._asdict(),
        "test": test._asdict(),
    }
    for name, columns in tables.items():
        with TableWriter(out / f"{name}.csv") as file:
            file.write(columns)
    rules = RuleSet(
        {"name": topic, "label": topic, "has": words, "whole_words": True} for topic, words in KEYWORDS.items()
    )
    with atomic_file(out / "rules.yaml") as aside:
        aside.write_text(rules.to_yaml(), encoding="utf-8")


def _fit(out: Path, *, quiet: bool) -> dict[str, Run]:
    """Train from every source of labels. The runs of an earlier demonstration in this folder are replaced."""
    sources: dict[str, tuple[str, dict[str, Any]]] = {
        NAMES: ("texts.csv", {"classes": list(TOPICS)}),
        FEW: ("few.csv", {}),
        RULES: ("texts.csv", {"rules": out / "rules.yaml"}),
        ALL: ("all.csv", {}),
    }
    runs = {}
    for source, (table, options) in sources.items():
        folder = out / FOLDERS[source] if source in FOLDERS else None
        if folder is not None and (folder / CONFIG).is_file():
            shutil.rmtree(folder)
        common: dict[str, Any] = {"test": out / "test.csv", "finetune": False, "settings": SETTINGS, "quiet": quiet}
        runs[source] = fit(out / table, out=folder, text="text", **common, **options)
    return runs


def _table(runs: Runs) -> Table:
    rows = []
    for source, run in runs.items():
        scores = _scores(run)
        start = "" if scores.start_model is None else _percent(scores.start_model["accuracy"])
        rows.append([source, f"{run.record.label_budget.train:,}", start, _accuracy(run), _interval(scores)])
    tested = _scores(runs[FEW])
    caption = (
        f"Accuracy in % on {tested.rows:,} test texts; always the same answer:"
        f" {_percent(tested.baselines['majority class']['accuracy'])}"
    )
    return Table(["trained from", "labels", "start", "result", "95 % interval"], rows, caption)


def _findings(runs: Runs) -> list[str]:
    few = _scores(runs[FEW])
    assert few.start_model is not None
    alone, after = few.start_model["accuracy"], float(_model(runs[FEW])["accuracy"])
    rules = {name: scores for name, scores in _scores(runs[RULES]).baselines.items() if name.startswith("rules")}
    by_rules = "".join(f" The {name} alone: {_percent(scores['accuracy'])} %." for name, scores in rules.items())
    return [
        f"No label, only the names of {len(TOPICS)} classes: {_accuracy(runs[NAMES])} % of the test texts are right.",
        f"{LABELS} labels per class: {_percent(alone)} % from these labels alone, {_percent(after)} % after"
        f" self-training on the other texts ({100 * (after - alone):+.1f} points).",
        f"Keyword rules: {_accuracy(runs[RULES])} %.{by_rules}",
        f"All {runs[ALL].record.label_budget.train:,} labels, for comparison: {_accuracy(runs[ALL])} %. A class is the"
        " folder of a docstring, which some texts do not show.",
    ]


def _method() -> Sequence[str]:
    packages = sorted({package for parts in TOPICS.values() for package, _ in parts} & {"scipy", "torch", "matplotlib"})
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    return [
        f"First paragraphs of docstrings from the sources of {versions}, numpy and Python's standard library; a class"
        f" is the part of the library they are from. Per class, {TRAIN_TEXTS} texts for training and {TEST_TEXTS}"
        " others for testing. Names of libraries are masked.",
        "One linear head is trained on the fixed vectors of a small encoder, with the defaults of drift fit: no dev"
        " set, nothing chosen on the test texts, which are scored once.",
        "This is one draw of texts and labels; the intervals cover the number of test texts only. Measurements over"
        " many draws are in the documentation, under Results.",
    ]


def _picture(out: Path, runs: Runs) -> Picture:
    with figures.style():
        figure = Figure(figsize=(7, 2.6), layout="constrained")
        axes = figure.subplots()
    for place, run in enumerate(runs.values()):
        scores, accuracy = _scores(run), 100 * _model(run)["accuracy"]
        axes.barh(place, accuracy, color=figures.COLOURS["DRIFT"], alpha=0.8, height=0.6)
        if scores.interval is not None:
            low, high = (100 * end for end in scores.interval)
            axes.errorbar(accuracy, place, xerr=[[accuracy - low], [high - accuracy]], color="black", capsize=3)
        if scores.start_model is not None:
            start = 100 * scores.start_model["accuracy"]
            axes.plot(start, place, "D", color=figures.COLOURS["DRIFT, detached"], label="start" if not place else None)
    axes.set_yticks(range(len(runs)), list(runs))
    axes.invert_yaxis()
    axes.set(xlabel="test accuracy (%), with 95 % interval", xlim=(0, 100))
    axes.legend(loc="upper right")
    path = figures.save(figure, out, "accuracy")
    alt = "; ".join(f"{source}: {_accuracy(run)} %" for source, run in runs.items())
    return Picture(path, alt, "Diamonds: before self-training.")


def _scores(run: Run) -> HeldOutScores:
    scores: HeldOutScores = run.record.test
    return scores


def _model(run: Run) -> dict[str, float]:
    return dict(run.record.model_scores("test"))


def _accuracy(run: Run) -> str:
    return _percent(_model(run)["accuracy"])


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _interval(scores: HeldOutScores) -> str:
    return "" if scores.interval is None else " to ".join(map(_percent, scores.interval))


def _commands(out: Path) -> list[str]:
    texts, few, test, rules = (
        shlex.quote(str(out / name)) for name in ("texts.csv", "few.csv", "test.csv", "rules.yaml")
    )
    return [
        f'drift fit {texts} --classes "{", ".join(TOPICS)}" --test {test} -o runs/names',
        f"drift fit {few} --test {test} -o runs/few",
        f"drift fit {texts} --rules {rules} --test {test} -o runs/rules",
    ]


def _next_steps(out: Path) -> Sequence[tuple[str, str]]:
    few, test = shlex.quote(str(out / FOLDERS[FEW])), shlex.quote(str(out / "test.csv"))
    return (
        (f"drift predict {few} {test} -o predicted.csv", "use a model of this demonstration"),
        ('drift fit YOURS.csv --classes "sports, politics, business" -o runs/zero', "your own texts, without labels"),
        ("drift fit YOURS.csv --text BODY --label TOPIC -o runs/few", "your own texts; most labels may be blank"),
        ("drift demo moons", "the paper's first example; also: digits, text"),
    )
