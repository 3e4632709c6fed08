"""Collect finished runs into tables, and list what was not run."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from drift.methods import METHODS
from drift.paper.bench.catalogue import Exhibit, MethodRow, paper_figure
from drift.paper.bench.cells import Job
from drift.paper.bench.estimates import correction, embedding_seconds, estimated_seconds
from drift.paper.bench.notes import notes_of, outcome_notes
from drift.paper.bench.running import Result
from drift.runs.comparing.tables import MOST_KEPT, Cell, ScoreTable
from drift.training.plan import format_duration

Results = Mapping[Job, Result]


def table_of(
    exhibit: Exhibit, profile: str, group: str, jobs: Sequence[Job], results: Results, failed: Collection[str] = ()
) -> ScoreTable:
    """The table of one group of models. jobs: all jobs of the exhibit. failed: keys of jobs that failed."""
    rows: dict[str, dict[str, Cell]] = {}
    budgets: dict[str, str] = {}
    for row in exhibit.rows:
        rows[row.title] = {}
        for cell in exhibit.cells:
            cell_jobs = [job for job in jobs if job.position == (group, row.title, cell)]
            finished = [results[job] for job in cell_jobs if job in results]
            figure = paper_figure(exhibit.name, row.paper, cell)
            if cell_jobs or figure is not None:  # else the method cannot be run on this data
                scores = scores_of(results, row, cell, group)
                hours = _hours(cell_jobs, results) if cell_jobs and not scores else None
                rows[row.title][cell] = Cell(
                    scores,
                    hours,
                    figure,
                    failed=any(job.key in failed for job in cell_jobs),
                    wanted=sum(job.config["seeds"] for job in cell_jobs),
                    kept=sum(result.kept for result in finished),
                    rows_by_seed=any(job.config["seeds"] == 1 and _is_subsampled(job) for job in cell_jobs),
                )
            if finished and not _uses_other_labels(row):
                budget = finished[0].budget
                budgets[cell] = f"{budget['train']:,} + {budget['dev']:,} dev"
    title = f"{exhibit.reference.capitalize()}: {exhibit.summary} ({group}, profile {profile})"
    notes = notes_of(exhibit, profile, group, [job for job in jobs if job.group == group])
    if any(cell.is_start for cells in rows.values() for cell in cells.values()):
        notes.insert(
            1, f"{MOST_KEPT.strip()} marks cells in which most seeds end with their start; a tie there says nothing"
        )
    rows = {title: cells for title, cells in rows.items() if cells or title == exhibit.baseline}
    apart = [row.title for row in exhibit.rows if _uses_other_labels(row)]
    table = ScoreTable(title, exhibit.cells, rows, exhibit.baseline, None, budgets, notes, apart, corrects=True)
    return replace(table, notes=[*notes, *outcome_notes(table)])


def _uses_other_labels(row: MethodRow) -> bool:
    """Whether the row is trained on labels that the other rows do not have."""
    return row.gold or METHODS[row.method].trains_on_dev


def _is_subsampled(job: Job) -> bool:
    """Whether the rows depend on the seed. Seeds that are trained together share the rows of the first."""
    return job.draw is not None or any(
        job.config["data"].get(f"{part}_rows") is not None for part in ("train", "dev", "test")
    )


def not_run(exhibit: Exhibit, jobs: Sequence[Job], results: Results) -> list[str]:
    """What the profile leaves out: one line per group of models."""
    lines = []
    for group in dict.fromkeys(job.group for job in jobs):
        left_out = [job for job in jobs if job.group == group and job.left_out and job not in results]
        if left_out:
            run = {job.cell for job in jobs if job.group == group and not job.left_out}
            cells = ", ".join(
                f"rest of {cell}" if cell in run else cell for cell in dict.fromkeys(job.cell for job in left_out)
            )
            duration = _duration(left_out, results)
            lines.append(f"not run in this profile: {group}, {len(left_out)} runs, about {duration} ({cells})")
    return lines


def plan_lines(jobs: Sequence[Job], results: Results) -> list[str]:
    """What is finished and what is left to run, with estimates: one line per cell and method, and the total."""
    lines, jobs = [], [job for job in jobs if not job.left_out]
    for position in dict.fromkeys(job.position for job in jobs):
        group, row, cell = position
        cell_jobs = [job for job in jobs if job.position == position]
        left = [job for job in cell_jobs if job not in results]
        state = f"to run: {len(left)} of {len(cell_jobs)}, about {_duration(left, results)}" if left else "finished"
        lines.append(f"{group}  {cell}  {row}  {state}")
    left = list({job.key: job for job in jobs if job not in results}.values())
    if not left:
        return [*lines, "nothing is left to run"]
    seconds = embedding_seconds(left)
    embedding = f", and {format_duration(seconds)} to embed texts that are not in the cache" if seconds else ""
    lines.append(f"to run: {len(left)} runs, about {_duration(left, results)} one after the other{embedding}")
    return lines


def _duration(jobs: Sequence[Job], results: Results) -> str:
    return format_duration(3600 * _hours(jobs, results))


def _hours(jobs: Sequence[Job], results: Results) -> float:
    """Estimated hours, corrected by the time that finished runs of the same kind of model took."""
    total = 0.0
    for kind in {job.kind for job in jobs}:
        finished = {job: result.seconds for job, result in results.items() if job.kind == kind}
        total += correction(finished) * sum(estimated_seconds(job) for job in jobs if job.kind == kind)
    return total / 3600


def scores_of(results: Results, row: MethodRow, cell: str, group: str) -> dict[int, float]:
    """Test scores by seed, in the order of the seeds."""
    by_job = [result.scores for job, result in results.items() if job.position == (group, row.title, cell)]
    return dict(sorted((seed, score) for scores in by_job for seed, score in scores.items()))
