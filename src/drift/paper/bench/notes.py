"""Notes below a table: models, where settings come from, what differs from official code, tests and their outcome."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drift.methods import METHODS
from drift.models.gcn import GCN
from drift.models.grand import Grand
from drift.paper.backbones import APPNP
from drift.paper.bench.catalogue import Exhibit, paper_notes
from drift.paper.bench.cells import Job
from drift.paper.bench.configs import dataset_of
from drift.paper.bench.drawing import DEV_ROWS, SHARE, TEST_ROWS
from drift.paper.presets import published
from drift.runs.comparing.tables import ScoreTable

SCORES = "test scores in %, mean ± standard deviation over seeds: accuracy of texts and nodes, F1 of words"
TESTED = (
    "differences to {} in points ± standard error, by two-sided t-tests, paired by seed where seeds use the same rows;"
    " p is corrected over all tests of the table by Holm's method"
)
CONSTANT = "the learning rate is constant; the authors' code of most baselines decays it"
PRESET = {
    "laptop": "settings of the preset, which were chosen on dev: {}",
    "paper": "settings of the paper: {}",
}
SEARCHED = (
    "settings searched on dev, {} trials for each run of each method: the learning rate, up to ten times higher or"
    " lower, and α and τ where the method has them: {}"
)
AUTHORS = "settings of the method as its authors published them, steps and learning rates of the preset: {}"
SHORTER = "the same, except settings that suit longer runs, with the published ones in brackets: {}"
DIFFERS = "Differs from the official code:"
REDRAWN = (
    "every seed has its own labels, and its own rows of train, dev and test where the profile limits them; test rows"
    " are always from the dataset's own test set"
)
POOLED = (
    "every seed has its own labels, {share:.0%} of a pool of {pool:,} training texts, and {dev} of {twice:,} dev texts;"
    " all seeds are tested on the same {test:,} texts"
)
LAPTOP = {  # models of the laptop profile, by group; the paper fine-tunes RoBERTa-base
    "frozen": "a head on fixed vectors of a small encoder",
    "finetuned": "a small encoder, fine-tuned for few steps",
    "textcnn": "fewer feature maps, steps and words than in the paper",
    "graph": "α is 0.7 for a GCN on Cora and CiteSeer (chosen on dev) and 0.9 elsewhere; the paper uses 0.99",
}
ROWS = "training rows: AGNews 15,000, Amazon 6,000, others 4,000"
MODELS = {"GRAND": ("grand", Grand), "APPNP": ("factory", APPNP), "GCN": ("gcn", GCN)}  # with their kinds


def notes_of(exhibit: Exhibit, profile: str, group: str, jobs: Sequence[Job]) -> list[str]:
    """The notes of a table. jobs: those of its group of models."""
    return [
        SCORES,
        *_models(profile, group, jobs),
        *_settings(profile, jobs),
        *_draws(jobs),
        *_alphas(jobs),
        *([CONSTANT] if profile == "paper" and any(job.model_kind.large for job in jobs) else []),
        *_differences(jobs),
        *([TESTED.format(exhibit.baseline)] if exhibit.baseline else []),
        *paper_notes(exhibit.name),
    ]


def outcome_notes(table: ScoreTable) -> list[str]:
    """Wins, ties and losses of every row against the baseline, after the correction."""
    if table.baseline is None:
        return []
    counts = []
    for row in table.rows:
        tests = [table.test(row, column) for column in table.columns]
        verdicts = [test.verdict() for test in tests if test is not None]
        if verdicts:
            counts.append(f"{row} {'/'.join(str(verdicts.count(each)) for each in ('win', 'tie', 'loss'))}")
    return [f"wins/ties/losses against {table.baseline} after the correction: {'; '.join(counts)}"] if counts else []


def _models(profile: str, group: str, jobs: Sequence[Job]) -> list[str]:
    encoders = sorted({job.config["model"]["name"] for job in jobs if job.model_kind.large})
    named = [f"encoders: {', '.join(encoders)}"] if encoders else []
    if profile != "laptop" or group not in LAPTOP:
        return named
    limited = any(job.config["data"].get("train_rows") for job in jobs)
    return [f"{group}: {LAPTOP[group]}" + (f"; {ROWS}" if limited else ""), *named]


def _settings(profile: str, jobs: Sequence[Job]) -> list[str]:
    """Where the settings of each row come from."""
    searched: dict[str, int] = {}
    rows: dict[str, dict[str, set[str]]] = {}  # by row: settings that differ from published ones, with these
    for job in jobs:
        if job.trials:
            searched[job.row] = job.trials
        else:
            _add(rows.setdefault(job.row, {}), _unpublished(job))
    of_preset = [row for row in rows if _has_presets(row, jobs) and row not in searched]
    others = {row: changes for row, changes in rows.items() if row not in of_preset and row not in searched}
    shorter = [f"{row}: {_words(changes)}" for row, changes in others.items() if changes]
    authors = [row for row, changes in others.items() if not changes]
    lists: Iterable[tuple[str, list[str]]] = (
        (PRESET[profile], of_preset),
        (AUTHORS, authors),
        (SHORTER, shorter),
        *((SEARCHED.format(n, "{}"), [row for row in searched if searched[row] == n]) for n in {*searched.values()}),
    )
    return [text.format("; ".join(named)) for text, named in lists if named]


def _has_presets(row: str, jobs: Sequence[Job]) -> bool:
    """Whether a row takes the settings of presets: forms of DRIFT, and rows that only train on labels."""
    methods = {METHODS[job.config["method"]["name"]] for job in jobs if job.row == row}
    return any(method.inherited is None or not method.has_second_phase for method in methods)


def _unpublished(job: Job) -> dict[str, set[str]]:
    """Settings of a method that differ from what its authors published, as "value (published)"."""
    own: Mapping[str, Any] = job.config["method"]
    theirs = published(own["name"], dataset_of(job.cell), job.config["training"]["steps"], "paper")
    return {name: {f"{own[name]} ({value})"} for name, value in theirs.items() if own.get(name, value) != value}


def _add(changes: dict[str, set[str]], more: Mapping[str, set[str]]) -> None:
    for name, values in more.items():
        changes.setdefault(name, set()).update(values)


def _words(changes: Mapping[str, set[str]]) -> str:
    return ", ".join(f"{name} {' or '.join(sorted(values))}" for name, values in changes.items())


def _draws(jobs: Sequence[Job]) -> list[str]:
    pools = {job.draw.pool for job in jobs if job.draw is not None and job.draw.pool is not None}
    if pools:
        sizes = {"share": SHARE, "dev": DEV_ROWS, "twice": 2 * DEV_ROWS, "test": TEST_ROWS}
        return [POOLED.format(pool=pool, **sizes) for pool in pools]
    return [REDRAWN] if any(job.model_kind.stacked and job.config["seeds"] == 1 for job in jobs) else []


def _alphas(jobs: Sequence[Job]) -> list[str]:
    """α of the row DRIFT, or of those that begin so, by cell."""
    cells: dict[tuple[str, float], list[str]] = {}
    for job in jobs:
        method = job.config["method"]
        if method["name"] == "drift" and job.row.partition("+")[0] == "DRIFT" and not job.trials:
            listed = cells.setdefault((job.row, method["alpha"]), [])
            cell = job.cell.partition(",")[0]
            listed += [cell] if cell not in listed else []
    return [f"α of {row}: {alpha} ({', '.join(each)})" for (row, alpha), each in cells.items()]


def _differences(jobs: Sequence[Job]) -> list[str]:
    """What the documentation of methods and models says about official code, once for each."""
    texts = {}
    for job in jobs:
        method = METHODS[job.config["method"]["name"]]
        texts[method.name] = sys.modules[method.__module__].__doc__ or ""
    kinds = {job.kind for job in jobs}
    texts |= {name: model.__doc__ or "" for name, (kind, model) in MODELS.items() if kind in kinds}
    found = {name: differs(text) for name, text in texts.items()}
    return [f"{name} differs from the official code: {text}" for name, text in found.items() if text]


def differs(text: str) -> str:
    """The sentences of a documentation that say what differs from official code, joined by semicolons."""
    parts = re.split(r"\n\s*\n|\n(?=\s*Differs)", text)
    found = [" ".join(part.split()).removeprefix(DIFFERS) for part in parts if part.strip().startswith(DIFFERS)]
    return "; ".join(each.strip().rstrip(".") for each in found)
