"""Figures of a run, and the style that all figures share.

Functions take plain arrays and return a matplotlib figure; `save` writes it as PNG for the screen and SVG for print.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.data.files import atomic_file

# Distinct for colour-blind readers, and in greyscale print (Okabe and Ito's palette).
COLOURS = {
    "DRIFT": "#0072B2",
    "DRIFT, detached": "#D55E00",
    "Self-training (Lee)": "#009E73",
    "Self-training (copy 100)": "#CC79A7",
    "Supervised": "#666666",
}
CLASS_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
MARKERS = ("o", "s", "D", "^")


def save(figure: Figure, folder: Path, name: str) -> Path:
    """Write `name.png` and `name.svg` to a folder; returns the path of the PNG."""
    formats: dict[str, Any] = {"svg": {"metadata": {"Date": None}}, "png": {"dpi": 160}}
    for suffix, options in formats.items():
        with style(), atomic_file(folder / f"{name}.{suffix}") as aside:
            figure.savefig(aside, format=suffix, **options)
    return folder / f"{name}.png"


def style() -> AbstractContextManager[Any]:
    """The style of all figures: draw inside `with style():`."""
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


def training_curves(entries: Sequence[Mapping[str, Any]], *, score: str = "accuracy", name: str = "accuracy") -> Figure:
    """Loss and mean dev score over the steps of a run: the initial training, then the game.

    A run with several seeds gets a band of one standard deviation.

    entries: the entries of the run's trace. score: the key of the score to draw. name: its name on the axis.
    """
    start = max((entry["step"] for entry in entries if entry["phase"] == "start"), default=0)
    panels = 1 + any("dev" in entry for entry in entries)
    with style():
        figure = Figure(figsize=(8, 3), layout="constrained")
        axes = figure.subplots(1, panels, squeeze=False)[0]
        for phase, first, colour in (("start", 0, CLASS_COLOURS[1]), ("game", start, CLASS_COLOURS[0])):
            in_phase = [entry for entry in entries if entry["phase"] == phase]
            losses = [(first + entry["step"], entry["loss"]) for entry in in_phase if "loss" in entry]
            scores = [(first + entry["step"], 100 * entry["dev"][score]) for entry in in_phase if "dev" in entry]
            for axis, points in zip(axes, (losses, scores), strict=False):
                if points:
                    axis.plot(*zip(*points, strict=True), "o-", color=colour, label=phase, markersize=3)
            by_seed = [(entry["step"], entry["dev_by_seed"][score]) for entry in in_phase if "dev_by_seed" in entry]
            band(axes[-1], [(first + step, shares) for step, shares in by_seed], colour)
        axes[0].set(xlabel="step", ylabel="loss", title="Training loss (differs between phases)")
        if panels > 1:
            spread = " ± standard deviation" if axes[1].collections else ""
            axes[1].set(xlabel="step", ylabel=f"{name} (%)", title=f"Dev: mean{spread} over seeds")
        _log_if_wide(axes[0])
        for axis in axes:
            if axis.lines:
                axis.legend()
        return figure


def band(axes: Axes, points: Sequence[tuple[float, Sequence[float]]], colour: str) -> None:
    """Draw a band of one standard deviation over seeds around the mean, in percent.

    points: pairs of an x value and the shares of all seeds there.
    """
    if any(len(shares) > 1 for _, shares in points):
        mean = 100 * np.array([np.mean(shares) for _, shares in points])
        spread = 100 * np.array([np.std(shares, ddof=1) if len(shares) > 1 else 0.0 for _, shares in points])
        x = [value for value, _ in points]
        axes.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)


def game_curves(entries: Sequence[Mapping[str, Any]]) -> Figure:
    """The game over its steps: norms of the two gradients, their angle, weights and pseudo-labels.

    A method without an interaction gradient gets the weights and pseudo-labels only.

    entries: the entries of the run's trace.
    """
    interacts = interaction(entries)
    with style():
        figure = Figure(figsize=(8, 5.2 if interacts else 2.7), layout="constrained")
        *above, shares, flips = figure.subplots(1 + interacts, 2).flat
        curves = [
            (shares, "mean_omega", "mean ω", 100),
            (shares, "pseudo_label_accuracy", "pseudo-label accuracy", 100),
            (flips, "flips", "", 1),
        ]
        if interacts:
            norms, angle = above
            curves += [
                (norms, "leader_norm", "leader", 1),
                (norms, "interaction_norm", "(1 - α) interaction", 1),
                (angle, "angle", "", 1),
            ]
        for axis, name, label, factor in curves:
            points = [(entry["step"], factor * entry[name]) for entry in entries if entry.get(name) is not None]
            if points:
                number = len(axis.lines)
                colour, dash = CLASS_COLOURS[number], ("-", "--")[number]
                axis.plot(
                    *zip(*points, strict=True), f"{MARKERS[number]}{dash}", color=colour, label=label, markersize=3
                )
        if interacts:
            _log_if_wide(norms)
            norms.set(title="Gradient norms")
            norms.legend()
            angle.set(title="Angle between leader and interaction (degrees)", ylim=(0, 180), yticks=range(0, 181, 45))
            angle.axhline(90, color="black", linewidth=0.8)
        shares.set(title="Sample weight ω and pseudo-label accuracy (%)", xlabel="game step")
        flips.set(title="Pseudo-labels changed since last measurement", xlabel="game step")
        flips.set_ylim(bottom=0)
        if shares.lines:
            shares.legend()
        return figure


def interaction(entries: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the student's gradient had an interaction term at any step."""
    return any(entry.get("interaction_norm") for entry in entries)


