"""Which library is this docstring from? `drift.fit` with ten labels per library, then with keyword rules only."""

import shlex
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from drift.data.files import atomic_file
from drift.data.table_writer import TableWriter
from drift.models.locating import encoder_path
from drift.paper.demos import Bar, DemoResult
from drift.paper.demos.docstrings import LIBRARIES, docstrings
from drift.paper.self_training import DETACHED
from drift.report import figures
from drift.report.page import Picture, Section, Table, write_page
from drift.runs.comparing.statistics import paired_t
from drift.runs.fit import fit
from drift.tasks.scoring import mean_and_spread
from drift.weak import RuleSet, Summary, label
from drift.weak.diagnostics import table as table_of_rules

TRAIN_TEXTS, TEST_TEXTS, LABELS = 350, 150, 10  # per library
COMPARED_METHODS = {"Supervised": "supervised", DETACHED: "self-training", "DRIFT": "drift"}
SETTINGS: dict[str, Any] = {}  # overrides the defaults of `drift fit`

# Written from knowledge of the libraries; not tuned on the texts.
KEYWORDS = {
    "numpy: arrays": ["array", "arrays", "ndarray", "dtype", "masked", "broadcast"],
    "numpy: polynomials": ["polynomial", "Chebyshev", "Hermite", "Laguerre", "Legendre"],
    "scikit-learn: learning": ["fit", "estimator", "classifier", "regressor", "predict", "samples"],
    "scikit-learn: evaluation": ["score", "cross-validation", "clusters", "features", "labels"],
    "scipy: numerics": ["minimize", "root", "integrate", "interpolation", "spline", "sparse"],
    "scipy: statistics and signals": ["distribution", "hypothesis", "statistic", "filter", "signal"],
    "torch: tensors": ["tensor", "tensors", "gradient", "gradients", "autograd", "backward", "CUDA"],
    "torch: networks": ["module", "layer", "convolution", "optimizer", "dataset", "parameter"],
}

Scores = dict[str, dict[str, np.ndarray]]
"""Test accuracy of each seed, by setting (few labels, rules) and method."""


def demo(out: Path, bar: Bar) -> DemoResult:
    """Train each method from few labels, then from rules. Tables, figure and page are written to the folder `out`."""
    encoder_path("default")  # if it is missing, the error says what to install
    train = _write_tables(out)
    rules = _write_rules(out)
    scores = _scores(out, bar)
    by_rules = label(train, rules, gold="label").summary
    tables = [_table(scores), _rules_table(by_rules)]
    findings = [
        _in_words(setting, other, by_method)
        for setting, by_method in scores.items()
        for other in (DETACHED, "Supervised")
    ]
    findings.append(
        f"The rules label {by_rules.labeled} training texts (a tie gives no label); {by_rules.accuracy} labels are"
        " right. All seeds share these labels and differ only in training, so p does not cover other texts or rules."
    )
    steps = _next_steps(out)
    page = write_page(
        out / "report.html",
        "Which library is this docstring from?",
        [
            Section("Method", _method()),
            Section("Results", findings, tables, [_picture(out, scores)]),
            Section("How to reproduce this page", commands=["drift demo text"]),
            Section("More commands with the same texts", commands=[command for command, _ in steps]),
        ],
    )
    return DemoResult(tables, findings, page, steps)


def _write_tables(out: Path) -> dict[str, list[str]]:
    """Write train.csv and test.csv with the columns text and label; returns the columns of train."""
    by_library = docstrings(TRAIN_TEXTS + TEST_TEXTS, seed=0)
    tables = {}
    for name, rows in (("train", slice(TRAIN_TEXTS)), ("test", slice(TRAIN_TEXTS, None))):
        pairs = [(text, library) for library, texts in by_library.items() for text in texts[rows]]
        tables[name] = {"text": [text for text, _ in pairs], "label": [library for _, library in pairs]}
        with TableWriter(out / f"{name}.csv") as file:
            file.write(tables[name])
    return tables["train"]


def _write_rules(out: Path) -> RuleSet:
    """Write rules.yaml; returns the rules."""
    rules = RuleSet(
        {"name": name, "label": name.split(":")[0], "has": words, "whole_words": True}
        for name, words in KEYWORDS.items()
    )
    with atomic_file(out / "rules.yaml") as aside:
        aside.write_text(rules.to_yaml(), encoding="utf-8")
    return rules


