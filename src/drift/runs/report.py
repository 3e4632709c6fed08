"""The page about a run, made from what its folder holds."""

import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import BaseModel, ValidationError

from drift.errors import FileError
from drift.report import figures
from drift.report.page import Picture, Section, Table, write_page
from drift.runs.explanations import explanation_sections, write_explanations
from drift.runs.load import load
from drift.runs.prediction_rings import ring_sections
from drift.runs.record import read_record, read_settings
from drift.runs.result import REPORT
from drift.runs.summary import caption, cost, limits, score_bars, score_rows, spread, verdict
from drift.runs.usage_report import origin_sections, usage_sections
from drift.tasks import Task
from drift.tasks.parts import Draw
from drift.tasks.record import RunRecord
from drift.tasks.record_parts import Scores
from drift.training.run_folder import TRACE, RunFolder
from drift.training.trace import read_trace

WARNING = "warning: "


def write_report(run: str | Path, *, task: str | type[Task] | None = None, explain: Any = None) -> Path:
    """Write `report.html` into the folder of a finished run, replacing the one that is there.

    Parameters
    ----------
    run : path
        Folder of a finished run.
    task : str or class, default=None
        The task of the run, if it is not a built-in one.
    explain : path, DataFrame or Dataset, default=None
        Also show why some rows of this table get their predictions. The page keeps them until other rows are named.

    Returns
    -------
    Path
        The page.
    """
    folder = RunFolder(run)
    task_type, record = read_record(folder, task)
    if explain is not None:
        write_explanations(folder, load(run, task=task), explain)
    config = read_settings(folder, task_type)
    entries = _entries(folder.path / TRACE, record)
    title = f"{folder.path.resolve().name}: {record.method} on {Path(config.data.train).name}"
    with TemporaryDirectory() as pictures:

        def draw(figure: Any, name: str, alt: str, caption: str = "") -> Picture:
            path = Path(pictures) / f"{name}.png"  # PNG only: drawing takes time, and the page shows no other format
            figure.savefig(path, dpi=160)
            return Picture(path, alt, caption)

        sections = [
            score_section(record),
            *curve_sections(record, entries, draw),
            *task_type.result_sections(record, draw),
            *calibration_sections(record, draw),
            *task_type.weak_label_sections(record),
            *game_sections(entries, draw),
            *ring_sections(folder.path, record, draw),
            *change_sections(record),
            *task_type.example_sections(record),
            *explanation_sections(folder),
            *note_sections(record),
            *usage_sections(folder, task_type, record, config.model_dump(mode="json")),
            *origin_sections(folder),
        ]
        return write_page(folder.path / REPORT, title, sections)


class TraceEntry(BaseModel):
    """What the page reads of an entry of the trace. The diagnostics of the game are all there, or none is."""

    phase: str
    step: int
    loss: float = math.nan
    dev: Scores = {}
    dev_by_seed: dict[str, list[float]] = {}
    leader_norm: float = math.nan
    interaction_norm: float = math.nan
    angle: float | None = None
    mean_omega: float = math.nan
    flips: float | None = None
    probe_size: int = 0
    pseudo_label_accuracy: float = math.nan


def _entries(trace: Path, record: RunRecord) -> list[dict[str, Any]]:
    """The entries of a trace that the page can show; one with other fields is an error."""
    entries = read_trace(trace) if trace.exists() else []
    try:
        for entry in map(TraceEntry.model_validate, entries):
            names = entry.model_fields_set
            scored = [
                scores for name, scores in (("dev", entry.dev), ("dev_by_seed", entry.dev_by_seed)) if name in names
            ]
            if any(record.measure not in scores for scores in scored):
                raise ValueError(f"step {entry.step} has no {record.measure}")
            if "leader_norm" in names and not {"interaction_norm", "mean_omega", "probe_size"} <= names:
                raise ValueError(f"step {entry.step} lacks diagnostics of the game")
    except ValueError as error:  # also pydantic's
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise FileError(f"{trace} is damaged ({reason}); copy the run's folder again") from None
    return entries


def score_section(record: RunRecord) -> Section:
    """The result in one sentence, what it cost in labels, and all scores beside those of simple baselines."""
    budget = record.label_budget
    text = [f"{line[:1].upper()}{line[1:]}." for line in verdict(record)]
    text.append(
        f"Label budget: {budget.total:,} gold labels, {budget.train:,} for training and {budget.dev:,} of dev for model"
        f" selection. Trained on {record.training_rows:,} {record.unit}, with or without label."
    )
    seeds, part = len(record.seeds), record.held_out
    if seeds > 1:
        kept = f"The model is that of seed {record.kept_seed} of {seeds} ({record.kept_because})"
        if record.averaged:
            kept = f"The model is {record.kept_because}"
        if part is not None:
            name = record.measures[record.measure]
            kept += f"; over single seeds, {name} is {spread(record.scores_on(part), record.measure)} %"
        text.append(f"{kept}.")
    rows = score_rows(record)
    headings = ["scores in %", record.unit, *record.measures.values()]
    shown = score_bars(record)
    return Section(
        "Results",
        text,
        lead=_headline(record),
        warnings=[note for note in record.notes if note.startswith(WARNING)],
        bars=shown,
        bars_title=_bars_title(record) if shown else "",
        advice=limits(record, getattr(record, "confusion", None)),
        tables=[Table(headings, rows, caption(record) or "One seed")] if rows else [],
    )


def _bars_title(record: RunRecord) -> str:
    intervals = ", with 95 % intervals" if record.measure == "accuracy" else ""
    return f"{record.measures[record.measure]} on {record.held_out}, in %{intervals}"


