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
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from drift.data.files import atomic_file

# Distinct for colour-blind readers, and apart in grey print too. (Okabe and Ito's palette.)
COLOURS = {"DRIFT": "#0072B2", "Self-training": "#D55E00", "Supervised": "#666666"}
CLASS_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
MARKERS = ("o", "s", "D", "^")


def save(figure: Figure, folder: Path, name: str) -> Path:
    """Write `name.png` and `name.svg` into the folder; returns the path of the PNG."""
    options: dict[str, Any] = {"svg": {"metadata": {"Date": None}}, "png": {"dpi": 160}}
    for kind, chosen in options.items():
        with style(), atomic_file(folder / f"{name}.{kind}") as aside:
            figure.savefig(aside, format=kind, **chosen)
    return folder / f"{name}.png"


def learning_curves(accuracy: Mapping[str, np.ndarray], *, unit: str = "epoch") -> Figure:
    """Two methods over training, their paired difference, and where they end (the paper's figure 1 and a step more).

    accuracy: for each of two methods an array (trials, epochs + 1) of shares on the same trials. Left: mean, and a band
    of one standard deviation over trials. Middle: second minus first, trial by trial, which is what a paired test sees.
    Right: every trial's last accuracy, with mean and standard deviation.
    """
    with style():
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
            for kind, marker in ((0, "D"), (1, "o")):
                chosen = labeled[0][labeled[1] == kind]
                axis.scatter(*chosen.T, s=34, marker=marker, color=CLASS_COLOURS[kind], edgecolor="black", zorder=3)
            axis.set_title(panel.title)
            axis.set(xticks=[], yticks=[])
            axis.grid(visible=False)
        return figure


def training_curves(entries: Sequence[Mapping[str, Any]], *, score: str = "accuracy", name: str = "accuracy") -> Figure:
    """Loss and the mean score on dev over a run, the start and the game after it.

    entries: of its trace. score: which of its scores; name: what to call it. Where a run has several seeds, a band of
    one standard deviation over them.
    """
    start = max((entry["step"] for entry in entries if entry["phase"] == "start"), default=0)
    panels = 1 + any("dev" in entry for entry in entries)
    with style():
        figure = Figure(figsize=(8, 3), layout="constrained")
        axes = figure.subplots(1, panels, squeeze=False)[0]
        for phase, first, colour in (("start", 0, CLASS_COLOURS[1]), ("game", start, CLASS_COLOURS[0])):
            here = [entry for entry in entries if entry["phase"] == phase]
            losses = [(first + entry["step"], entry["loss"]) for entry in here if "loss" in entry]
            scores = [(first + entry["step"], 100 * entry["dev"][score]) for entry in here if "dev" in entry]
            for axis, points in zip(axes, (losses, scores), strict=False):
                if points:
                    axis.plot(*zip(*points, strict=True), "o-", color=colour, label=phase, markersize=3)
            looks = [(first + entry["step"], entry["dev_by_seed"][score]) for entry in here if "dev_by_seed" in entry]
            band(axes[-1], looks, colour)
        axes[0].set(xlabel="step", ylabel="loss", title="Loss: each phase has its own")
        if panels > 1:
            spread = " ± standard deviation" if axes[1].collections else ""
            axes[1].set(xlabel="step", ylabel=f"{name} (%)", title=f"Dev, mean{spread} over seeds")
        _log_if_wide(axes[0])
        for axis in axes:
            if axis.lines:
                axis.legend()
        return figure


def band(axes: Axes, looks: Sequence[tuple[float, Sequence[float]]], colour: str) -> None:
    """One standard deviation over seeds to either side of the mean. looks: places, and shares by seed there."""
    if any(len(shares) > 1 for _, shares in looks):
        mean = 100 * np.array([np.mean(shares) for _, shares in looks])
        spread = 100 * np.array([np.std(shares, ddof=1) if len(shares) > 1 else 0.0 for _, shares in looks])
        places = [place for place, _ in looks]
        axes.fill_between(places, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)


