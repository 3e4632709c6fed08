"""The model card: `README.md` in the folder of a model, with the metadata that model hubs read."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from drift import __version__
from drift.models.catalogue import known_encoder
from drift.runs.summary import caption, limits, result, score_rows, verdict
from drift.tasks import Task
from drift.tasks.record import PARTS, RunRecord
from drift.tasks.standalone import FILE

CARD = "README.md"
TABLES = ("train", "unlabeled", "dev", "test")


def card(
    task: type[Task], record: RunRecord, config: Mapping[str, Any], made: Mapping[str, Any], files: set[str]
) -> str:
    """The card of a run. config: its settings. made: command and versions. files: names in the folder of the model."""
    data = config.get("data") or {}
    name = Path(str(data.get("train") or "a table")).name
    lines = [
        "---",
        yaml.safe_dump(_metadata(task, record, name), sort_keys=False, allow_unicode=True).rstrip(),
        "---",
        "",
        f"# {task.title}: {len(record.classes)} classes, trained on {_plain(name)}",
        "",
        f"{_sentence(result(record)) or 'Nothing was measured: there was no dev and no test set.'}",
        "",
        f"Trained by self-training ({record.method}) from few or noisy labels with DRIFT {__version__}, on"
        f" {_plain(_short(record.model))}.",
        "",
        "## How to use",
        "",
        *_use(task, files),
        "## Classes and their shares",
        "",
        *_classes(record),
        "## Data and labels",
        "",
        *_data(record, data),
        *_sources(task, record),
        "## Scores",
        "",
        *_scores(record),
        "## Limits",
        "",
        *(f"- {_sentence(line)}" for line in limits(record, getattr(record, "confusion", None))),
        "- Scores hold for texts like those of the tables above; probabilities are calibrated on them, too.",
        "- Nobody has looked for bias against groups of people, unless it is said here.",
        "",
        "## How to reproduce",
        "",
        "The folder of the run has every setting (`config.yaml`) and the versions of packages (`environment.json`).",
        "",
        "```sh",
        shlex.join(_short(str(part)) for part in made.get("command") or ["drift", "fit"]),
        "```",
        "",
        f"Seeds: {', '.join(map(str, record.seeds))}. Python {made.get('python', 'unknown')}.",
    ]
    return "\n".join(lines) + "\n"


def _metadata(task: type[Task], record: RunRecord, name: str) -> dict[str, Any]:
    """What a model hub shows and searches."""
    known = known_encoder(record.model)
    about: dict[str, Any] = {"library_name": "drift-ssl", "pipeline_tag": task.hub_task}
    if known is not None:
        about["base_model"] = known.hub
    about["tags"] = ["drift", "self-training", "weak-supervision" if record.weak else "few-labels"]
    part = record.held_out
    scores = None if part is None else record.model_scores(part)
    if part is not None and scores:
        found = [
            {"type": measure, "name": f"{title} ({part})", "value": round(scores[measure], 4)}
            for measure, title in record.measures.items()
            if measure in scores
        ]
        dataset = {"type": "table", "name": name, "split": part}
        results = [{"task": {"type": task.hub_task}, "dataset": dataset, "metrics": found}]
        about["model-index"] = [{"name": f"{record.method} on {name}", "results": results}]
    return {key: value for key, value in about.items() if value}


def _use(task: type[Task], files: set[str]) -> list[str]:
    python = ["import drift", "", 'run = drift.load("FOLDER OF THE RUN")', *task.usage.python]
    lines = ["```python", *python, "```", ""]
    if FILE in files:
        lines = [f'Without DRIFT: `python {FILE} "a text"`, or the function in `{FILE}`. With DRIFT:', "", *lines]
    return lines


def _classes(record: RunRecord) -> list[str]:
    shares = record.class_shares
    if shares is None:
        return [", ".join(f"`{_plain(name)}`" for name in record.classes), ""]
    rows = [[name, f"{100 * share:.1f}"] for name, share in zip(record.classes, shares.shares, strict=True)]
    return [*_table(["class", "assumed share in %"], rows), f"The shares are from: {shares.source}.", ""]


def _data(record: RunRecord, data: Mapping[str, Any]) -> list[str]:
    budget = record.label_budget
    used = [f"{part} {_plain(Path(str(data[part])).name)}" for part in TABLES if data.get(part)]
    kind = "noisy labels" if record.weak else "gold labels"
    return [
        f"Tables: {', '.join(used)}. Trained on {record.training_rows:,} {record.unit}, with {kind}.",
        "",
        f"Label budget: {budget.total:,} gold labels, {budget.train:,} for training and {budget.dev:,} for model"
        " selection.",
        "",
    ]


def _sources(task: type[Task], record: RunRecord) -> list[str]:
    tables = task.source_tables(record)[:1]  # the sources; further tables show texts
    return [line for headings, rows in tables for line in ("Sources of noisy labels:", "", *_table(headings, rows))]


def _scores(record: RunRecord) -> list[str]:
    rows = score_rows(record)
    lines = _table(["scores in %", record.unit, *record.measures.values()], rows) if rows else []
    lines += [f"{_sentence(text)}" for text in [caption(record)] if text and rows]
    lines += [f"- {_sentence(line)}" for line in verdict(record)]
    intervals = [
        f"- 95 % interval on {part}: {100 * each.interval[0]:.1f} to {100 * each.interval[1]:.1f} %."
        for part in PARTS
        if (each := record.scores_on(part)) is not None and each.interval is not None
    ]
    return [*lines, *intervals, ""]


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [headings, ["---"] * len(headings), *rows]
    return [*(f"| {' | '.join(_plain(str(cell)) for cell in line)} |" for line in lines), ""]


def _short(text: str) -> str:
    """A path of this machine without its folders."""
    return Path(text).name if Path(text).is_absolute() else text


def _plain(text: str) -> str:
    """A text that cannot become markup or end a cell."""
    for mark in "\\`|<>[]":
        text = text.replace(mark, f"\\{mark}" if mark != "`" else "'")
    return " ".join(text.split())


def _sentence(line: str) -> str:
    line = _plain(line)
    return f"{line[:1].upper()}{line[1:]}." if line else ""
