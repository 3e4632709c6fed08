"""Tables of scores: one row per method, one column per dataset, with spread, tests and the paper's figures."""

import csv
import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table as RichTable

from drift.data.files import atomic_file
from drift.errors import ConfigError
from drift.report.terminal import GAP, LEAST_NAME, column_blocks
from drift.runs.comparing.statistics import TTest, holm, paired_t, welch_t
from drift.tasks.scoring import mean_and_spread

MOST_KEPT = " †"  # marks cells in which most seeds ended with their start
WIDE = 10_000  # columns of a pipe, where nothing is wrapped
LATEX = {
    "\\": r"\textbackslash{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "−": "$-$",
    "<": "$<$",
    ">": "$>$",
    "α": r"$\alpha$",
    **{
        mark: f"{{{mark}}}" for mark in "[*"
    },  # at the beginning of a row they would be taken for an argument of the line break before
    "τ": r"$\tau$",
    "ω": r"$\omega$",
    "†": r"$\dagger$",
    "θ": r"$\theta$",
}
CSV_COLUMNS = [
    *("method", "column", "seeds", "mean", "deviation", "hours", "paper"),
    *("baseline", "difference", "standard_error", "p", "pairs", "gold_labels"),
]
MARKDOWN = {mark: f"\\{mark}" for mark in "\\|*_`<>[]&~$"}


@dataclass(frozen=True)
class Cell:
    """One method in one column.

    scores: between 0 and 1, by seed; empty if it was not run. hours: how long that would take.
    paper: the paper's figure, in percent, as printed there. failed: the run failed.
    wanted: number of seeds that are planned. rows_by_seed: each seed was trained and scored on other rows.
    kept: number of seeds that ended with their start, because nothing after it was better on dev.
    """

    scores: Mapping[int, float] = field(default_factory=dict)
    hours: float | None = None
    paper: float | None = None
    failed: bool = False
    wanted: int | None = None
    rows_by_seed: bool = False
    kept: int = 0

    @property
    def is_whole(self) -> bool:
        return bool(self.scores) and len(self.scores) >= (self.wanted or 1)

    @property
    def is_start(self) -> bool:
        """Whether most seeds ended with their start."""
        return 2 * self.kept > len(self.scores)

    @property
    def mean(self) -> float | None:
        return float(np.mean(list(self.scores.values()))) if self.scores else None

    def text(self) -> str:
        """Mean ± standard deviation in percent; a single seed has no deviation."""
        if self.scores:
            scores = mean_and_spread([*self.scores.values()]) + (MOST_KEPT if self.is_start else "")
            return scores if self.is_whole else f"{scores} ({len(self.scores)} of {self.wanted} seeds)"
        if self.failed:
            return "failed"
        if self.hours is None:
            return "not run"
        time = f"{self.hours:.3g} h" if self.hours >= 1 else f"{60 * self.hours:.2g} min"
        return f"not run (about {time})"


