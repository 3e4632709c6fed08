"""The HTML page of a bench: method, tables, figures, wins and losses, what was not run, and how to reproduce it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from drift.paper.bench.catalogue import Exhibit
from drift.paper.bench.cells import Job
from drift.paper.bench.collecting import Results
from drift.paper.bench.running import FAILURE, RUN, Failure, cell_folder
from drift.report import page
from drift.report.page import Picture, Section, write_page
from drift.runs.comparing.tables import ScoreTable, lines
from drift.training.plan import format_duration

PROFILE_WORDS = {
    "paper": "the paper's configuration, for GPUs: RoBERTa-base, fine-tuned",
    "laptop": "sized for two cores. For texts and words it has smaller encoders, fewer rows and fewer steps than the"
    " paper, so the paper's figures are not directly comparable. For graphs it is the paper's configuration except α",
}
INDENT = "\N{NO-BREAK SPACE}" * 3
NOT_COMPARED = "not compared"
PAGES = "Runs; the page of each is report.html in its folder, and `drift report FOLDER` writes one that is missing"
VERDICTS = {"win": "ahead", "tie": "tie", "loss": "behind", NOT_COMPARED: NOT_COMPARED}


@dataclass
class PageContent:
    """The content of the page.

    jobs: all jobs of the exhibit. not_run: lines about what the profile leaves out. command: repeats the bench.
    tables, pictures: by group of models.
    """

    exhibit: Exhibit
    profile: str
    jobs: Sequence[Job]
    results: Results
    failures: Sequence[Failure]
    not_run: Sequence[str]
    command: str
    tables: dict[str, ScoreTable] = field(default_factory=dict)
    pictures: dict[str, Sequence[Picture]] = field(default_factory=dict)


def write_bench_page(path: Path, content: PageContent) -> Path:
    """Write the page and return its path. An existing page is overwritten."""
    exhibit = content.exhibit
    sections = [
        _method(content),
        *(_scores(group, table, content.pictures.get(group, ())) for group, table in content.tables.items()),
        *_wins_and_losses(content),
        *_not_run(content),
        *_failures(content.failures),
        *_runs(content.results),
        Section(
            "How to reproduce this page",
            ["The data are read from $DRIFT_DATA. Finished runs are not run again."],
            commands=[content.command],
        ),
    ]
    return write_page(path, f"{exhibit.reference.capitalize()}: {exhibit.summary}", sections)


def _method(content: PageContent) -> Section:
    exhibit, wanted = content.exhibit, {job.key: job for job in content.jobs if not job.left_out}
    finished = len({job.key for job in content.results} & wanted.keys())
    groups = ", ".join(f"{group} ({_seeds(content.jobs, group)})" for group in content.tables)
    paragraphs = [
        f"This is a reproduction of {exhibit.reference} of the paper. Profile {content.profile} is"
        f" {PROFILE_WORDS[content.profile]}.",
        f"Models: {groups}. Cells: {', '.join(exhibit.cells)}; a cell is a dataset with a number of labels per class,"
        f" or with weak labels. Methods: {', '.join(row.title for row in exhibit.rows)}.",
        "All choices were made on dev; test was scored once, at the end of each run. The tables count all gold labels"
        " that a run used, including those of dev.",
        f"{finished:,} of {len(wanted):,} runs are finished.",
    ]
    return Section("Method", paragraphs)


def _seeds(jobs: Sequence[Job], group: str) -> str:
    """Seeds per cell and method. A run has one seed, or all of them."""
    counts: dict[tuple[str, str], int] = {}
    for job in jobs:
        if job.group == group:
            counts[job.row, job.cell] = counts.get((job.row, job.cell), 0) + job.config["seeds"]
    return " or ".join(f"{count} seeds" if count > 1 else "1 seed" for count in sorted(set(counts.values())))


def _scores(group: str, table: ScoreTable, pictures: Sequence[Picture]) -> Section:
    rows: list[list[str]] = []
    method = ""
    for line in lines(table):
        method = method if line.detail else line.heading
        _, *texts = line.formatted(str, "★ %s", "")
        # Headings repeat the method, for screen readers. A difference and its p-value in one cell would be too wide.
        heading = f"{INDENT}{method} {line.heading}" if line.detail else method
        parts = [text.partition(", ") for text in texts]
        rows.append([heading, *(first for first, _, _ in parts)])
        if any(rest for _, _, rest in parts):
            rows.append([f"{INDENT}{method}: p, pairs", *(rest for _, _, rest in parts)])
    notes = [_sentence(note) for note in table.notes]
    if table.baseline is not None:
        notes.append(f"Below each method: its difference to {table.baseline}.")
    scores = page.Table(["", *table.columns], rows, f"{group}; ★ marks the best of each column")
    return Section(f"Scores: {group}", notes, [scores], pictures)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _wins_and_losses(content: PageContent) -> list[Section]:
    paragraphs, tables, compared = [], [], 0
    for group, table in content.tables.items():
        if table.baseline is None:
            continue
        by_row = {row: verdicts(table, row) for row in table.rows if row != table.baseline}
        paragraphs += [f"{group}: {words}" for words in _in_words(content.exhibit, table, by_row)]
        rows = [[row, *(str(len(cells[verdict])) for verdict in VERDICTS)] for row, cells in by_row.items()]
        tables.append(page.Table(["", *VERDICTS.values()], rows, f"{group}: number of cells, against {table.baseline}"))
        compared += sum(len(cells[verdict]) for cells in by_row.values() for verdict in ("win", "tie", "loss"))
    if not tables:
        return []
    explanation = (
        "Ahead and behind mean a difference with p < 0.05, corrected by Holm's method over all comparisons of a table"
        f" ({compared:,} here). A tie is a difference that may be due to chance; it does not show that both are equal."
    )
    return [Section("Wins, ties and losses", [*paragraphs, explanation], tables)]


def verdicts(table: ScoreTable, row: str) -> dict[str, list[str]]:
    """The columns in which a row wins, ties or loses against the baseline, or is not compared."""
    columns: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS}
    for column in table.rows[row]:
        test = table.test(row, column)
        columns[test.verdict() if test else NOT_COMPARED].append(column)
    return columns


def _in_words(exhibit: Exhibit, table: ScoreTable, by_row: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[str]:
    """One sentence per row of DRIFT, except the baseline. by_row: the verdicts of each row."""
    kinds = {row.title: row.kind for row in exhibit.rows}
    for row in exhibit.rows:
        if row.method == "drift" and row.title in by_row:
            counts = [
                f"{VERDICTS[verdict]} in {len(cells)}" + (f" ({', '.join(cells)})" if cells else "")
                for verdict, cells in by_row[row.title].items()
                if cells or verdict != NOT_COMPARED
            ]
            model = "" if row.kind == kinds[str(table.baseline)] else " The two also use different models."
            yield f"{row.title} against {table.baseline}: {'; '.join(counts)}.{model}"


def _not_run(content: PageContent) -> list[Section]:
    paragraphs = [_sentence(line) for line in content.not_run]
    if left := {job.key for job in content.jobs if not job.left_out and job not in content.results}:
        paragraphs.append(f"{len(left):,} runs of this profile have no result yet; the same command runs them.")
    return [Section("Not run", paragraphs)] if paragraphs else []


def _failures(failures: Sequence[Failure]) -> list[Section]:
    rows = [
        [failure.job.title, failure.reason, str(cell_folder(Path(), failure.job) / FAILURE)] for failure in failures
    ]
    return [Section("Failures", tables=[page.Table(["run", "reason", "traceback"], rows)])] if rows else []


def _runs(results: Results) -> list[Section]:
    """Time by kind of model, and the folder of each run. A run that several rows share is counted once."""
    by_key = {job.key: job for job in results}
    if not by_key:
        return []
    times = []
    for kind in dict.fromkeys(job.kind for job in by_key.values()):
        seconds = [results[job].seconds for job in by_key.values() if job.kind == kind]
        times.append([kind, f"{len(seconds):,}", format_duration(sum(seconds))])
    folders = [
        [
            job.cell,
            job.row,
            job.kind,
            job.seeds_text,
            format_duration(result.seconds),
            str(cell_folder(Path(), job) / RUN),
        ]
        for job, result in results.items()
    ]
    headings = ["cell", "method", "model", "seeds", "time", "folder"]
    tables = [
        page.Table(["kind of model", "finished runs", "total time"], times, "Time by kind of model"),
        page.Table(headings, folders, PAGES),
    ]
    return [Section("Runs and their time", tables=tables)]
