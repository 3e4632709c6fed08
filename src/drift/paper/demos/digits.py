"""Handwritten digits with few labels: `DriftClassifier` beside its own ablations and scikit-learn's methods."""

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

from drift.data.labels import UNLABELED
from drift.data.splits import sample_per_class
from drift.estimator import DriftClassifier
from drift.paper.demos.demo import Bar, Shown
from drift.report.page import Section, Table, write_page
from drift.runs.comparing.statistics import paired_t
from drift.tasks.scoring import mean_and_spread

TEST_ROWS = 600

OURS: dict[str, Callable[[int], Any]] = {
    "Supervised": lambda seed: DriftClassifier(coupling="none", random_state=seed),
    "Self-training": lambda seed: DriftClassifier(coupling="detached", random_state=seed),
    "DRIFT": lambda seed: DriftClassifier(random_state=seed),
}
SCIKIT_LEARN: dict[str, Callable[[int], Any]] = {
    "SelfTrainingClassifier (logistic regression)": lambda seed: SelfTrainingClassifier(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    ),
    "LabelSpreading (7 nearest neighbours)": lambda seed: LabelSpreading(kernel="knn"),
}


@dataclass
class Scores:
    """Test accuracy and seconds of `fit`, one of each a seed."""

    accuracy: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def compare(
    methods: dict[str, Callable[[int], Any]],
    labels_per_class: int | None,
    seeds: Sequence[int],
    *,
    tick: Callable[[], None] = lambda: None,
) -> dict[str, Scores]:
    """Fit every method on every seed's split, interleaved. labels_per_class: None leaves every training row its own."""
    X, y = load_digits(return_X_y=True)
    scores = {name: Scores() for name in methods}
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(y))
        test, train = order[:TEST_ROWS], order[TEST_ROWS:]
        given = y[train]
        if labels_per_class is not None:
            given = np.full(len(train), UNLABELED)
            chosen = sample_per_class(y[train], labels_per_class, seed=seed)
            given[chosen] = y[train][chosen]
        for name, build in methods.items():
            began = time.perf_counter()
            model = build(seed).fit(X[train], given)
            scores[name].seconds.append(time.perf_counter() - began)
            scores[name].accuracy.append(float(model.score(X[test], y[test])))
            tick()
    return scores


def demo(out: Path, bar: Bar) -> Shown:
    """The three rows of `DriftClassifier` at 5 labels a class."""
    seeds, labels = range(5), 5
    with bar("Digits", len(OURS) * len(seeds)) as tick:
        scores = compare(OURS, labels, seeds, tick=tick)
    rows = [[name, mean_and_spread(row.accuracy), f"{np.median(row.seconds):.1f}"] for name, row in scores.items()]
    table = Table(
        ["", "accuracy (%)", "seconds a fit"], rows, f"Digits, {labels} labels a class, {len(seeds)} seeds, mean ± std"
    )
    gain = paired_t(scores["DRIFT"].accuracy, scores["Supervised"].accuracy)
    gap = paired_t(scores["DRIFT"].accuracy, scores["Self-training"].accuracy)
    findings = [
        f"DRIFT minus the labels alone is {gain.in_words('DRIFT')}.",
        f"DRIFT minus Self-training is {gap.in_words('DRIFT')}.",
    ]
    done = (
        f"scikit-learn's handwritten digits: {TEST_ROWS} random images for testing, the others for training, of which"
        f" {labels} a class keep their label; a new split a seed, the same for all rows of the table."
    )
    page = write_page(
        out / "report.html",
        f"Digits with {labels} labels a class",
        [
            Section("What was done", [done]),
            Section("What came out", findings, [table]),
            Section("How to make this page", commands=["drift demo digits"]),
        ],
    )
    return Shown([table], findings, page, NEXT_STEPS)


NEXT_STEPS = (
    ("python benchmarks/digits.py", "the same beside scikit-learn's methods, 10 seeds, 5 and 10 labels a class"),
    ("python -c 'import drift; help(drift.DriftClassifier)'", "fit and predict on your own vectors"),
)
