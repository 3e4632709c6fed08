"""`drift.compare`: finished runs side by side, with paired tests where possible, and what makes a comparison unfair."""

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from drift.data.tables import is_in_memory
from drift.errors import ConfigError, DataError
from drift.runs.comparing.statistics import TTest, holm, paired_t, welch_t
from drift.runs.comparing.tables import Cell, ScoreTable, check_ending, write_table
from drift.runs.record import read_fingerprint, read_record, read_settings
from drift.tasks import Task
from drift.tasks.record_parts import HeldOutScores
from drift.training.run_folder import MOST_LISTED, RunFolder, differing, flat

PARTS = ("dev", "test")
DRAWN = ("labels_per_class", "train_rows", "dev_rows", "test_rows")  # settings of data that draw rows by seed


@dataclass(frozen=True)
class Finished:
    """What a comparison needs of a finished run.

    scores: by part ("dev", "test") and measure, then by seed. budget: gold labels, for a reader. trials: of a search on
    dev. settings: all but the seeds. data: hash of the data. rows: identifies the rows of dev and test.
    drawn_by_seed: other seeds use other rows of the same data, so that the hashes differ.
    """

    path: Path
    task: str
    method: str
    measures: dict[str, str]
    scores: dict[tuple[str, str], dict[int, float]]
    budget: str
    trials: int
    first_seed: int
    settings: str
    data: str
    rows: dict[str, tuple[Any, ...]]
    drawn_by_seed: bool

    @classmethod
    def read(cls, path: str | Path, task: str | type[Task] | None = None) -> "Finished":
        folder = RunFolder(path)
        stored = folder.config()
        task_type, record = read_record(folder, task)
        config = read_settings(folder, task_type).model_dump(mode="json")
        scored = {part: scores for part in PARTS if (scores := record.scores_on(part)) is not None}
        if not scored:
            raise DataError(
                f"{path} has no scores, because it had no dev and no test set; train it with --dev or --test"
            )
        budget = record.label_budget
        return cls(
            path=folder.path,
            task=task_type.name,
            method=record.method,
            measures=record.measures,
            scores={
                (part, measure): _by_seed(record.seeds, scored[part], measure)
                for part, measure in product(scored, record.measures)
            },
            budget=f"{budget.train:,} to train + {budget.dev:,} dev",
            trials=0 if record.tuning is None else record.tuning.trials,
            first_seed=config["training"]["seed"],
            settings=json.dumps({**stored, "seeds": None, "training": {**stored["training"], "seed": None}}),
            data=read_fingerprint(folder),
            rows={part: task_type.scored_rows(config, part, scores.rows) for part, scores in scored.items()},
            drawn_by_seed=any(config["data"].get(name) is not None for name in DRAWN),
        )

    def same_rows(self, other: "Finished", part: str) -> bool:
        """Whether both were scored on the same rows: of the same data, or at least of the same file and number."""
        if self.data == other.data:
            return True
        rows = self.rows[part]
        return rows == other.rows[part] and not is_in_memory(str(rows[0]))  # "the DataFrame" may be any


def _by_seed(seeds: Sequence[int], part: HeldOutScores, measure: str) -> dict[int, float]:
    return {seed: scores[measure] for seed, scores in zip(seeds, part.scores, strict=True)}


@dataclass
class RunGroup:
    """Runs that differ in nothing but their seeds: one line of the table."""

    runs: list[Finished]

    @property
    def name(self) -> str:
        first, *others = self.runs
        return f"{first.path}{f' and {len(others)} more' if others else ''}: {first.method}"

    def scores(self, part: str, measure: str) -> dict[int, float]:
        return {seed: score for run in self.runs for seed, score in run.scores.get((part, measure), {}).items()}

    def run_of(self, seed: int, part: str, measure: str) -> Finished:
        return next(run for run in self.runs if seed in run.scores.get((part, measure), {}))


