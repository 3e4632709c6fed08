"""Handwritten digits with few labels: `DriftClassifier` compared with its ablations and scikit-learn's methods."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from drift.data.labels import UNLABELED, sample_per_class
from drift.estimator import DriftClassifier
from drift.paper.demos import Bar, DemoResult
from drift.paper.self_training import DETACHED
from drift.report.page import Section, Table, write_page
from drift.runs.comparing.statistics import paired_t
from drift.tasks.scoring import mean_and_spread

TEST_ROWS = 600

# The settings of the published figures: the paper's two phases, with a fixed number of steps.
PAPER: dict[str, Any] = {
    "dropout": 0.5,
    "input_dropout": 0.2,
    "prior": None,
    "start": "labels",
    "initial_steps": 200,
    "steps": 600,
    "learning_rate": 1e-3,
    "standardize": True,
}
OURS: dict[str, Callable[[int], Any]] = {
    "Supervised": lambda seed: DriftClassifier(coupling="none", random_state=seed, **PAPER),
    DETACHED: lambda seed: DriftClassifier(coupling="detached", random_state=seed, **PAPER),
    "DRIFT": lambda seed: DriftClassifier(random_state=seed, **PAPER),
}
SCIKIT_LEARN: dict[str, Callable[[int], Any]] = {
    "SelfTrainingClassifier (logistic regression)": lambda seed: SelfTrainingClassifier(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    ),
    "LabelSpreading (7 nearest neighbours)": lambda seed: LabelSpreading(kernel="knn"),
}


@dataclass
class Scores:
    """Test accuracy and seconds of `fit`, one value per seed."""

    accuracy: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def compare(
    methods: dict[str, Callable[[int], Any]],
    labels_per_class: int | None,
    seeds: Sequence[int],
    *,
    tick: Callable[[], None] = lambda: None,
) -> dict[str, Scores]:
    """Fit every method on the split of every seed, interleaved.

    methods: by title, functions that make an estimator from a seed. labels_per_class: labels to keep; None keeps all.
    tick: called after every fit.
    """
    X, y = load_digits(return_X_y=True)
    scores = {name: Scores() for name in methods}
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(y))
        test, train = order[:TEST_ROWS], order[TEST_ROWS:]
        y_train = y[train]
        if labels_per_class is not None:
            y_train = np.full(len(train), UNLABELED)
            labeled = sample_per_class(y[train], labels_per_class, seed=seed)
            y_train[labeled] = y[train][labeled]
        for name, build in methods.items():
            began = time.perf_counter()
            model = build(seed).fit(X[train], y_train)
            scores[name].seconds.append(time.perf_counter() - began)
            scores[name].accuracy.append(float(model.score(X[test], y[test])))
            tick()
    return scores


def demo(out: Path, bar: Bar) -> DemoResult:
    """Compare three couplings of `DriftClassifier` at 5 labels per class. out: folder for the page."""
    seeds, labels = range(5), 5
    with bar("Digits", len(OURS) * len(seeds)) as tick:
        scores = compare(OURS, labels, seeds, tick=tick)
    rows = [[name, mean_and_spread(row.accuracy), f"{np.median(row.seconds):.1f}"] for name, row in scores.items()]
    table = Table(
        ["", "accuracy (%)", "seconds per fit"],
        rows,
        f"Digits, {labels} labels per class, {len(seeds)} seeds, mean ± std",
    )
    gain = paired_t(scores["DRIFT"].accuracy, scores["Supervised"].accuracy)
    gap = paired_t(scores["DRIFT"].accuracy, scores[DETACHED].accuracy)
    findings = [
        f"DRIFT minus Supervised is {gain.in_words('DRIFT')}.",
        f"DRIFT minus its detached form is {gap.in_words('DRIFT')}.",
    ]
    method = (
        f"scikit-learn's handwritten digits: {TEST_ROWS} random images for testing, the others for training, with"
        f" {labels} labels per class. Each seed has a new split, the same for all rows of the table."
    )
    page = write_page(
        out / "report.html",
        f"Digits with {labels} labels per class",
        [
            Section("Method", [method]),
            Section("Results", findings, [table]),
            Section("How to reproduce this page", commands=["drift demo digits"]),
        ],
    )
    return DemoResult([table], findings, page, NEXT_STEPS)


NEXT_STEPS = (
    ("python benchmarks/digits.py", "the same with scikit-learn's methods, 10 seeds, 5 and 10 labels per class"),
    ("python -c 'import drift; help(drift.DriftClassifier)'", "fit and predict on your own vectors"),
)