def game_curves(entries: Sequence[Mapping[str, Any]]) -> Figure:
    """The game over its steps: both gradients, their angle, weights and pseudo-labels. entries: of a run's trace.

    Of a method whose student expects no answer from its teacher, weights and pseudo-labels alone.
    """
    interacts = interaction(entries)
    with style():
        figure = Figure(figsize=(8, 5.2 if interacts else 2.7), layout="constrained")
        *above, shares, flips = figure.subplots(1 + interacts, 2).flat
        drawn = [
            (shares, "mean_omega", "mean ω", 100),
            (shares, "pseudo_label_accuracy", "pseudo-labels that are right", 100),
            (flips, "flips", "", 1),
        ]
        if interacts:
            norms, angle = above
            drawn += [
                (norms, "leader_norm", "leader", 1),
                (norms, "interaction_norm", "(1 - α) interaction", 1),
                (angle, "angle", "", 1),
            ]
        for axis, name, label, factor in drawn:
            points = [(entry["step"], factor * entry[name]) for entry in entries if entry.get(name) is not None]
            if points:
                place = len(axis.lines)
                colour, dash = CLASS_COLOURS[place], ("-", "--")[place]
                axis.plot(
                    *zip(*points, strict=True), f"{MARKERS[place]}{dash}", color=colour, label=label, markersize=3
                )
        if interacts:
            _log_if_wide(norms)
            norms.set(title="Norm of each part of the gradient")
            norms.legend()
            angle.set(title="Angle between them (degrees)", ylim=(0, 180), yticks=range(0, 181, 45))
            angle.axhline(90, color="black", linewidth=0.8)
        shares.set(title="Weights and pseudo-labels (%)", xlabel="step of the game")
        flips.set(title="Pseudo-labels changed since the last look", xlabel="step of the game")
        flips.set_ylim(bottom=0)
        if shares.lines:
            shares.legend()
        return figure


def interaction(entries: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the student's gradient had a part for the teacher's answer at any step."""
    return any(entry.get("interaction_norm") for entry in entries)


def reliability(bins: Mapping[str, Sequence[Mapping[str, float]]]) -> Figure:
    """How often each confidence is right, and how many rows have it; on the diagonal the two agree.

    bins: for each name, dictionaries with `rows`, `confidence` and `accuracy`, the last two as shares.
    """
    with style():
        figure = Figure(figsize=(8, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.plot((0, 100), (0, 100), color="black", linewidth=0.8)
        for place, (name, found) in enumerate(bins.items()):
            confidence, accuracy = ([100 * each[key] for each in found] for key in ("confidence", "accuracy"))
            look = {"color": CLASS_COLOURS[1 - place], "linestyle": ("--", "-")[place], "marker": MARKERS[place]}
            left.plot(confidence, accuracy, label=name, markersize=4, **look)
            right.plot(confidence, [each["rows"] for each in found], label=name, markersize=4, **look)
        left.set(xlabel="confidence (%)", ylabel="right (%)", xlim=(0, 102), ylim=(0, 102), aspect="equal")
        left.legend(loc="best")
        right.set(xlabel="confidence (%)", ylabel="rows", xlim=(0, 102))
        right.set_ylim(bottom=0)
        return figure


def confusion(counts: np.ndarray, classes: Sequence[str], *, down: str = "true", across: str = "predicted") -> Figure:
    """How many of each class go with each class, shaded by share of a line. counts: `(C, C)`, what goes down first.

    down, across: what the two classes are. Classes whose names the font cannot draw are numbered from 1.
    """
    drawable = all(_is_drawable(name) for name in classes)
    # A dollar sign would begin a formula.
    names = [_shortened(name).replace("$", r"\$") if drawable else str(place) for place, name in enumerate(classes, 1)]
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    with style():
        side = 1.4 + 0.5 * len(classes)
        figure = Figure(figsize=(max(8, side), side), layout="constrained")
        axis = figure.subplots()
        axis.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        for line, column in np.ndindex(*counts.shape):
            ink = "white" if shares[line, column] > 0.5 else "black"
            axis.text(column, line, f"{counts[line, column]:,}", ha="center", va="center", color=ink, size=8)
        axis.set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor")
        axis.set_yticks(range(len(names)), names)
        axis.set(xlabel=across, ylabel=down)
        axis.grid(visible=False)
        return figure


def _log_if_wide(axis: Axes) -> None:
    """A logarithmic scale where values are positive and a decade apart; within one its ticks are hard to read."""
    values = [value for line in axis.lines for value in np.asarray(line.get_ydata())]
    if values and min(values) > 0 and max(values) >= 10 * min(values):
        axis.set_yscale("log")


def _is_drawable(text: str) -> bool:
    font = font_manager.get_font(font_manager.findfont("DejaVu Sans"))
    return all(font.get_char_index(ord(character)) for character in text)


def _shortened(text: str, most: int = 18) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def style() -> AbstractContextManager[Any]:
    """How every figure looks: `with style():` around what draws."""
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
