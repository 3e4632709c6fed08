"""Which library wrote this docstring? Ten labels a library, then keyword rules alone, through `drift.fit`."""

import shlex
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from drift.data.files import atomic_file
from drift.data.table_writer import TableWriter
from drift.models.encoders import encoder_path
from drift.paper.demos.demo import Bar, Shown
from drift.paper.demos.docstrings import LIBRARIES, docstrings
from drift.report import figures
from drift.report.page import Picture, Section, Table, write_page
from drift.runs.comparing.statistics import paired_t
from drift.runs.fit import fit
from drift.runs.result import Run
from drift.tasks.scoring import mean_and_spread
from drift.weak import RuleSet, Summary, label
from drift.weak.diagnostics import table as table_of_rules

TRAIN_TEXTS, TEST_TEXTS, LABELS = 350, 150, 10  # of each library
COMPARED_METHODS = {"Supervised": "supervised", "Self-training": "self-training", "DRIFT": "drift"}
SETTINGS: dict[str, Any] = {}  # over the defaults of `drift fit`

# From knowing the libraries; not tuned on the texts.
KEYWORDS = {
    "numpy: arrays": ["array", "arrays", "ndarray", "dtype", "masked", "broadcast"],
    "numpy: polynomials": ["polynomial", "Chebyshev", "Hermite", "Laguerre", "Legendre"],
    "scikit-learn: learning": ["fit", "estimator", "classifier", "regressor", "predict", "samples"],
    "scikit-learn: judging": ["score", "cross-validation", "clusters", "features", "labels"],
    "scipy: numerics": ["minimize", "root", "integrate", "interpolation", "spline", "sparse"],
    "scipy: statistics and signals": ["distribution", "hypothesis", "statistic", "filter", "signal"],
    "torch: tensors": ["tensor", "tensors", "gradient", "gradients", "autograd", "backward", "CUDA"],
    "torch: networks": ["module", "layer", "convolution", "optimizer", "dataset", "parameter"],
}

Scores = dict[str, dict[str, np.ndarray]]
"""Test accuracy by setting (few labels, rules), method and seed."""


def demo(out: Path, bar: Bar) -> Shown:
    """Train each method from few labels, then from rules; print, draw and write down what came out."""
    encoder_path("default")  # where it is missing, this says what to install
    train = _write_tables(out)
    rules = _write_rules(out)
    scores = _scores(out, bar)
    by_rules = label(train, rules, gold="label").summary
    tables = [_table(scores), _rules_table(by_rules)]
    findings = [
        _in_words(setting, other, of) for setting, of in scores.items() for other in ("Self-training", "Supervised")
    ]
    findings.append(
        f"The rules label {by_rules.labeled} training texts (a tie is no label); {by_rules.accuracy} labels are right."
        " Seeds share them and differ in training alone, so that p speaks of no other texts or rules."
    )
    steps = _next_steps(out)
    page = write_page(
        out / "report.html",
        "Which library wrote this docstring?",
        [
            Section("What was done", _what_was_done()),
            Section("What came out", findings, tables, [_picture(out, scores)]),
            Section("How to make this page", commands=["drift demo text"]),
            Section("How to go on with the same texts", commands=[command for command, _ in steps]),
        ],
    )
    return Shown(tables, findings, page, steps)


def _write_tables(out: Path) -> dict[str, list[str]]:
    """Write train.csv and test.csv with the columns text and label; gives back what is in train."""
    found = docstrings(TRAIN_TEXTS + TEST_TEXTS, seed=0)
    tables = {}
    for name, rows in (("train", slice(TRAIN_TEXTS)), ("test", slice(TRAIN_TEXTS, None))):
        pairs = [(text, library) for library, texts in found.items() for text in texts[rows]]
        tables[name] = {"text": [text for text, _ in pairs], "label": [library for _, library in pairs]}
        with TableWriter(out / f"{name}.csv") as file:
            file.write(tables[name])
    return tables["train"]


def _write_rules(out: Path) -> RuleSet:
    rules = RuleSet(
        {"name": name, "label": name.split(":")[0], "has": words, "whole_words": True}
        for name, words in KEYWORDS.items()
    )
    with atomic_file(out / "rules.yaml") as aside:
        aside.write_text(rules.to_yaml(), encoding="utf-8")
    return rules