@dataclass
class ScoreTable:
    """A table of scores.

    rows: cells by method and column; a missing cell is blank.
    baseline: the row that the others are tested against.
    tests: by row and column, instead of the paired t-tests that are made by default; one with 0 pairs is Welch's.
    budgets: gold labels by column, for a reader.
    apart: rows that do not compete, such as one trained on all labels; they are never the best.
    corrects: p-values are corrected by Holm's method over all tests of the table.
    """

    title: str
    columns: Sequence[str]
    rows: Mapping[str, Mapping[str, Cell]]
    baseline: str | None = None
    tests: Mapping[tuple[str, str], TTest] | None = None
    budgets: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    apart: Collection[str] = ()
    corrects: bool = False

    def __post_init__(self) -> None:
        if self.baseline is not None and self.baseline not in self.rows:
            raise ConfigError(f"there is no row {self.baseline!r} to test against; rows are {', '.join(self.rows)}")

    def test(self, row: str, column: str) -> TTest | None:
        """This row against the baseline on their common seeds; None if there are fewer than two, or no baseline.

        If only one side has other rows for each seed, equal seeds are not paired.
        """
        return self._corrected.get((row, column)) if self.corrects else self._test(row, column)

    @cached_property
    def _corrected(self) -> dict[tuple[str, str], TTest]:
        places = [(row, column) for row, cells in self.rows.items() for column in cells]
        tests = {place: test for place in places if (test := self._test(*place)) is not None}
        p = holm([test.p for test in tests.values()])
        return {place: replace(test, p=each) for (place, test), each in zip(tests.items(), p, strict=True)}

    def _test(self, row: str, column: str) -> TTest | None:
        if self.tests is not None:
            return self.tests.get((row, column))
        if self.baseline is None or row == self.baseline:
            return None
        own, others = (self.rows[each].get(column, Cell()) for each in (row, self.baseline))
        ours, theirs = own.scores, others.scores
        if own.rows_by_seed != others.rows_by_seed:
            return welch_t([*ours.values()], [*theirs.values()]) if min(len(ours), len(theirs)) > 1 else None
        seeds = [seed for seed in ours if seed in theirs]
        return paired_t([ours[s] for s in seeds], [theirs[s] for s in seeds]) if len(seeds) > 1 else None

    def is_best(self, row: str, column: str) -> bool:
        """Whether no other mean of the column is higher, as printed; False if there is nothing to compare with.

        Means of some of the seeds only are not compared.
        """
        cells = {name: own[column] for name, own in self.rows.items() if column in own and name not in self.apart}
        means = {name: cell.mean for name, cell in cells.items() if cell.is_whole}
        printed = {name: round(100 * mean, 2) for name, mean in means.items() if mean is not None}
        return len(printed) > 1 and printed.get(row) == max(printed.values())


@dataclass(frozen=True)
class Line:
    """A line of a printed table. detail: it belongs to the method above."""

    heading: str
    texts: list[str]
    best: list[bool]
    detail: bool = False

    def formatted(self, escape: Callable[[str], str], bold: str, indent: str) -> list[str]:
        """Heading and texts in some format. bold: a template with %s for the best cells."""
        texts = [
            bold % escape(text) if best else escape(text) for text, best in zip(self.texts, self.best, strict=True)
        ]
        return [(indent if self.detail else "") + escape(self.heading), *texts]


def lines(table: ScoreTable) -> Iterator[Line]:
    """Label budgets, then for each method its scores, differences to the baseline and the paper's figures, if any."""
    plain = [False] * len(table.columns)
    if table.budgets:
        yield Line("gold labels", [table.budgets.get(column, "") for column in table.columns], plain)
    for row, cells in table.rows.items():
        texts = [cells[column].text() if column in cells else "" for column in table.columns]
        yield Line(row, texts, [table.is_best(row, column) for column in table.columns])
        tests = [table.test(row, column) for column in table.columns]
        if any(tests):
            differences = [difference_text(test) if test else "" for test in tests]
            yield Line(f"− {table.baseline}", differences, plain, detail=True)
        figures = [cells[column].paper if column in cells else None for column in table.columns]
        if any(figure is not None for figure in figures):
            printed = ["" if figure is None else f"{figure:.2f}" for figure in figures]
            yield Line("in the paper", printed, plain, detail=True)


def difference_text(test: TTest) -> str:
    """The difference in points with its standard error, p-value and number of pairs."""
    return f"{test.gap()}, {test.p_words()}, {f'{test.pairs} pairs' if test.pairs else 'unpaired'}"


