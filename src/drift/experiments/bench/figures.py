"""The paper's figures 3 to 5, its table 4 as bars, and learning curves, from finished runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.experiments.bench.catalogue import Exhibit, Row
from drift.experiments.bench.cells import Job
from drift.experiments.bench.collecting import Results, scores_of
from drift.experiments.bench.running import RUN, cell_folder
from drift.report.figures import CLASS_COLOURS, COLOURS, MARKERS, band, save
from drift.report.page import Picture
from drift.runs.report_rings import ring_sections
from drift.runs.tsne import tsne
from drift.training.run_folder import METRICS, TRACE, RunFolder
from drift.training.trace import read_trace

SYMBOLS = {"alpha": "α", "tau": "τ"}
PLAYED = ("self-training", "drift")  # methods whose learning curves are drawn
MOST_PANELS = 4  # beside each other

Draw = Callable[[Exhibit, str, Results, Path, Path], list[Path]]


@dataclass(frozen=True)
class Drawing:
    """What draws from an exhibit, a group, results, a folder for figures and one of runs; and what it then shows."""

    draw: Draw
    shows: str


def pictures_of(exhibit: Exhibit, group: str, results: Results, folder: Path, runs: Path) -> list[Picture]:
    """Every figure of an exhibit for one kind of model, drawn into the folder."""
    return [
        Picture(path, f"{drawing.shows}.", f"{drawing.shows}. {path.relative_to(runs)}, and as SVG")
        for drawing in DRAWINGS.get(exhibit.name, ())
        for path in drawing.draw(exhibit, group, results, folder, runs)
    ]


def sensitivity(exhibit: Exhibit, group: str, results: Results, folder: Path) -> list[Path]:
    """Mean over seeds with a band of one standard deviation: a panel for each dataset and setting, a line a cell."""
    datasets = list(dict.fromkeys(cell.rpartition("-")[0] for cell in exhibit.cells))
    figure = Figure(figsize=(9, 3.2 * len(datasets)), layout="constrained")
    panels = figure.subplots(len(datasets), len(SYMBOLS), squeeze=False)
    drawn = False
    for (dataset, name), axes in zip(
        ((dataset, name) for dataset in datasets for name in SYMBOLS), panels.flat, strict=True
    ):
        rows = [row for row in exhibit.rows if name in row.settings["method"]]
        for place, cell in enumerate(cell for cell in exhibit.cells if cell.startswith(f"{dataset}-")):
            scores = {row.settings["method"][name]: scores_of(results, row, cell, group) for row in rows}
            points = [(value, list(found.values())) for value, found in scores.items() if found]
            if points:
                _line(axes, points, cell, place)
                drawn = True
        axes.set(xlabel=SYMBOLS[name], ylabel="test accuracy (%)", title=f"{SYMBOLS[name]} on {dataset}")
        _plain(axes)
        if axes.lines:
            axes.legend(frameon=False)
    return [save(figure, folder, f"{exhibit.name}-{group}")] if drawn else []


def _line(axes: Axes, points: list[tuple[float, list[float]]], label: str, place: int) -> None:
    x, mean = [value for value, _ in points], [100 * np.mean(shares) for _, shares in points]
    colour, dash = CLASS_COLOURS[place], ("-", "--")[place % 2]
    axes.plot(x, mean, f"{MARKERS[place % len(MARKERS)]}{dash}", color=colour, label=label, markersize=5)
    band(axes, points, colour)


def ablation(exhibit: Exhibit, group: str, results: Results, folder: Path) -> list[Path]:
    """A bar a row beside each other for every cell, with standard deviations."""
    figure = Figure(figsize=(1.2 + 1.6 * len(exhibit.cells), 3.6), layout="constrained")
    axes = figure.subplots()
    width, tops, floors = 0.8 / len(exhibit.rows), [], []
    for place, row in enumerate(exhibit.rows):
        for column, cell in enumerate(exhibit.cells):
            scores = 100 * np.array([*scores_of(results, row, cell, group).values()])
            if len(scores):
                spread = scores.std(ddof=1) if len(scores) > 1 else 0.0
                tops.append(scores.mean() + spread)
                floors.append(scores.mean() - spread)
                x = column + (place - (len(exhibit.rows) - 1) / 2) * width
                look: Any = {"color": CLASS_COLOURS[place], "edgecolor": "black", "linewidth": 0.5}
                axes.bar(x, scores.mean(), width, yerr=spread, capsize=2, label=None if column else row.title, **look)
    if not tops:
        return []
    axes.set_xticks(range(len(exhibit.cells)), list(exhibit.cells))
    axes.set(ylabel="test accuracy (%), not from 0", ylim=(max(0.0, min(floors) - 2), min(100.0, max(tops) + 1)))
    _plain(axes)
    figure.legend(loc="outside upper center", ncols=len(exhibit.rows), frameon=False)
    return [save(figure, folder, f"{exhibit.name}-{group}")]


def rings(exhibit: Exhibit, group: str, results: Results, folder: Path, runs: Path) -> list[Path]:
    """Self-training's rings and DRIFT's, of the seed each run kept, or of the first run."""
    paths: list[Path] = []
    for job in _first_runs(list(results)):
        run = RunFolder(cell_folder(runs, job) / RUN)
        metrics = run.read_json(METRICS)
        name = f"{exhibit.name}-{group}-{job.cell}-{job.row.lower()}"

        def draw(figure: Figure, _: str, alt: str, caption: str, name: str = name) -> Picture:
            paths.append(save(figure, folder, name))
            return Picture(paths[-1], alt, caption)

        ring_sections(run.path, metrics, metrics["seeds"].index(metrics["kept_seed"]), draw)
    return paths


def representations(exhibit: Exhibit, group: str, results: Results, folder: Path, runs: Path) -> list[Path]:
    """A figure a graph, a panel a method."""
    paths = []
    for cell in exhibit.cells:
        jobs = _first_runs([job for job in results if job.cell == cell])
        if jobs:
            places = [cell_folder(runs, job) / RUN for job in jobs]
            titles = [f"{job.row} on {cell.rpartition('-')[0]}" for job in jobs]
            paths.append(tsne(places, folder / f"{exhibit.name}-{cell}", titles=titles))
    return paths


def curves(exhibit: Exhibit, group: str, results: Results, folder: Path, runs: Path) -> list[Path]:
    """Dev scores over the steps of the game: a panel a cell, a line a method, a band of one standard deviation."""
    rows = [row for row in exhibit.rows if row.method in PLAYED]
    found = {cell: [_looks(row, cell, group, results, runs) for row in rows] for cell in exhibit.cells}
    drawn = [cell for cell in exhibit.cells if any(found[cell])]
    if not drawn:
        return []
    wide = min(len(drawn), MOST_PANELS)
    high = -(-len(drawn) // wide)
    figure = Figure(figsize=(max(4.5, 2.7 * wide), 0.5 + 2.3 * high), layout="constrained")
    panels = figure.subplots(high, wide, squeeze=False)
    others = (colour for colour in CLASS_COLOURS if colour != COLOURS["Self-training"])
    colours = [COLOURS["Self-training"] if row.title == "Self-training" else next(others) for row in rows]
    for cell, axes in zip(drawn, panels.flat, strict=False):
        for row, looks, colour, marker in zip(rows, found[cell], colours, MARKERS[: len(rows)], strict=True):
            if looks:
                mean = [100 * np.mean(shares) for _, shares in looks]
                style: Any = {"color": colour, "linewidth": 1.2, "marker": marker, "markersize": 3}
                axes.plot([step for step, _ in looks], mean, label=row.title, **style)
                band(axes, looks, colour)
        axes.set_title(cell)
        _plain(axes)
    for axes in panels.flat[len(drawn) :]:
        axes.remove()
    figure.supxlabel("step of the game")
    figure.supylabel("dev score (%)")
    lines = {line.get_label(): line for axes in figure.axes for line in axes.lines}
    figure.legend(handles=list(lines.values()), loc="outside upper center", ncols=len(lines), frameon=False)
    return [save(figure, folder, f"{exhibit.name}-{group}-curves")]


def _looks(row: Row, cell: str, group: str, results: Results, runs: Path) -> list[tuple[int, list[float]]]:
    """Steps of the game and the shares by seed there; of runs of a seed each, the steps that all of them have.

    Traces of many seeds without a share for each have their mean alone.
    """
    shares: dict[int, list[float]] = {}
    place = (group, row.title, cell)
    traces = [cell_folder(runs, job) / RUN / TRACE for job in results if (job.group, job.row, job.cell) == place]
    for trace in filter(Path.exists, traces):
        for entry in read_trace(trace):
            if entry["phase"] == "game" and "dev" in entry:
                chosen_by, mean = next(iter(entry["dev"].items()))
                own = entry.get("dev_by_seed", {chosen_by: [mean]})[chosen_by]
                shares.setdefault(entry["step"], []).extend(own)
    most = max(map(len, shares.values()), default=0)
    return [(step, found) for step, found in sorted(shares.items()) if len(found) == most]


def _first_runs(jobs: Sequence[Job]) -> list[Job]:
    """One for each row and cell."""
    return list({(job.row, job.cell): job for job in reversed(jobs)}.values())[::-1]


def _plain(axes: Axes) -> None:
    axes.grid(axis="y", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _alone(draw: Callable[[Exhibit, str, Results, Path], list[Path]]) -> Draw:
    """For figures of results that need no run's folder."""
    return lambda exhibit, group, results, folder, _: draw(exhibit, group, results, folder)


BAND = "mean over seeds, with a band of one standard deviation"
CURVES = Drawing(curves, f"Scores on dev over the steps of the game after the start: {BAND}")
DRAWINGS: Mapping[str, Sequence[Drawing]] = {
    "weak": [CURVES],
    "semi": [CURVES],
    "textcnn": [CURVES],
    "ablation": [Drawing(_alone(ablation), "Test scores of the table as bars, with standard deviations"), CURVES],
    "graphs": [CURVES],
    "sensitivity": [Drawing(_alone(sensitivity), f"Test scores by α and by τ: {BAND}")],
    "rings": [Drawing(rings, "Which training samples each method has right, from the first look (inside) to the last")],
    "tsne": [Drawing(representations, "Learned representations in the plane (t-SNE), one colour a class")],
}
