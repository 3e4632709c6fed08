"""The page of a bench: what was done, tables, figures, wins and losses, what was not run, and how to make it again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from drift.paper.bench.catalogue import Exhibit
from drift.paper.bench.cells import Job
from drift.paper.bench.collecting import Results
from drift.paper.bench.running import FAILURE, RUN, Failure, cell_folder
from drift.report import page
from drift.report.page import Picture, Section, write_page
from drift.runs.comparing.tables import ScoreTable, lines
from drift.runs.result import REPORT
from drift.training.plan import format_duration

PROFILE_WORDS = {
    "paper": "the paper's configuration, for GPUs: RoBERTa-base, fine-tuned",
    "laptop": "what two cores can do: texts and words have smaller encoders, fewer rows and fewer steps than in the"
    " paper, so that its figures beside ours are for orientation; graphs are as in the paper but for α",
}
INDENT = "\N{NO-BREAK SPACE}" * 3
NOT_COMPARED = "not compared"
VERDICTS = {"win": "ahead", "tie": "tie", "loss": "behind", NOT_COMPARED: NOT_COMPARED}


@dataclass(frozen=True)
class Made:
    """A bench, for its page. jobs: all there are. tables, pictures: by kind of model. command: what makes it again."""

    exhibit: Exhibit
    profile: str
    jobs: Sequence[Job]
    results: Results
    tables: Mapping[str, ScoreTable]
    pictures: Mapping[str, Sequence[Picture]]
    failures: Sequence[Failure]
    not_run: Sequence[str]
    command: str


def write_bench_page(path: Path, made: Made) -> Path:
    """Write the page, over what is there; gives back its path."""
    exhibit = made.exhibit
    sections = [
        _what_was_done(made),
        *(_scores(group, table, made.pictures.get(group, ())) for group, table in made.tables.items()),
        *_wins_and_losses(made),
        *_what_was_not_run(made),
        *_failures(made.failures),
        *_runs(made.results),
        Section(
            "How to make this page",
            ["Data are found in $DRIFT_DATA. Finished runs are not run again."],
            commands=[made.command],
        ),
    ]
    return write_page(path, f"{exhibit.place.capitalize()}: {exhibit.summary}", sections)


def _what_was_done(made: Made) -> Section:
    exhibit, wanted = made.exhibit, {job.key: job for job in made.jobs if not job.left_out}
    finished = len({job.key for job in made.results} & wanted.keys())
    kinds = ", ".join(f"{group} ({_seeds(made.jobs, group)})" for group in made.tables)
    paragraphs = [
        f"This is {exhibit.place} of the paper, made again. Profile {made.profile} is {PROFILE_WORDS[made.profile]}.",
        f"Kinds of model: {kinds}. Cells: {', '.join(exhibit.cells)}; a cell is a dataset and its labels a class, or"
        f" weak labels. Methods: {', '.join(row.title for row in exhibit.rows)}.",
        "Whatever was chosen was chosen by dev labels alone; test was scored once, at the end of each run. The tables"
        " count the gold labels that a run saw, those of dev too.",
        f"{finished:,} of {len(wanted):,} runs are finished.",
    ]
    return Section("What was done", paragraphs)


def _seeds(jobs: Sequence[Job], group: str) -> str:
    """Of a cell and method; runs have one each, or all of them."""
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
        _, *texts = line.shown(str, "★ %s", "")
        # A heading says whose it is, for who hears the table. A difference and its p in one cell would be too wide.
        heading = f"{INDENT}{method} {line.heading}" if line.detail else method
        parts = [text.partition(", ") for text in texts]
        rows.append([heading, *(first for first, _, _ in parts)])
        if any(rest for _, _, rest in parts):
            rows.append([f"{INDENT}{method}: p, pairs", *(rest for _, _, rest in parts)])
    told = [_sentence(note) for note in table.notes]
    if table.baseline is not None:
        told.append(f"Below a method: its difference to {table.baseline}.")
    shown = page.Table(["", *table.columns], rows, f"{group}; ★ is the best of its column")
    return Section(f"Scores: {group}", told, [shown], pictures)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _wins_and_losses(made: Made) -> list[Section]:
    told, tables, compared = [], [], 0
    for group, table in made.tables.items():
        if table.baseline is None:
            continue
        found = {row: verdicts(table, row) for row in table.rows if row != table.baseline}
        told += [f"{group}: {words}" for words in _in_words(made.exhibit, table, found)]
        rows = [[row, *(str(len(cells[verdict])) for verdict in VERDICTS)] for row, cells in found.items()]
        tables.append(page.Table(["", *VERDICTS.values()], rows, f"{group}: cells, against {table.baseline}"))
        compared += sum(len(cells[verdict]) for cells in found.values() for verdict in ("win", "tie", "loss"))
    if not tables:
        return []
    meant = (
        "Ahead and behind are differences with p < 0.05. A tie is a difference that may be chance, no proof that both"
        f" are equal. p is not corrected for the number of comparisons, which is {compared:,}: even if no two methods"
        " differed, about one in twenty would be ahead or behind."
    )
    return [Section("Wins, ties and losses", [*told, meant], tables)]


def verdicts(table: ScoreTable, row: str) -> dict[str, list[str]]:
    """Columns of a row by how it stands against the baseline there: win, tie, loss, or not compared."""
    found: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS}
    for column in table.rows[row]:
        test = table.test(row, column)
        found[test.verdict() if test else NOT_COMPARED].append(column)
    return found


def _in_words(exhibit: Exhibit, table: ScoreTable, found: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[str]:
    """Of every kind of DRIFT that is not itself the baseline, cell by cell."""
    kinds = {row.title: row.kind for row in exhibit.rows}
    for row in exhibit.rows:
        if row.method == "drift" and row.title in found:
            counted = [
                f"{VERDICTS[verdict]} in {len(cells)}" + (f" ({', '.join(cells)})" if cells else "")
                for verdict, cells in found[row.title].items()
                if cells or verdict != NOT_COMPARED
            ]
            model = "" if row.kind == kinds[str(table.baseline)] else " The two are different models, too."
            yield f"{row.title} against {table.baseline}: {'; '.join(counted)}.{model}"


def _what_was_not_run(made: Made) -> list[Section]:
    told = [_sentence(line) for line in made.not_run]
    if left := {job.key for job in made.jobs if not job.left_out and job not in made.results}:
        told.append(f"Without a result: {len(left):,} runs of this profile; the same command runs them.")
    return [Section("What was not run", told)] if told else []


def _failures(failures: Sequence[Failure]) -> list[Section]:
    rows = [[each.job.title, each.reason, str(cell_folder(Path(), each.job) / FAILURE)] for each in failures]
    return [Section("Failures", tables=[page.Table(["run", "why", "traceback"], rows)])] if rows else []


def _runs(results: Results) -> list[Section]:
    """Time by kind of model, and where each run is. A run that serves several rows is counted once."""
    once = {job.key: job for job in results}
    if not once:
        return []
    times = []
    for kind in dict.fromkeys(job.kind for job in once.values()):
        seconds = [results[job].seconds for job in once.values() if job.kind == kind]
        times.append([kind, f"{len(seconds):,}", format_duration(sum(seconds))])
    places = [
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
    headings = ["cell", "method", "model", "seeds", "time", f"folder, with {REPORT}"]
    tables = [
        page.Table(["kind of model", "finished runs", "time, one after the other"], times, "Time spent"),
        page.Table(headings, places, "Every run has a page of its own"),
    ]
    return [Section("Runs and their time", tables=tables)]
