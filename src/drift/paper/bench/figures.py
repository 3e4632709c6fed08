"""The paper's figures 3 to 5, its table 4 as bars, and learning curves, from finished runs."""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.paper.bench.catalogue import Exhibit, MethodRow
from drift.paper.bench.cells import Job
from drift.paper.bench.collecting import Results, scores_of
from drift.paper.bench.running import RUN, cell_folder
from drift.report.figures import CLASS_COLOURS, COLOURS, MARKERS, band, save, style
from drift.report.page import Picture
from drift.runs.report_rings import ring_sections
from drift.runs.tsne import tsne
from drift.training.run_folder import METRICS, TRACE, RunFolder
from drift.training.trace import read_trace

SYMBOLS = {"alpha": "α", "tau": "τ"}
PLAYED = ("self-training", "drift")  # methods whose learning curves are drawn
MOST_PANELS = 4  # beside each other
HATCHES = ("", "///", "...", "xxx")  # bars differ without their colours too

BAND = "mean over seeds, with a band of one standard deviation"

# From an exhibit, a kind of model, results, where figures go without their ending, and the folder of runs.
Draw = Callable[[Exhibit, str, Results, Path, Path], list[Picture]]


def pictures_of(exhibit: Exhibit, group: str, results: Results, stem: Path, runs: Path) -> list[Picture]:
    """Every figure of an exhibit for one kind of model. stem: the path of its files but for how they end."""
    drawings = DRAWINGS.get(exhibit.name, ())
    with style():
        return [picture for draw in drawings for picture in draw(exhibit, group, results, stem, runs)]


def _picture(path: Path, shows: str, alt: str = "") -> Picture:
    """What it shows is the caption, with the file it is in, and what a screen reader says if there is no `alt`."""
    return Picture(path, alt or shows, f"{shows} {path.parent.name}/{path.name}, and as SVG")


def sensitivity(exhibit: Exhibit, group: str, results: Results, stem: Path, _: Path) -> list[Picture]:
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
        if axes.lines:
            axes.legend()
    path = save(figure, stem.parent, stem.name) if drawn else None
    return [_picture(path, f"Test scores by α and by τ: {BAND}.")] if path else []


def _line(axes: Axes, points: list[tuple[float, list[float]]], label: str, place: int) -> None:
    x, mean = [value for value, _ in points], [100 * np.mean(shares) for _, shares in points]
    colour, dash = CLASS_COLOURS[place], ("-", "--")[place % 2]
    axes.plot(x, mean, f"{MARKERS[place % len(MARKERS)]}{dash}", color=colour, label=label, markersize=5)
    band(axes, points, colour)


def ablation(exhibit: Exhibit, group: str, results: Results, stem: Path, _: Path) -> list[Picture]:
    """A bar a row beside each other for every cell, with standard deviations."""
    figure = Figure(figsize=(1.2 + 1.6 * len(exhibit.cells), 3.6), layout="constrained")
    axes = figure.subplots()
    width, tops, floors = 0.8 / len(exhibit.rows), [], []
    for place, row in enumerate(exhibit.rows):
        labelled = False
        for column, cell in enumerate(exhibit.cells):
            scores = 100 * np.array([*scores_of(results, row, cell, group).values()])
            if len(scores):
                spread = scores.std(ddof=1) if len(scores) > 1 else 0.0
                tops.append(scores.mean() + spread)
                floors.append(scores.mean() - spread)
                x = column + (place - (len(exhibit.rows) - 1) / 2) * width
                look: Any = {"color": CLASS_COLOURS[place], "hatch": HATCHES[place % len(HATCHES)]}
                look |= {"edgecolor": "black", "linewidth": 0.5, "label": None if labelled else row.title}
                axes.bar(x, scores.mean(), width, yerr=spread, capsize=2, **look)
                labelled = True
    if not tops:
        return []
    axes.set_xticks(range(len(exhibit.cells)), list(exhibit.cells))
    axes.set(ylabel="test accuracy (%), not from 0", ylim=(max(0.0, min(floors) - 2), min(100.0, max(tops) + 1)))
    axes.grid(visible=False, axis="x")  # bars stand apart as they are
    figure.legend(loc="outside upper center", ncols=len(exhibit.rows))
    path = save(figure, stem.parent, stem.name)
    return [_picture(path, "Test scores of the table as bars, with standard deviations.")]


def rings(exhibit: Exhibit, group: str, results: Results, stem: Path, runs: Path) -> list[Picture]:
    """Self-training's rings and DRIFT's, of the seed each run kept, or of the first run."""
    pictures: list[Picture] = []
    for job in _first_runs(list(results)):
        run = RunFolder(cell_folder(runs, job) / RUN)
        metrics = run.read_json(METRICS)

        def draw(figure: Figure, _: str, alt: str, caption: str, job: Job = job) -> Picture:
            path = save(figure, stem.parent, f"{stem.name}-{job.cell}-{job.row.lower()}")
            whose = f"{job.row}, {job.cell}"
            pictures.append(_picture(path, f"{whose}. {caption}", f"{whose}. {alt}"))
            return pictures[-1]

        ring_sections(run.path, metrics, metrics["seeds"].index(metrics["kept_seed"]), draw)
    return pictures


def representations(exhibit: Exhibit, group: str, results: Results, stem: Path, runs: Path) -> list[Picture]:
    """A figure a graph, a panel a method."""
    pictures = []
    for cell in exhibit.cells:
        jobs = _first_runs([job for job in results if job.cell == cell])
        if jobs:
            places = [cell_folder(runs, job) / RUN for job in jobs]
            titles = [f"{job.row} on {cell.rpartition('-')[0]}" for job in jobs]
            path = tsne(places, stem.with_name(f"{stem.name}-{cell}"), titles=titles)
            shows = f"Learned representations of {cell} in the plane (t-SNE), one colour a class."
            pictures.append(_picture(path, shows))
    return pictures


def curves(exhibit: Exhibit, group: str, results: Results, stem: Path, runs: Path) -> list[Picture]:
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
        for row, looks, colour, marker in zip(rows, found[cell], colours, cycle(MARKERS), strict=False):
            if looks:
                mean = [100 * np.mean(shares) for _, shares in looks]
                look: Any = {"color": colour, "linewidth": 1.2, "marker": marker, "markersize": 3}
                axes.plot([step for step, _ in looks], mean, label=row.title, **look)
                band(axes, looks, colour)
        axes.set_title(cell)
    for axes in panels.flat[len(drawn) :]:
        axes.remove()
    figure.supxlabel("step of the game")
    figure.supylabel("dev score (%)")
    lines = {line.get_label(): line for axes in figure.axes for line in axes.lines}
    figure.legend(handles=list(lines.values()), loc="outside upper center", ncols=len(lines))
    path = save(figure, stem.parent, f"{stem.name}-curves")
    return [_picture(path, f"Scores on dev over the steps of the game after the start: {BAND}.")]


def _looks(row: MethodRow, cell: str, group: str, results: Results, runs: Path) -> list[tuple[int, list[float]]]:
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


DRAWINGS: Mapping[str, Sequence[Draw]] = {
    "weak": [curves],
    "semi": [curves],
    "textcnn": [curves],
    "ablation": [ablation, curves],
    "graphs": [curves],
    "sensitivity": [sensitivity],
    "rings": [rings],
    "tsne": [representations],
}
