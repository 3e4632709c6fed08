"""`drift.compare`: finished runs side by side, tested seed by seed where they can be, with what makes it unfair."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from drift.data.tables import is_in_memory
from drift.errors import ConfigError, DataError, FileError
from drift.runs.comparing.statistics import TTest, holm, paired_t, welch_t
from drift.runs.comparing.tables import Cell, ScoreTable, check_ending, write_table
from drift.training.run_folder import DATA, METRICS, MOST_TOLD, RunFolder, differing, flat

PARTS = ("dev", "test")
CUTS = ("labels_per_class", "train_rows", "dev_rows", "test_rows")  # settings of data that draw rows by the seed


@dataclass(frozen=True)
class Finished:
    """What a run's folder says of it. scores: of a part ("dev", "test") and a measure, by seed."""

    path: Path
    task: str
    method: str
    measures: dict[str, str]
    scores: dict[tuple[str, str], dict[int, float]]
    budget: str
    trials: int  # of tuning on dev
    first_seed: int
    settings: str  # all but the seeds
    data: str  # its fingerprint
    rows: dict[str, tuple[Any, ...]]  # what dev and test are, by name
    cut_by_seed: bool  # other seeds see other rows of the same data, so that fingerprints differ

    @classmethod
    def read(cls, path: str | Path) -> "Finished":
        folder = RunFolder(path)
        config, metrics, data = folder.config(), folder.read_json(METRICS), folder.read_json(DATA)
        try:
            parts = [part for part in PARTS if part in metrics]
            if not metrics["measures"]:
                raise ValueError("it measured nothing")
            budget, first_seed = metrics["label_budget"], config["training"]["seed"]
            found = cls(
                path=folder.path,
                task=metrics["task"],
                method=metrics["method"],
                measures=metrics["measures"],
                scores={
                    (part, measure): {
                        seed: float(score[measure])
                        for seed, score in zip(metrics["seeds"], metrics[part]["scores"], strict=True)
                    }
                    for part, measure in product(parts, metrics["measures"])
                },
                budget=f"{budget['train']:,} to train + {budget['dev']:,} dev",
                trials=metrics.get("tuning", {}).get("trials", 0),
                first_seed=first_seed,
                settings=json.dumps({**config, "seeds": None, "training": {**config["training"], "seed": None}}),
                data=data["fingerprint"],
                rows={part: _rows(config, part, metrics[part]["rows"]) for part in parts},
                cut_by_seed=any(config["data"].get(name) is not None for name in CUTS),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FileError(f"{path} is a run of another version of drift ({type(error).__name__}: {error})") from error
        if not parts:
            raise DataError(f"{path} has no scores, for it had no dev and no test set; train it with --dev or --test")
        return found

    def same_rows(self, other: "Finished", part: str) -> bool:
        """Whether both were scored on the same rows: of the same data, or at least of the same file and number."""
        if self.data == other.data:
            return True
        rows = self.rows[part]
        return rows == other.rows[part] and not is_in_memory(str(rows[0]))  # "the DataFrame" may be any


def _rows(config: Mapping[str, Any], part: str, count: int) -> tuple[Any, ...]:
    data = config["data"]
    if config["task"] == "nodes":
        return data["train"], data["edges"], data["dev_nodes"], data["test_nodes"], count
    cut = data[f"{part}_rows"]
    return data[part], cut, None if cut is None else config["training"]["seed"], count


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
    *runs: str | Path,
    baseline: str | Path | None = None,
    paired_t: bool = False,
    out: str | Path | None = None,
) -> ScoreTable:
    """Compare runs by their folders: scores with their spread, and tests of each against the baseline.

    Runs with the same settings and other seeds are one line. baseline: a run's folder, the first if left out. Where
    two lines have seeds in common on the same rows, the test is a paired t-test, else Welch's, and a note says so;
    paired_t: refuse what cannot be paired. Several p-values are corrected by Holm's procedure. out: a file to write
    the table to, .md, .tex or .csv.
    """
    if out is not None:
        check_ending(out)
    paths = list(dict.fromkeys(map(Path, [*([] if baseline is None else [baseline]), *runs])))
    if not paths:
        raise ConfigError("no run was given; name the folders of some")
    found = [Finished.read(path) for path in paths]
    first = found[0]
    for run in found:
        if run.task != first.task:
            raise ConfigError(f"{run.path} is of {run.task}, {first.path} of {first.task}; compare runs of one task")
        if run.measures != first.measures:
            own, other = (", ".join(each.measures.values()) for each in (run, first))
            raise ConfigError(f"{run.path} is scored by {own}, {first.path} by {other}; compare runs with one score")
    rows = _grouped(found)
    columns = [key for key in product(PARTS, first.measures) if any(row.scores(*key) for row in rows)]
    names = {key: f"{key[0]} {first.measures[key[1]]}" for key in columns}
    # Tested is what was chosen by, on rows that chose nothing if there are such.
    part = "test" if any("test" in run.rows for run in rows[0].runs) else "dev"
    key = part, next(iter(first.measures))
    tests, notes = _tests(rows, key, only_paired=paired_t)
    table = ScoreTable(
        title=f"{len(found)} run{'s' if len(found) > 1 else ''}: mean ± standard deviation over seeds, in percent",
        columns=list(names.values()),
        rows={
            row.name: {name: Cell(scores) for key, name in names.items() if (scores := row.scores(*key))}
            for row in rows
        },
        baseline=rows[0].name if len(rows) > 1 else None,
        tests={(name, names[key]): test for name, test in tests.items()},
        notes=[*notes, *_differences(rows), *_budget_notes(rows), *_warnings(rows)],
    )
    if out is not None:
        write_table(table, out)
    return table


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
            notes.append(f"{row.name}: not tested, for {reason}")
    if tests:
        corrected = holm([test.p for test in tests.values()])
        tests = {name: replace(test, p=p) for (name, test), p in zip(tests.items(), corrected, strict=True)}
        many = f", corrected for {len(tests)} tests (Holm)" if len(tests) > 1 else ""
        notes.insert(0, f"differences to {baseline.name} in points ± standard error, with two-sided p-values{many}")
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
        told = [f"{name} is {own.get(name)!r}, there {first.get(name)!r}" for name in differ[:MOST_TOLD]]
        more = f", and {len(differ) - MOST_TOLD} more" if len(differ) > MOST_TOLD else ""
        notes += [f"{row.name} differs from {rows[0].name}: {', '.join(told)}{more}"] if differ else []
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
        if len({run.data for run in row.runs if not run.cut_by_seed}) > 1
    ]
    for row in others:
        pairs = [(a, b) for a in row.runs for b in baseline.runs if a.first_seed == b.first_seed]
        for ours, theirs in pairs or [(row.runs[0], baseline.runs[0])]:
            if ours.data != theirs.data and (pairs or not ours.cut_by_seed):
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