def _headline(record: RunRecord) -> str:
    part = record.held_out
    scores = None if part is None else record.scores_on(part)
    if scores is None:
        return (
            "Not known: there was no dev and no test set, so nothing was measured. Label some rows that were not"
            " trained on, and score the model with drift evaluate."
        )
    assert part is not None
    score = 100 * (record.model_scores(part) or {})[record.measure]
    rows = f"{scores.rows:,} {part} {record.unit}"
    if record.measure == "accuracy":
        result = f"The classifier is right on {score:.2f} % of {rows}"
    else:
        result = f"The {record.measures[record.measure]} is {score:.2f} % on {rows}"
    if part == "dev":
        return (
            f"{result}. There was no test set: these rows also selected the step and the seed, so the score on other"
            " rows will likely be lower."
        )
    return f"{result}, scored once, at the end."


def curve_sections(record: RunRecord, entries: list[dict[str, Any]], draw: Draw) -> list[Section]:
    """Loss and dev score by step."""
    if not entries:
        return []
    name = record.measures[record.measure]
    ends = [entry["dev"][record.measure] for entry in entries if "dev" in entry]
    alt = f" Mean dev {name} goes from {100 * ends[0]:.1f} to {100 * ends[-1]:.1f} %." if ends else ""
    text = f"{cost(record)}."
    text += "".join(f" {str(end)[:1].upper()}{str(end)[1:]}." for end in record.phases)
    if ends:
        text += " Of each seed, the step with the best dev score was kept, not the last."
    figure = figures.training_curves(entries, score=record.measure, name=name)
    picture = draw(figure, "curves", f"Loss{' and dev score' if ends else ''} by step.{alt}", "")
    return [Section("Learning curves", [text], pictures=[picture])]


def calibration_sections(record: RunRecord, draw: Draw) -> list[Section]:
    """How well confidence agrees with accuracy."""
    calibration, part = record.calibration, record.held_out
    scores = None if part is None else record.scores_on(part)
    if calibration is None or scores is None:
        return []
    before, after = (f"{100 * error:.1f}" for error in (calibration.error_before, calibration.error_after))
    where = f"on {scores.rows:,} {part} {record.unit}"
    bins = {"as trained": [each.model_dump() for each in calibration.bins_before]}
    if record.dev is not None or record.estimate is not None:
        fitted = "on dev" if record.dev is not None else "on labels that were left out in turn"
        text = (
            f"The expected calibration error is {before} points as trained ({where}), and {after} with a temperature of"
            f" {calibration.temperature:.2f}, which was fitted {fitted}."
        )
        if part == "dev":
            text += " The same rows gave the temperature, so the error on other rows will be somewhat larger."
        bins["with temperature"] = [each.model_dump() for each in calibration.bins_after]
    else:
        text = f"The expected calibration error is {before} points ({where}). No temperature was fitted."
    caption = "One dot per bin of confidence; on the diagonal, confidence equals accuracy."
    picture = draw(figures.reliability(bins), "reliability", f"Reliability diagram. {text}", caption)
    return [Section("Calibration", [text], pictures=[picture])]


def game_sections(entries: list[dict[str, Any]], draw: Draw) -> list[Section]:
    """Diagnostics of the game: gradient norms, weights, pseudo-labels."""
    logged = [entry for entry in entries if "leader_norm" in entry]
    if not logged:
        return []
    last = logged[-1]
    text = [f"At step {last['step']:,}, the last that was logged, the mean weight ω of a pseudo-label was"]
    text[0] += f" {last['mean_omega']:.3f}."
    if interacts := figures.interaction(logged):
        text.insert(
            0,
            "The student's gradient has two parts: its own (leader), and the effect of its step on the teacher's"
            " pseudo-labels (interaction). Conventional self-training has only the first. Their last norms were"
            f" {last['leader_norm']:.2g} and {last['interaction_norm']:.2g}.",
        )
    if "pseudo_label_accuracy" in last:
        text.append(
            f"On a fixed sample, {100 * last['pseudo_label_accuracy']:.1f} % of the pseudo-labels with a known gold"
            " label were right. Nothing was selected by this."
        )
    sample = f"Changes are counted on the same {last['probe_size']:,} pseudo-labels each time."
    picture = draw(figures.game_curves(logged), "game", "The game's diagnostics by step.", sample)
    title = "Student and teacher" if interacts else "Weights and pseudo-labels"
    folded = "Norms of the gradients, weights and pseudo-labels, by step"
    return [Section(title, text, pictures=[picture], folded=folded)]


def change_sections(record: RunRecord) -> list[Section]:
    """Unlabelled rows whose predicted class changed after the start."""
    changes = record.changes
    if changes is None or not changes.changed:
        return []
    text = [
        f"Of {changes.watched:,} unlabelled {record.unit} that were watched, {changes.changed:,} have another predicted"
        " class at the end than at the start."
    ]
    if changes.known:
        text.append(
            f"The true class of {changes.known:,} of these is known: {changes.right_before:,} were right at the start,"
            f" {changes.right_after:,} are at the end. Nothing was selected by this."
        )
    headings = [record.unit.removesuffix("s"), "at the start", "at the end"]
    rows = [[each.text, each.before, each.after] for each in changes.examples]
    if any(each.label for each in changes.examples):
        headings.append("true class")
        rows = [[*row, each.label or ""] for row, each in zip(rows, changes.examples, strict=True)]
    return [Section("Predictions that changed", text, [Table(headings, rows)])]


def note_sections(record: RunRecord) -> list[Section]:
    """What a user should know; warnings are shown with the results."""
    text = [note for note in record.notes if not note.startswith(WARNING)]
    return [Section("Notes", text)] if text else []