def compare(
    runs: Sequence[str | Path] | str | Path = (),
    *more: str | Path,
    baseline: str | Path | None = None,
    paired_t: bool = False,
    out: str | Path | None = None,
    task: str | type[Task] | None = None,
) -> ScoreTable:
    """Compare finished runs: scores with their spread, and a test of each against the baseline.

    Runs with the same settings and other seeds form one line. If two lines have seeds in common on the same rows, the
    test is a paired t-test, otherwise Welch's, and a note says so. Several p-values are corrected by Holm's procedure.

    Parameters
    ----------
    runs : sequence of paths
        Folders of finished runs of one task.
    *more : path
        Deprecated: give all runs as one list.
    baseline : path, default=None
        Folder of the run to test against; by default the first of `runs`.
    paired_t : bool, default=False
        Raise an error for what cannot be paired, instead of an unpaired test.
    out : path, default=None
        Also write the table to this file: .md, .tex or .csv.
    task : str or class, default=None
        The task of the runs, if it is not a built-in one.

    Returns
    -------
    ScoreTable
        The table; printing it is left to the caller.
    """
    if isinstance(runs, (str, Path)):
        warnings.warn("compare takes a list of runs; give compare([run, run])", FutureWarning, stacklevel=2)
        runs = [runs, *more]
    if out is not None:
        check_ending(out)
    paths = list(dict.fromkeys(map(Path, [*([] if baseline is None else [baseline]), *runs])))
    if not paths:
        raise ConfigError("no run was given; name the folders of some")
    table = _table([Finished.read(path, task) for path in paths], paired_t=paired_t)
    if out is not None:
        write_table(table, out)
    return table


def _table(finished: Sequence[Finished], *, paired_t: bool) -> ScoreTable:
    """The table of these runs; the first belongs to the baseline."""
    first = finished[0]
    for run in finished:
        if run.task != first.task:
            raise ConfigError(f"{run.path} is of {run.task}, {first.path} of {first.task}; compare runs of one task")
        if run.measures != first.measures:
            own, other = (", ".join(each.measures.values()) for each in (run, first))
            raise ConfigError(f"{run.path} is scored by {own}, {first.path} by {other}; compare runs with one score")
    rows = _grouped(finished)
    columns = [key for key in product(PARTS, first.measures) if any(row.scores(*key) for row in rows)]
    names = {key: f"{key[0]} {first.measures[key[1]]}" for key in columns}
    # The measure of model selection, on rows that selected nothing if there are such.
    part = "test" if any("test" in run.rows for run in rows[0].runs) else "dev"
    key = part, next(iter(first.measures))
    tests, notes = _tests(rows, key, only_paired=paired_t)
    count = f"{len(finished)} run{'s' if len(finished) > 1 else ''}"
    return ScoreTable(
        title=f"{count}: mean ± standard deviation over seeds, in percent",
        columns=list(names.values()),
        rows={
            row.name: {name: Cell(scores) for key, name in names.items() if (scores := row.scores(*key))}
            for row in rows
        },
        baseline=rows[0].name if len(rows) > 1 else None,
        tests={(name, names[key]): test for name, test in tests.items()},
        notes=[*notes, *_differences(rows), *_budget_notes(rows), *_warnings(rows)],
    )


def _grouped(runs: Sequence[Finished]) -> list[RunGroup]:
    """Runs of the same settings together, unless they share a seed: then they are repetitions, and each has a line."""
    rows: list[RunGroup] = []
    for run in runs:
        for row in rows:
            taken = {seed for each in row.runs for scores in each.scores.values() for seed in scores}
            own = {seed for scores in run.scores.values() for seed in scores}
            if row.runs[0].settings == run.settings and not taken & own:
                row.runs.append(run)
                break
        else:
            rows.append(RunGroup([run]))
    return rows


