"""Two moons as a demonstration: a table, the paper's figures 1 and 2, and a page."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

import drift
from drift.data.files import atomic_file
from drift.paper.demos import Bar, DemoResult
from drift.paper.demos.moons import COMPARED_METHODS, MoonsConfig, Trials, compare, stuck_trial
from drift.paper.demos.two_moons import two_moons
from drift.paper.self_training import DETACHED, LEE
from drift.report import figures, method_figures
from drift.report.page import Picture, Section, Table, write_page
from drift.runs.comparing.statistics import TTest, paired_t
from drift.tasks.scoring import mean_and_spread

PAPER_TRIALS, TRIALS = 10, 100
BASELINES = (LEE, DETACHED)  # that DRIFT is tested against
EPOCHS_SHOWN = (20, 150)
RESULT = "result.json"


def demo(out: Path, bar: Bar) -> DemoResult:
    """Train the methods on the same trials, and write figures and a page into the folder `out`."""
    config = MoonsConfig()
    with bar("Two moons", len(COMPARED_METHODS) * config.epochs) as tick:
        results = compare(config, range(TRIALS), keep=EPOCHS_SHOWN, tick=tick)
    accuracy = {name: trials.accuracy for name, trials in results.items()}
    tests = {
        name: {n: paired_t(*(accuracy[m][:n, -1] for m in ("DRIFT", name))) for n in (PAPER_TRIALS, TRIALS)}
        for name in BASELINES
    }
    table = _table(accuracy, tests)
    trial = stuck_trial(results)
    pictures = [_figure_1(out, accuracy), _figure_2(out, config, results, trial)]
    findings = [
        f"Over {n} trials, DRIFT minus {name} is {test.in_words('DRIFT')}."
        for name, by_trials in tests.items()
        for n, test in by_trials.items()
    ]
    setting = (
        f"12 labelled and 500 unlabelled points per class, noise {config.noise}, batches of {config.batch_size}, a"
        f" network of two layers with {config.hidden} tanh units, {config.initial_epochs} supervised epochs, then"
        f" {config.epochs} of self-training with Adam at {config.learning_rate}, α = {config.alpha}, τ = {config.tau}."
        " Self-training (Lee) has hard labels of the student itself; in the copied form they are those of a copy of the"
        " student, renewed every 100 steps. DRIFT and its detached form have the same soft labels and differ in one"
        " argument: whether the gradient of the student passes through the teacher. Accuracy is measured on 500 test"
        " points per trial."
    )
    page = write_page(
        out / "report.html",
        "Two moons: self-training and DRIFT",
        [
            Section("Method", [setting]),
            Section("Results", findings, [table]),
            Section("Learning curves", [], [], pictures[:1]),
            Section("Decision regions", [], [], pictures[1:]),
            Section("How to reproduce this page", commands=["drift demo moons"]),
        ],
    )
    return DemoResult([table], findings, page, NEXT_STEPS)


def cached_demo(out: Path, bar: Bar) -> tuple[list[Path], list[str]]:
    """Files and findings of `demo`. It is run only if the folder does not hold them for these settings and version."""
    if (cached := cached_files(out)) is not None:
        return cached
    result = demo(out, bar)
    files = [result.page, *sorted(out.glob("moons-*"))]
    content = {"about": _about(), "files": [file.name for file in files], "findings": list(result.findings)}
    with atomic_file(out / RESULT) as aside:
        aside.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return files, list(result.findings)


def cached_files(out: Path) -> tuple[list[Path], list[str]] | None:
    """Files and findings in the folder, if it holds those of these settings and this version; else None."""
    try:
        content = json.loads((out / RESULT).read_text(encoding="utf-8"))
        files, findings = [out / name for name in content["files"]], list(content["findings"])
        current = content["about"] == _about() and all(file.exists() for file in files)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return (files, findings) if current else None


def _about() -> dict[str, Any]:
    return {"version": drift.__version__, "trials": TRIALS, "methods": [*COMPARED_METHODS], **asdict(MoonsConfig())}


NEXT_STEPS = (
    ("drift demo digits", "handwritten digits with 5 labels per class"),
    (
        "python -c 'import drift; help(drift.DriftClassifier)'",
        "fit and predict on your own vectors, as in scikit-learn",
    ),
    ("python -c 'import drift; help(drift.Game)'", "your own network and training loop"),
)


def _table(accuracy: dict[str, np.ndarray], tests: dict[str, dict[int, TTest]]) -> Table:
    counts = (PAPER_TRIALS, TRIALS)
    rows = [["Supervised start", *(mean_and_spread(accuracy["DRIFT"][:n, 0]) for n in counts)]]
    rows += [[name, *(mean_and_spread(scores[:n, -1]) for n in counts)] for name, scores in accuracy.items()]
    for name, by_trials in tests.items():
        rows += [[f"DRIFT minus {name}", *(test.gap() for test in by_trials.values())]]
        rows += [["p of a paired t-test", *(test.p_text() for test in by_trials.values())]]
    caption = "Two moons, test accuracy in %: mean ± standard deviation; difference ± standard error"
    return Table(["", *(f"{n} trials" for n in counts)], rows, caption)


def _figure_1(out: Path, accuracy: dict[str, np.ndarray]) -> Picture:
    path = figures.save(method_figures.learning_curves(accuracy), out, "moons-learning")
    ends = "; ".join(f"{name} ends at {mean_and_spread(scores[:, -1])} %" for name, scores in accuracy.items())
    return Picture(path, f"Test accuracy over epochs. {ends}.", "The paper's figure 1.")


def _figure_2(out: Path, config: MoonsConfig, results: dict[str, Trials], trial: int) -> Picture:
    data = two_moons(seed=trial, noise=config.noise)

    def panel(name: str, epoch: int) -> method_figures.Panel:
        network = results[name].students[epoch].trial(trial).eval()

        @torch.no_grad()
        def probability(points: np.ndarray) -> np.ndarray:
            return torch.softmax(network(torch.from_numpy(points).float()), -1)[:, 1].numpy()

        score = 100 * results[name].accuracy[trial, epoch]
        return method_figures.Panel(f"{name}, epoch {epoch}: {score:.1f} %", probability)

    panels = [[panel(name, epoch) for epoch in EPOCHS_SHOWN] for name in COMPARED_METHODS]
    labeled = data.x_labeled.numpy(), data.y_labeled.numpy()
    figure = method_figures.decision_regions(panels, data.x_unlabeled.numpy(), labeled)
    path = figures.save(figure, out, "moons-regions")
    gap = 100 * (results["DRIFT"].accuracy[:, -1] - results[LEE].accuracy[:, -1])
    caption = (
        f"The paper's figure 2, on trial {trial}, which was chosen because {LEE} ends furthest behind DRIFT"
        f" there ({gap[trial]:.1f} points). In the opposite case, trial {gap.argmin()}, DRIFT ends {-gap.min():.1f}"
        " points behind."
    )
    return Picture(path, "Decision regions of each method at two epochs; the titles give the accuracies.", caption)
