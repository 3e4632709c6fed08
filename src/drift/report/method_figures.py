"""Figures that compare methods: learning curves over trials and decision regions (the paper's figures 1 and 2)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from drift.report.figures import CLASS_COLOURS, COLOURS, MARKERS, style

DASHES = ("--", ":", "-.")


def learning_curves(accuracy: Mapping[str, np.ndarray], *, unit: str = "epoch") -> Figure:
    """Compare methods over training: accuracy, paired difference and final accuracy (extends the paper's figure 1).

    Left: the mean, with a band of one standard deviation over trials. Middle: the last method minus each other one,
    paired by trial as in a paired test. Right: the final accuracy of every trial, with mean and standard deviation.

    accuracy: for each method, an array (trials, epochs + 1) of shares, on the same trials. unit: name of the x axis.
    """
    with style():
        figure = Figure(figsize=(11, 3.4), layout="constrained")
        left, middle, right = figure.subplots(1, 3, width_ratios=(1.35, 1.35, 1))
        for number, (name, scores) in enumerate(accuracy.items()):
            colour, percent = COLOURS.get(name, CLASS_COLOURS[(number + 1) % len(CLASS_COLOURS)]), 100 * scores
            mean, spread = percent.mean(0), percent.std(0, ddof=1)
            dash = "-" if number == len(accuracy) - 1 else DASHES[number % len(DASHES)]
            left.plot(mean, color=colour, label=name, linestyle=dash, linewidth=2)
            left.fill_between(np.arange(len(mean)), mean - spread, mean + spread, color=colour, alpha=0.1, linewidth=0)
            for edge in (mean - spread, mean + spread):
                left.plot(edge, color=colour, linestyle=dash, linewidth=0.7)
            _strip(right, number, percent[:, -1], colour, MARKERS[number % len(MARKERS)])
        left.set(xlabel=unit, ylabel="test accuracy (%)", title="Mean ± standard deviation over trials")
        left.legend(loc="lower right")
        _difference(middle, accuracy, unit)
        names = list(accuracy) if len(accuracy) == 2 else [name.replace(" ", "\n", 1) for name in accuracy]
        right.set_xticks(range(len(accuracy)), names)
        right.set_xlim(-0.6, len(accuracy) - 0.4)
        right.set_title(f"Final {unit}, {len(next(iter(accuracy.values())))} trials")
        return figure


def _difference(axes: Axes, accuracy: Mapping[str, np.ndarray], unit: str) -> None:
    """Draw the mean of the paired differences to the last method with its confidence interval."""
    *others, last = accuracy
    axes.axhline(0, color="black", linewidth=0.8)
    for number, other in enumerate(others):
        gap = 100 * (accuracy[last] - accuracy[other])
        mean, error = gap.mean(0), gap.std(0, ddof=1) / np.sqrt(len(gap))
        half = stats.t.ppf(0.975, len(gap) - 1) * error
        name = last if len(others) == 1 else other
        colour = COLOURS.get(name, CLASS_COLOURS[(number + 1) % len(CLASS_COLOURS)])
        axes.plot(mean, color=colour, linewidth=2)
        axes.fill_between(np.arange(len(mean)), mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
    title = f"{last} minus {others[0] if len(others) == 1 else 'each other'} (95 % CI)"
    axes.set(xlabel=unit, ylabel="percentage points", title=title)


def _strip(axes: Axes, x: int, values: np.ndarray, colour: str, marker: str) -> None:
    """Draw every value as a faint dot, with random jitter so that none hides another; mean and deviation beside it."""
    jitter = np.random.default_rng(0).uniform(-0.16, 0.16, len(values))
    axes.scatter(x + jitter, values, s=14, color=colour, alpha=0.35, linewidth=0)
    error = values.std(ddof=1)
    axes.errorbar(x + 0.3, values.mean(), yerr=error, fmt=marker, color=colour, markersize=6, capsize=4, linewidth=1.6)


@dataclass(frozen=True)
class Panel:
    """One classifier of the plane.

    title: the title of the panel. probability: maps points (n, 2) to probabilities of class 1, (n,).
    """

    title: str
    probability: Callable[[np.ndarray], np.ndarray]


def decision_regions(
    panels: Sequence[Sequence[Panel]], points: np.ndarray, labeled: tuple[np.ndarray, np.ndarray]
) -> Figure:
    """Draw the decision boundary of each classifier (the paper's figure 2).

    panels: rows of panels. points: unlabelled points (n, 2), drawn in grey. labeled: points (n, 2) and classes (n,),
    drawn as diamonds and circles.
    """
    low, high = points.min(0) - 0.4, points.max(0) + 0.4
    grid = np.stack(np.meshgrid(np.linspace(low[0], high[0], 200), np.linspace(low[1], high[1], 200)), -1)
    with style():
        rows, columns = len(panels), len(panels[0])
        figure = Figure(figsize=(4.1 * columns, 2.9 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for axis, panel in zip(axes.flat, (panel for row in panels for panel in row), strict=True):
            share = panel.probability(grid.reshape(-1, 2)).reshape(grid.shape[:2])
            levels, shades = (0.0, 0.5, 1.0), (CLASS_COLOURS[0], CLASS_COLOURS[1])
            axis.contourf(grid[..., 0], grid[..., 1], share, levels=levels, colors=shades, alpha=0.25)
            axis.contour(grid[..., 0], grid[..., 1], share, levels=(0.5,), colors="black", linewidths=1.2)
            axis.scatter(*points.T, s=5, color="#777777", alpha=0.6, linewidth=0)
            for code, marker in ((0, "D"), (1, "o")):
                chosen = labeled[0][labeled[1] == code]
                axis.scatter(*chosen.T, s=34, marker=marker, color=CLASS_COLOURS[code], edgecolor="black", zorder=3)
            axis.set_title(panel.title)
            axis.set(xticks=[], yticks=[])
            axis.grid(visible=False)
        return figure
