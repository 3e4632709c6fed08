"""Draw figures from finished runs: the paper's figures 3 to 5, its table 4 as bars, and learning curves."""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.paper.bench.catalogue import Exhibit, MethodRow
from drift.paper.bench.cells import Job
from drift.paper.bench.collecting import Results, scores_of
from drift.paper.bench.configs import dataset_of
from drift.paper.bench.running import RUN, cell_folder
from drift.paper.self_training import COPIED, DETACHED, LEE
from drift.report.figures import CLASS_COLOURS, COLOURS, MARKERS, band, save, style
from drift.report.page import Picture
from drift.runs.prediction_rings import ring_sections
from drift.runs.record import read_record
from drift.runs.tsne import tsne
from drift.training.run_folder import TRACE, RunFolder
from drift.training.trace import read_trace

SYMBOLS = {"alpha": "α", "tau": "τ"}
CURVES_OF = {LEE, COPIED, DETACHED}  # forms of self-training whose learning curves are drawn, beside all of DRIFT
MOST_PANELS = 4  # per row
HATCHES = ("", "///", "...", "xxx", "+++")  # bars can be told apart without their colours

BAND = "mean over seeds, with a band of one standard deviation"

Draw = Callable[[Exhibit, str, Results, Path, Path], list[Picture]]
"""Draws figures from: the exhibit, the group of models, results, the figures' path without suffix, the bench folder."""


def pictures_of(exhibit: Exhibit, group: str, results: Results, stem: Path, runs: Path) -> list[Picture]:
    """Draw all figures of an exhibit for one group of models.

    stem: path of the files, without suffix. runs: the folder of the bench.
    """
    drawings = DRAWINGS.get(exhibit.name, ())
    with style():
        return [picture for draw in drawings for picture in draw(exhibit, group, results, stem, runs)]


def _picture(path: Path, description: str, alt: str = "") -> Picture:
    """A picture whose caption is the description and the name of the file. alt: default: the description."""
    return Picture(path, alt or description, f"{description} {path.parent.name}/{path.name}, and as SVG")


def sensitivity(exhibit: Exhibit, group: str, results: Results, stem: Path, _: Path) -> list[Picture]:
    """Test score by α and by τ: one panel per dataset and setting, one line per cell and method, with bands.

    Dotted: conventional self-training, which has neither α nor τ.
    """
    datasets = list(dict.fromkeys(dataset_of(cell) for cell in exhibit.cells))
    figure = Figure(figsize=(9, 3.2 * len(datasets)), layout="constrained")
    panels = figure.subplots(len(datasets), len(SYMBOLS), squeeze=False)
    drawn = False
    for (dataset, name), axes in zip(
        ((dataset, name) for dataset in datasets for name in SYMBOLS), panels.flat, strict=True
    ):
        cells = [cell for cell in exhibit.cells if cell.startswith(f"{dataset}-")]
        studied = [row for row in exhibit.rows if name in row.settings.get("method", {})]
        for number, (cell, method) in enumerate(product(cells, dict.fromkeys(row.method for row in studied))):
            rows = [row for row in studied if row.method == method]
            scores = {row.settings["method"][name]: scores_of(results, row, cell, group) for row in rows}
            points = [(value, list(by_seed.values())) for value, by_seed in scores.items() if by_seed]
            if points:
                _line(axes, points, cell if method == "drift" else f"{cell}, detached", number)
                drawn = True
        for number, (cell, row) in enumerate(product(cells, [row for row in exhibit.rows if row.title in CURVES_OF])):
            if by_seed := scores_of(results, row, cell, group):
                level, colour = 100 * np.mean([*by_seed.values()]), CLASS_COLOURS[-1 - number]
                axes.axhline(level, color=colour, linestyle=":", label=f"{cell}, {row.title}")
        axes.set(xlabel=SYMBOLS[name], ylabel="test accuracy (%)", title=f"{SYMBOLS[name]} on {dataset}")
        if axes.lines:
            axes.legend()
    path = save(figure, stem.parent, stem.name) if drawn else None
    return [_picture(path, f"Test scores by α and by τ: {BAND}.")] if path else []


def _line(axes: Axes, points: list[tuple[float, list[float]]], label: str, number: int) -> None:
    """Draw a line with its band. points: x and the scores of all seeds. number: of the line, for its colour."""
    x, mean = [value for value, _ in points], [100 * np.mean(scores) for _, scores in points]
    colour, dash = CLASS_COLOURS[number], ("-", "--")[number % 2]
    axes.plot(x, mean, f"{MARKERS[number % len(MARKERS)]}{dash}", color=colour, label=label, markersize=5)
    band(axes, points, colour)