def _scores(out: Path, bar: Bar) -> Scores:
    """Train each method on the files in the folder with `drift.fit`."""
    sources: dict[str, dict[str, Any]] = {
        f"{LABELS} labels per library": {"labels_per_class": LABELS},
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
                scores[setting][name] = np.array([seed["accuracy"] for seed in run.record.test.scores])
                tick()
    return scores


def _table(scores: Scores) -> Table:
    tests = [paired_t(by_method["DRIFT"], by_method[DETACHED]) for by_method in scores.values()]
    seeds = tests[0].pairs
    rows = [[name, *(mean_and_spread(by_method[name]) for by_method in scores.values())] for name in COMPARED_METHODS]
    rows += [[f"DRIFT minus {DETACHED}", *(test.gap() for test in tests)]]
    rows += [["p of a paired t-test", *(test.p_text() for test in tests)]]
    caption = f"Test accuracy in %: mean ± standard deviation of {seeds} seeds; difference ± standard error"
    return Table(["", *scores], rows, caption)


def _rules_table(by_rules: Summary) -> Table:
    headings, rows = table_of_rules(by_rules)
    return Table(
        headings, rows, "The rules on the training texts; accuracy is measured on the texts that a rule votes on"
    )


def _in_words(setting: str, other: str, scores: dict[str, np.ndarray]) -> str:
    test = paired_t(scores["DRIFT"], scores[other])
    return f"From {setting}, DRIFT minus {other} is {test.in_words('DRIFT')}."


def _method() -> Sequence[str]:
    versions = ", ".join(f"{library} {version(library)}" for library in LIBRARIES)
    return [
        f"First paragraphs of docstrings from the sources of {versions}: per library, {TRAIN_TEXTS} texts for training"
        f" and {TEST_TEXTS} others for testing. The names of the four libraries and their aliases are masked, including"
        ' dotted names such as np.linalg.norm. Words such as "tensor" or "estimator" are not masked.',
        f"{LABELS} labels per library: each seed draws its own {LABELS * len(LIBRARIES)} labels, the same for every"
        " method; all other training texts are unlabelled.",
        "Keyword rules: no labels at all. Supervised is trained on the labels from the rules; the other two methods use"
        " them only to initialise the model.",
        "A head is trained on the fixed vectors of a small encoder, with the defaults of drift fit. There is no dev"
        " set, and the test texts are scored once, at the end.",
    ]


def _picture(out: Path, scores: Scores) -> Picture:
    with figures.style():
        path = figures.save(_figure(scores), out, "text-accuracy")
    means = [
        f"{setting}, {name}: {mean_and_spread(accuracy)} %"
        for setting, by_method in scores.items()
        for name, accuracy in by_method.items()
    ]
    return Picture(
        path,
        "; ".join(means),
        "One dot per seed; lines join the same seed. Next to the dots: mean and standard deviation.",
    )


def _figure(scores: Scores) -> Figure:
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    panels = figure.subplots(1, len(scores), sharey=True)
    for axes, (setting, by_method) in zip(panels, scores.items(), strict=True):
        for x, (name, accuracy) in enumerate(by_method.items()):
            percent, colour, marker = 100 * accuracy, figures.COLOURS[name], figures.MARKERS[x]
            axes.scatter([x] * len(percent), percent, s=18, color=colour, alpha=0.5, linewidth=0)
            axes.errorbar(x + 0.2, percent.mean(), percent.std(ddof=1), fmt=marker, color=colour, capsize=4)
        axes.plot(100 * np.stack([*by_method.values()]), color="#777777", alpha=0.3, linewidth=0.8, zorder=0)
        axes.set_xticks(range(len(by_method)), list(by_method))
        axes.set_title(setting)
    panels[0].set_ylabel("test accuracy (%)")
    return figure


def _next_steps(out: Path) -> Sequence[tuple[str, str]]:
    train, test, rules = (shlex.quote(str(out / name)) for name in ("train.csv", "test.csv", "rules.yaml"))
    return (
        (
            f"drift label {train} --rules {rules} -o weak.csv",
            "the label that the rules give to each text; edit the rules and try again",
        ),
        (
            f"drift fit {train} --rules {rules} --label label --test {test} -o runs/rules",
            "the same training from the command line",
        ),
        ("drift fit --help", "train on your own table, with few labels or with rules"),
    )
