"""Figures that read well in print and on screen: PNG for looking, SVG for papers.

Functions take plain arrays and give back a matplotlib figure; `save` writes it in both formats.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

# Distinct for colour-blind readers, and apart in grey print too. (Okabe and Ito's palette.)
COLOURS = {"DRIFT": "#0072B2", "Self-training": "#D55E00", "Supervised": "#666666"}
CLASS_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
MARKERS = ("o", "s", "D", "^")


def save(figure: Figure, folder: Path, name: str) -> Path:
    """Write `name.png` and `name.svg` into the folder; returns the path of the PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    with _style():
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        figure.savefig(folder / f"{name}.png", dpi=160)
    return folder / f"{name}.png"


def learning_curves(accuracy: Mapping[str, np.ndarray], *, unit: str = "epoch") -> Figure:
    """Two methods over training, their paired difference, and where they end (the paper's figure 1 and a step more).

    accuracy: for each of two methods an array (trials, epochs + 1) of shares on the same trials. Left: mean, and a band
    of one standard deviation over trials. Middle: second minus first, trial by trial, which is what a paired test sees.
    Right: every trial's last accuracy, with mean and standard deviation.
    """
    with _style():
        figure = Figure(figsize=(11, 3.4), layout="constrained")
        left, middle, right = figure.subplots(1, 3, width_ratios=(1.35, 1.35, 1))
        for place, (name, scores) in enumerate(accuracy.items()):
            colour, percent = COLOURS.get(name, CLASS_COLOURS[place]), 100 * scores
            mean, spread = percent.mean(0), percent.std(0, ddof=1)
            dash = ("--", "-")[place]
            left.plot(mean, color=colour, label=name, linestyle=dash, linewidth=2)
            left.fill_between(np.arange(len(mean)), mean - spread, mean + spread, color=colour, alpha=0.1, linewidth=0)
            for edge in (mean - spread, mean + spread):
                left.plot(edge, color=colour, linestyle=dash, linewidth=0.7)
            _strip(right, place, percent[:, -1], colour, MARKERS[place])
        left.set(xlabel=unit, ylabel="test accuracy (%)", title="Mean ± standard deviation over trials")
        left.legend(loc="lower right")
        _difference(middle, accuracy, unit)
        right.set_xticks(range(len(accuracy)), list(accuracy))
        right.set_xlim(-0.6, len(accuracy) - 0.4)
        right.set_title(f"Last {unit}, all {len(next(iter(accuracy.values())))} trials")
        return figure


def _difference(axes: Axes, accuracy: Mapping[str, np.ndarray], unit: str) -> None:
    (first, theirs), (second, ours) = accuracy.items()
    gap = 100 * (ours - theirs)
    mean, error = gap.mean(0), gap.std(0, ddof=1) / np.sqrt(len(gap))
    half = stats.t.ppf(0.975, len(gap) - 1) * error
    colour = COLOURS.get(second, CLASS_COLOURS[1])
    axes.axhline(0, color="black", linewidth=0.8)
    axes.plot(mean, color=colour, linewidth=2)
    axes.fill_between(np.arange(len(mean)), mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
    axes.set(xlabel=unit, ylabel="points", title=f"{second} minus {first}, 95 % interval")


def _strip(axes: Axes, place: int, values: np.ndarray, colour: str, marker: str) -> None:
    """Every value as a faint dot, moved aside at random so that none hides another; mean and deviation beside them."""
    shift = np.random.default_rng(0).uniform(-0.16, 0.16, len(values))
    axes.scatter(place + shift, values, s=14, color=colour, alpha=0.35, linewidth=0)
    error = values.std(ddof=1)
    axes.errorbar(
        place + 0.3, values.mean(), yerr=error, fmt=marker, color=colour, markersize=6, capsize=4, linewidth=1.6
    )


@dataclass(frozen=True)
class Panel:
    """One classifier over the plane: a title, and class-1 probabilities for points (n, 2)."""

    title: str
    probability: Callable[[np.ndarray], np.ndarray]


def decision_regions(
    panels: Sequence[Sequence[Panel]], points: np.ndarray, labeled: tuple[np.ndarray, np.ndarray]
) -> Figure:
    """Where each classifier draws its border (the paper's figure 2): a row of panels each.

    points: unlabelled (n, 2), in grey. labeled: points (n, 2) and classes (n,), as diamonds and circles.
    """
    low, high = points.min(0) - 0.4, points.max(0) + 0.4
    grid = np.stack(np.meshgrid(np.linspace(low[0], high[0], 200), np.linspace(low[1], high[1], 200)), -1)
    with _style():
        rows, columns = len(panels), len(panels[0])
        figure = Figure(figsize=(4.1 * columns, 2.9 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for axis, panel in zip(axes.flat, (panel for row in panels for panel in row), strict=True):
            share = panel.probability(grid.reshape(-1, 2)).reshape(grid.shape[:2])
            levels, shades = (0.0, 0.5, 1.0), (CLASS_COLOURS[0], CLASS_COLOURS[1])
            axis.contourf(grid[..., 0], grid[..., 1], share, levels=levels, colors=shades, alpha=0.25)
            axis.contour(grid[..., 0], grid[..., 1], share, levels=(0.5,), colors="black", linewidths=1.2)
            axis.scatter(*points.T, s=5, color="#777777", alpha=0.6, linewidth=0)
            for kind, marker in ((0, "D"), (1, "o")):
                chosen = labeled[0][labeled[1] == kind]
                axis.scatter(*chosen.T, s=34, marker=marker, color=CLASS_COLOURS[kind], edgecolor="black", zorder=3)
            axis.set_title(panel.title)
            axis.set(xticks=[], yticks=[])
            axis.grid(visible=False)
        return figure


def _style() -> AbstractContextManager[Any]:
    settings: Any = {
        "font.size": 9.5,
        "axes.titlesize": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "legend.frameon": False,
        "svg.fonttype": "none",
        "svg.hashsalt": "drift",  # the same figure is the same file
    }
    return matplotlib.rc_context(settings)