def show_table(table: ScoreTable, console: Console | None = None) -> None:
    """Print a table to the terminal. Columns that do not fit are shown below the others."""
    console = console or Console()
    if not console.is_terminal:
        console = Console(width=WIDE, file=console.file)
    all_lines = list(lines(table))
    widths = [max(map(len, column)) for column in zip(table.columns, *(line.texts for line in all_lines), strict=True)]
    names = max(len(line.heading) + 2 for line in all_lines)
    names = max(min(names, console.width - max(widths) - GAP), min(names, LEAST_NAME))  # long names are wrapped
    views = []
    for block in column_blocks([names, *widths], console.width):
        view = RichTable(box=None, pad_edge=False)
        view.add_column("", max_width=names)
        for column in block[1:]:
            view.add_column(escape(table.columns[column - 1]), justify="right", no_wrap=True)
        for line in all_lines:
            cells = line.formatted(escape, "[bold]%s[/bold]", "  ")
            view.add_row(*(cells[column] for column in block), style="dim" if line.detail else None)
        views.append(view)
    console.print(Group(f"[bold]{escape(table.title)}[/bold]", *views, *map(escape, table.notes)), highlight=False)


def as_markdown(table: ScoreTable) -> str:
    """A Markdown table with its title and notes."""

    def plain(text: str) -> str:
        return escaped(text, MARKDOWN)

    def row(texts: Sequence[str]) -> str:
        return f"| {' | '.join(texts)} |"

    rows = [row(["", *map(plain, table.columns)]), row(["---", *["---:"] * len(table.columns)])]
    rows += [row(line.formatted(plain, "**%s**", "&nbsp;&nbsp;")) for line in lines(table)]
    notes = [f"- {plain(note)}" for note in table.notes]
    parts = [f"**{plain(table.title)}**", "\n".join(rows), *(["\n".join(notes)] if notes else [])]
    return "\n\n".join(parts) + "\n"


def as_latex(table: ScoreTable) -> str:
    """A `table` environment; needs the booktabs package."""

    def plain(text: str) -> str:
        return escaped(text, LATEX)

    def row(texts: Sequence[str]) -> str:
        return f"{' & '.join(texts)} \\\\"

    rows = [row(line.formatted(plain, r"\textbf{%s}", r"\quad ")) for line in lines(table)]
    notes = [rf"\par\footnotesize {plain(note)}" for note in table.notes]
    columns = "l" + "r" * len(table.columns)
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{plain(table.title)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            row(["", *map(plain, table.columns)]),
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            *notes,
            r"\end{table}",
            "",
        ]
    )


def as_csv(table: ScoreTable) -> str:
    """One line per cell; means, deviations and differences in percent, not rounded."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, CSV_COLUMNS)
    writer.writeheader()
    for row, cells in table.rows.items():
        for column, cell in cells.items():
            scores, test = list(cell.scores.values()), table.test(row, column)
            values: dict[str, Any] = {"method": row, "column": column, "seeds": len(scores)}
            values |= {"hours": cell.hours, "paper": cell.paper, "gold_labels": table.budgets.get(column)}
            if cell.mean is not None:
                values["mean"] = 100 * cell.mean
            if len(scores) > 1:
                values["deviation"] = 100 * float(np.std(scores, ddof=1))
            if test is not None:
                values |= {"baseline": table.baseline, "p": test.p, "pairs": test.pairs}
                values |= {"difference": 100 * test.difference, "standard_error": 100 * test.standard_error}
            writer.writerow(values)
    return file.getvalue()


WRITERS = {".md": as_markdown, ".tex": as_latex, ".csv": as_csv}


def check_ending(path: str | Path) -> None:
    """Refuse a file name that no table can be written to, before the work is done."""
    if Path(path).suffix not in WRITERS:
        raise ConfigError(f"{path}: tables are written as {', '.join(WRITERS)}; give a file that ends so")


def write_table(table: ScoreTable, path: str | Path) -> Path:
    """Write Markdown, LaTeX or CSV, by the ending of the file name; returns the path."""
    check_ending(path)
    with atomic_file(path) as aside:
        # The name of a folder may not be valid Unicode.
        aside.write_bytes(WRITERS[Path(path).suffix](table).encode(errors="replace"))
    return Path(path)


def escaped(text: str, marks: Mapping[str, str]) -> str:
    """The text on one line, with characters escaped that have a meaning in the format."""
    return "".join(marks.get(mark, mark) for mark in " ".join(text.split()))