def _scores(out: Path, bar: Bar) -> Scores:
    """The files in the folder through `drift.fit`, by each method."""
    sources: dict[str, dict[str, Any]] = {
        f"{LABELS} labels a library": {"labels_per_class": LABELS},
        "keyword rules": {"rules": out / "rules.yaml"},
    }
    scores: Scores = {setting: {} for setting in sources}
    with bar("Embedding, then training", len(sources) * len(COMPARED_METHODS)) as tick:
        for setting, source in sources.items():
            for name, method in COMPARED_METHODS.items():
                run = fit(
                    out / "train.csv",
                    test=out / "test.csv",
                    text="text",
                    label="label",
                    **source,
                    method=method,
                    finetune=False,
                    settings=SETTINGS,
                    quiet=True,
                )
                assert isinstance(run, Run)  # a plan is for dry runs
                scores[setting][name] = np.array([seed["accuracy"] for seed in run.metrics["test"]["scores"]])
                tick()
    return scores


def _table(scores: Scores) -> Table:
    tests = [paired_t(of["DRIFT"], of["Self-training"]) for of in scores.values()]
    seeds = tests[0].pairs
    rows = [[name, *(mean_and_spread(of[name]) for of in scores.values())] for name in COMPARED_METHODS]
    rows += [["DRIFT minus Self-training", *(test.gap() for test in tests)]]
    rows += [["p of a paired t-test", *(test.p_text() for test in tests)]]
    caption = f"Test accuracy in %: mean ± standard deviation of {seeds} seeds; difference ± standard error"
    return Table(["", *scores], rows, caption)


def _rules_table(by_rules: Summary) -> Table:
    headings, rows = table_of_rules(by_rules)
    return Table(headings, rows, "The rules on the training texts; accuracy is of the texts that a rule votes on")


def _in_words(setting: str, other: str, scores: dict[str, np.ndarray]) -> str:
    test = paired_t(scores["DRIFT"], scores[other])
    return f"From {setting}, DRIFT minus {other} is {test.in_words('DRIFT')}."


def _what_was_done() -> Sequence[str]:
    versions = ", ".join(f"{library} {version(library)}" for library in LIBRARIES)
    return [
        f"First paragraphs of docstrings from the sources of {versions}: {TRAIN_TEXTS} of each library to train on,"
        f" {TEST_TEXTS} others to test. The names of the four libraries and their aliases are masked wherever they"
        ' stand, dotted names such as np.linalg.norm as a whole; words such as "tensor" or "estimator" are left.',
        f"{LABELS} labels a library: each seed draws its own {LABELS * len(LIBRARIES)} labels, the same for every"
        " method; all other training texts are unlabelled.",
        "Keyword rules: no label at all. Supervised learns what the rules say; the other two start there and then go"
        " on without it.",
        "A head is trained on the fixed vectors of a small encoder, with the defaults of drift fit. There is no dev"
        " set, and the test texts are scored once, at the end.",
    ]


def _picture(out: Path, scores: Scores) -> Picture:
    with figures.style():
        path = figures.save(_figure(scores), out, "text-accuracy")
    means = [f"{setting}, {name}: {mean_and_spread(of[name])} %" for setting, of in scores.items() for name in of]
    return Picture(
        path,
        "; ".join(means),
        "A dot a seed, joined where the seed is the same; beside them the mean and the standard deviation.",
    )


def _figure(scores: Scores) -> Figure:
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    panels = figure.subplots(1, len(scores), sharey=True)
    for axes, (setting, of) in zip(panels, scores.items(), strict=True):
        for place, (name, shares) in enumerate(of.items()):
            percent, colour = 100 * shares, figures.COLOURS[name]
            axes.scatter([place] * len(percent), percent, s=18, color=colour, alpha=0.5, linewidth=0)
            marker = figures.MARKERS[place]
            axes.errorbar(place + 0.2, percent.mean(), percent.std(ddof=1), fmt=marker, color=colour, capsize=4)
        axes.plot(100 * np.stack([*of.values()]), color="#777777", alpha=0.3, linewidth=0.8, zorder=0)
        axes.set_xticks(range(len(of)), list(of))
        axes.set_title(setting)
    panels[0].set_ylabel("test accuracy (%)")
    return figure


def _next_steps(out: Path) -> Sequence[tuple[str, str]]:
    train, test, rules = (shlex.quote(str(out / name)) for name in ("train.csv", "test.csv", "rules.yaml"))
    return (
        (f"drift label {train} --rules {rules} -o weak.csv", "what the rules say of each text; change them and see"),
        (f"drift fit {train} --rules {rules} --label label --test {test} -o runs/rules", "the same from the shell"),
        ("drift fit --help", "your own table, with few labels or with rules"),
    )
