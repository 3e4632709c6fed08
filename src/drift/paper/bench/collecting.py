"""From finished runs to the tables they were made for, and to what was not run."""

from collections.abc import Collection, Mapping, Sequence

from drift.methods import METHODS
from drift.paper.bench.catalogue import Exhibit, MethodRow
from drift.paper.bench.cells import Job
from drift.paper.bench.estimates import correction, embedding_seconds, estimated_seconds
from drift.paper.bench.paper import paper_figure, paper_notes
from drift.paper.bench.running import Result
from drift.runs.comparing.tables import Cell, ScoreTable
from drift.tasks.base import STACKED
from drift.training.plan import format_duration

Results = Mapping[Job, Result]

SCORES = "test scores in %, mean ± standard deviation over seeds: accuracy of texts and nodes, F1 of words"
TESTED = (
    "differences to {} in points ± standard error, by two-sided t-tests, paired by seed where that means the same rows;"
    " p is not corrected for the number of tests"
)
LAPTOP = {  # what a laptop's models are, beside the paper's RoBERTa-base, which is fine-tuned
    "frozen": "a head on fixed vectors of a small encoder; training rows: AGNews 15,000, Amazon 6,000, others 4,000",
    "finetuned": "a small encoder, fine-tuned for few steps",
    "textcnn": "fewer maps, steps and words than in the paper",
    "graph": "α is 0.7 of a GCN on Cora and CiteSeer, by dev, and 0.9 elsewhere; the paper has 0.99",
}


def table_of(
    exhibit: Exhibit, profile: str, group: str, jobs: Sequence[Job], results: Results, failed: Collection[str] = ()
) -> ScoreTable:
    """The table of one kind of model. jobs: all of the exhibit's. failed: keys of those that were run in vain."""
    own = [job for job in jobs if job.group == group]
    rows: dict[str, dict[str, Cell]] = {}
    budgets: dict[str, str] = {}
    for row in exhibit.rows:
        rows[row.title] = {}
        for cell in exhibit.cells:
            here = [job for job in own if (job.row, job.cell) == (row.title, cell)]
            found = [results[job] for job in here if job in results]
            figure = paper_figure(exhibit.name, row.paper, cell)
            if here or figure is not None:  # else it is nothing that could be run
                scores = scores_of(results, row, cell, group)
                hours = _hours(here, results) if here and not scores else None
                rows[row.title][cell] = Cell(
                    scores,
                    hours,
                    figure,
                    failed=any(job.key in failed for job in here),
                    wanted=sum(job.config["seeds"] for job in here),
                    rows_by_seed=any(job.kind not in STACKED and _is_cut(job) for job in here),
                )
            if found and not row.gold and not METHODS[row.method].trains_on_dev:
                budget = found[0].budget
                budgets[cell] = f"{budget['train']:,} + {budget['dev']:,} dev"
    title = f"{exhibit.place.capitalize()}: {exhibit.summary} ({group}, profile {profile})"
    notes = _notes(exhibit, profile, group)
    apart = [row.title for row in exhibit.rows if row.gold or METHODS[row.method].trains_on_dev]
    return ScoreTable(title, exhibit.cells, rows, exhibit.baseline, None, budgets, notes, apart)


def _is_cut(job: Job) -> bool:
    """Whether its rows are drawn by its seed; seeds that train together share those of the first."""
    return any(job.config["data"].get(f"{part}_rows") is not None for part in ("train", "dev", "test"))


def not_run(exhibit: Exhibit, jobs: Sequence[Job], results: Results) -> list[str]:
    """What the profile leaves out, a line for each kind of model."""
    lines = []
    for group in dict.fromkeys(job.group for job in jobs):
        out = [job for job in jobs if job.group == group and job.left_out and job not in results]
        if out:
            run = {job.cell for job in jobs if job.group == group and not job.left_out}
            cells = ", ".join(
                f"rest of {cell}" if cell in run else cell for cell in dict.fromkeys(job.cell for job in out)
            )
            lines.append(f"not run in this profile: {group}, {len(out)} runs, about {_spoken(out, results)} ({cells})")
    return lines


def plan_lines(jobs: Sequence[Job], results: Results) -> list[str]:
    """What is finished and what is to be run, a line a cell and method, with estimates, and the sum of them."""
    lines, jobs = [], [job for job in jobs if not job.left_out]
    for group, row, cell in dict.fromkeys((job.group, job.row, job.cell) for job in jobs):
        here = [job for job in jobs if (job.group, job.row, job.cell) == (group, row, cell)]
        left = [job for job in here if job not in results]
        state = f"to run: {len(left)} of {len(here)}, about {_spoken(left, results)}" if left else "finished"
        lines.append(f"{group}  {cell}  {row}  {state}")
    left = list({job.key: job for job in jobs if job not in results}.values())
    if not left:
        return [*lines, "nothing is left to run"]
    embedding = embedding_seconds(left)
    told = f", and {format_duration(embedding)} to embed texts that were not embedded before" if embedding else ""
    lines.append(f"to run: {len(left)} runs, about {_spoken(left, results)} one after the other{told}")
    return lines


def _spoken(jobs: Sequence[Job], results: Results) -> str:
    return format_duration(3600 * _hours(jobs, results))


def _hours(jobs: Sequence[Job], results: Results) -> float:
    """By arithmetic, put right by how long finished runs of the same kind took."""
    total = 0.0
    for kind in {job.kind for job in jobs}:
        finished = {job: result.seconds for job, result in results.items() if job.kind == kind}
        total += correction(finished) * sum(estimated_seconds(job) for job in jobs if job.kind == kind)
    return total / 3600


def _notes(exhibit: Exhibit, profile: str, group: str) -> list[str]:
    about = [f"{group}: {LAPTOP[group]}"] if profile == "laptop" and group in LAPTOP else []
    tested = [TESTED.format(exhibit.baseline)] if exhibit.baseline else []
    return [SCORES, *about, *tested, *paper_notes(exhibit.name)]


def scores_of(results: Results, row: MethodRow, cell: str, group: str) -> dict[int, float]:
    """By seed, in order."""
    place = (group, row.title, cell)
    found = [result.scores for job, result in results.items() if (job.group, job.row, job.cell) == place]
    return dict(sorted((seed, score) for scores in found for seed, score in scores.items()))