def ablation(exhibit: Exhibit, group: str, results: Results, stem: Path, _: Path) -> list[Picture]:
    """Test scores as bars with standard deviations: for every cell, one bar per row of the table."""
    figure = Figure(figsize=(1.2 + 1.6 * len(exhibit.cells), 3.6), layout="constrained")
    axes = figure.subplots()
    width, tops, floors = 0.8 / len(exhibit.rows), [], []
    for number, row in enumerate(exhibit.rows):
        in_legend = False
        for column, cell in enumerate(exhibit.cells):
            scores = 100 * np.array([*scores_of(results, row, cell, group).values()])
            if len(scores):
                spread = scores.std(ddof=1) if len(scores) > 1 else 0.0
                tops.append(scores.mean() + spread)
                floors.append(scores.mean() - spread)
                x = column + (number - (len(exhibit.rows) - 1) / 2) * width
                colour = CLASS_COLOURS[number % len(CLASS_COLOURS)]
                bar_style: Any = {"color": colour, "hatch": HATCHES[number % len(HATCHES)]}
                bar_style |= {"edgecolor": "black", "linewidth": 0.5, "label": None if in_legend else row.title}
                axes.bar(x, scores.mean(), width, yerr=spread, capsize=2, **bar_style)
                in_legend = True
    if not tops:
        return []
    axes.set_xticks(range(len(exhibit.cells)), list(exhibit.cells))
    axes.set(ylabel="test accuracy (%), not from 0", ylim=(max(0.0, min(floors) - 2), min(100.0, max(tops) + 1)))
    axes.grid(visible=False, axis="x")
    figure.legend(loc="outside upper center", ncols=min(6, len(exhibit.rows)))
    path = save(figure, stem.parent, stem.name)
    return [_picture(path, "Test scores as bars, with standard deviations.")]


def rings(exhibit: Exhibit, group: str, results: Results, stem: Path, runs: Path) -> list[Picture]:
    """Rings of right and wrong predictions of each row, from its first run."""
    pictures: list[Picture] = []
    for job in _first_runs(list(results)):
        run = RunFolder(cell_folder(runs, job) / RUN)
        _, record = read_record(run)

        def draw(figure: Figure, _: str, alt: str, caption: str, job: Job = job) -> Picture:
            path = save(figure, stem.parent, f"{stem.name}-{job.cell}-{MethodRow(job.row, '').name}")
            name = f"{job.row}, {job.cell}"
            pictures.append(_picture(path, f"{name}. {caption}", f"{name}. {alt}"))
            return pictures[-1]

        ring_sections(run.path, record, draw)
    return pictures


def representations(exhibit: Exhibit, group: str, results: Results, stem: Path, runs: Path) -> list[Picture]:
    """Learned representations (t-SNE): one figure per graph, one panel per method."""
    pictures = []
    for cell in exhibit.cells:
        jobs = _first_runs([job for job in results if job.cell == cell])
        if jobs:
            folders = [cell_folder(runs, job) / RUN for job in jobs]
            titles = [f"{job.row} on {dataset_of(cell)}" for job in jobs]
            path = tsne(folders, stem.with_name(f"{stem.name}-{cell}"), titles=titles)
            pictures.append(_picture(path, f"Learned representations of {cell} (t-SNE), one colour per class."))
    return pictures


def curves(exhibit: Exhibit, group: str, results: Results, stem: Path, runs: Path) -> list[Picture]:
    """Dev scores over the steps of the second phase: one panel per cell, one line per method, with bands."""
    rows = [row for row in exhibit.rows if row.method == "drift" or row.title in CURVES_OF]
    by_cell = {cell: [_dev_scores(row, cell, group, results, runs) for row in rows] for cell in exhibit.cells}
    drawn = [cell for cell in exhibit.cells if any(by_cell[cell])]
    if not drawn:
        return []
    columns = min(len(drawn), MOST_PANELS)
    lines = -(-len(drawn) // columns)
    figure = Figure(figsize=(max(4.5, 2.7 * columns), 0.5 + 2.3 * lines), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False)
    others = (colour for colour in CLASS_COLOURS if colour not in {COLOURS[title] for title in CURVES_OF})
    colours = [COLOURS[row.title] if row.title in CURVES_OF else next(others) for row in rows]
    for cell, axes in zip(drawn, panels.flat, strict=False):
        for row, points, colour, marker in zip(rows, by_cell[cell], colours, cycle(MARKERS), strict=False):
            if points:
                mean = [100 * np.mean(scores) for _, scores in points]
                line_style: Any = {"color": colour, "linewidth": 1.2, "marker": marker, "markersize": 3}
                axes.plot([step for step, _ in points], mean, label=row.title, **line_style)
                band(axes, points, colour)
        axes.set_title(cell)
    for axes in panels.flat[len(drawn) :]:
        axes.remove()
    figure.supxlabel("step of the game")
    figure.supylabel("dev score (%)")
    handles = {line.get_label(): line for axes in figure.axes for line in axes.lines}
    figure.legend(handles=list(handles.values()), loc="outside upper center", ncols=len(handles))
    path = save(figure, stem.parent, f"{stem.name}-curves")
    return [_picture(path, f"Dev scores over the steps of the game, after the start: {BAND}.")]


def _dev_scores(row: MethodRow, cell: str, group: str, results: Results, runs: Path) -> list[tuple[int, list[float]]]:
    """Steps of the second phase with the dev scores of all seeds. Of several runs, only steps that all of them have.

    If a trace of several seeds holds only their mean, the list has that one value.
    """
    by_step: dict[int, list[float]] = {}
    jobs = [job for job in results if job.position == (group, row.title, cell)]
    traces = [cell_folder(runs, job) / RUN / TRACE for job in jobs]
    for trace in filter(Path.exists, traces):
        for entry in read_trace(trace):
            if entry["phase"] == "game" and "dev" in entry:
                measure, mean = next(iter(entry["dev"].items()))
                scores = entry.get("dev_by_seed", {measure: [mean]})[measure]
                by_step.setdefault(entry["step"], []).extend(scores)
    most = max(map(len, by_step.values()), default=0)
    return [(step, scores) for step, scores in sorted(by_step.items()) if len(scores) == most]


def _first_runs(jobs: Sequence[Job]) -> list[Job]:
    """The first run of each row and cell."""
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