def reliability(bins: Mapping[str, Sequence[Mapping[str, float]]]) -> Figure:
    """A reliability diagram: accuracy and number of rows by confidence; a calibrated model lies on the diagonal.

    bins: for each name, dictionaries with `rows`, `confidence` and `accuracy`, the last two as shares.
    """
    with style():
        figure = Figure(figsize=(8, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.plot((0, 100), (0, 100), color="black", linewidth=0.8)
        for number, (name, rows) in enumerate(bins.items()):
            confidence, accuracy = ([100 * row[key] for row in rows] for key in ("confidence", "accuracy"))
            look = {"color": CLASS_COLOURS[1 - number], "linestyle": ("--", "-")[number], "marker": MARKERS[number]}
            left.plot(confidence, accuracy, label=name, markersize=4, **look)
            right.plot(confidence, [row["rows"] for row in rows], label=name, markersize=4, **look)
        left.set(xlabel="confidence (%)", ylabel="accuracy (%)", xlim=(0, 102), ylim=(0, 102), aspect="equal")
        left.legend(loc="best")
        right.set(xlabel="confidence (%)", ylabel="rows", xlim=(0, 102))
        right.set_ylim(bottom=0)
        return figure


def confusion(counts: np.ndarray, classes: Sequence[str], *, down: str = "true", across: str = "predicted") -> Figure:
    """A confusion matrix of counts, shaded by the share of each row.

    counts: (C, C); the first axis goes down. classes: the class names; if the font cannot draw one of them, classes are
    numbered from 1. down, across: the names of the axes.
    """
    drawable = all(_is_drawable(name) for name in classes)
    # A dollar sign would begin a formula.
    names = [_shortened(name).replace("$", r"\$") if drawable else str(c) for c, name in enumerate(classes, 1)]
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    with style():
        side = 1.4 + 0.5 * len(classes)
        figure = Figure(figsize=(max(8, side), side), layout="constrained")
        axis = figure.subplots()
        axis.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        for row, column in np.ndindex(*counts.shape):
            ink = "white" if shares[row, column] > 0.5 else "black"
            axis.text(column, row, f"{counts[row, column]:,}", ha="center", va="center", color=ink, size=8)
        axis.set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor")
        axis.set_yticks(range(len(names)), names)
        axis.set(xlabel=across, ylabel=down)
        axis.grid(visible=False)
        return figure


def _log_if_wide(axis: Axes) -> None:
    """Use a logarithmic scale if all values are positive and span a decade; below that its ticks are hard to read."""
    values = [value for line in axis.lines for value in np.asarray(line.get_ydata())]
    if values and min(values) > 0 and max(values) >= 10 * min(values):
        axis.set_yscale("log")


def _is_drawable(text: str) -> bool:
    font = font_manager.get_font(font_manager.findfont("DejaVu Sans"))
    return all(font.get_char_index(ord(character)) for character in text)


def _shortened(text: str, length: int = 18) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