def _tests(rows: Sequence[RunGroup], key: tuple[str, str], *, only_paired: bool) -> tuple[dict[str, TTest], list[str]]:
    """Tests of every line but the first against it, by name, and how they were made."""
    baseline, *others = rows
    part, tests, notes = key[0], {}, []
    theirs = baseline.scores(*key)
    for row in others:
        ours = row.scores(*key)
        pairs = [
            seed
            for seed in ours
            if seed in theirs and row.run_of(seed, *key).same_rows(baseline.run_of(seed, *key), part)
        ]
        why = f"no two seeds in common with {baseline.name} on the same {part} rows"
        if len(pairs) > 1:
            tests[row.name] = paired_t([ours[seed] for seed in pairs], [theirs[seed] for seed in pairs])
        elif only_paired:
            raise ConfigError(f"{row.name} has {why}; leave out --paired-t for an unpaired test")
        elif len(ours) > 1 and len(theirs) > 1:
            tests[row.name] = welch_t(list(ours.values()), list(theirs.values()))
            notes.append(f"{row.name}: {why}, so the test is Welch's, unpaired")
        else:
            lacking = next((each.name for each in (row, baseline) if not each.scores(*key)), None)
            reason = "a test needs two seeds on each side" if lacking is None else f"{lacking} has no {part} scores"
            notes.append(f"{row.name}: not tested, because {reason}")
    if tests:
        corrected = holm([test.p for test in tests.values()])
        tests = {name: replace(test, p=p) for (name, test), p in zip(tests.items(), corrected, strict=True)}
        many = f", corrected for {len(tests)} tests (Holm)" if len(tests) > 1 else ""
        notes.insert(0, f"differences to {baseline.name} in points ± standard error, with two-sided p-values{many}")
        drawn = all(run.drawn_by_seed for row in rows for run in row.runs)
        varied = "draws of rows and seeds" if drawn else "seeds with the same labels, not other labels"
        notes.insert(1, f"p-values are for other {varied}; they do not cover the size of {part}")
        if part == "dev":
            notes.append(
                f"warning: {baseline.name} has no test scores; dev chose the steps too, so these p-values are too small"
            )
    return tests, notes


def _differences(rows: Sequence[RunGroup]) -> list[str]:
    """In which settings each line differs from the first."""
    first, *others = (flat(json.loads(row.runs[0].settings)) for row in rows)
    notes = []
    for row, own in zip(rows[1:], others, strict=True):
        differ = differing(first, own)
        listed = [f"{name} is {own.get(name)!r}, there {first.get(name)!r}" for name in differ[:MOST_LISTED]]
        more = f", and {len(differ) - MOST_LISTED} more" if len(differ) > MOST_LISTED else ""
        notes += [f"{row.name} differs from {rows[0].name}: {', '.join(listed)}{more}"] if differ else []
    return notes


def _budget_notes(rows: Sequence[RunGroup]) -> list[str]:
    budgets = {row.name: row.runs[0].budget for row in rows}
    if len(set(budgets.values())) == 1:
        return [f"gold labels: {rows[0].runs[0].budget}"]
    return [f"gold labels of {name}: {budget}" for name, budget in budgets.items()]


def _warnings(rows: Sequence[RunGroup]) -> list[str]:
    """What makes a comparison with the first line unfair or unsure."""
    baseline, *others = rows
    warnings = [
        f"warning: runs of {row.name} saw other data (fingerprints differ)"
        for row in rows
        if len({run.data for run in row.runs if not run.drawn_by_seed}) > 1
    ]
    for row in others:
        pairs = [(a, b) for a in row.runs for b in baseline.runs if a.first_seed == b.first_seed]
        for ours, theirs in pairs or [(row.runs[0], baseline.runs[0])]:
            if ours.data != theirs.data and (pairs or not ours.drawn_by_seed):
                warnings.append(f"warning: {row.name} and {baseline.name} saw other data (fingerprints differ)")
            parts = [part for part in PARTS if part in ours.rows and part in theirs.rows]
            warnings += [
                f"warning: {row.name} and {baseline.name} were scored on other {part} rows"
                for part in parts
                if not ours.same_rows(theirs, part)
            ]
            if ours.budget != theirs.budget:
                warnings.append(f"warning: {row.name} and {baseline.name} had other numbers of gold labels")
            if ours.trials != theirs.trials:
                warnings.append(
                    f"warning: {row.name} was tuned on dev in {ours.trials} trials, {baseline.name} in {theirs.trials}"
                )
    return list(dict.fromkeys(warnings))
