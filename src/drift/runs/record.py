"""Build the record of a run, and read it back from a run's folder."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import ValidationError

from drift.data.labels import LabelBudget
from drift.errors import ConfigError, FileError
from drift.runs.keeping import Kept, estimate
from drift.runs.layers import GROUPS
from drift.runs.result import Predictions
from drift.runs.spec import read_stored
from drift.tasks import TASKS, RunConfig, Task, find_task
from drift.tasks.judging import judge_changes
from drift.tasks.record import VERSION, RunRecord, first_fault
from drift.tasks.scoring import wilson_interval
from drift.training.outcome import Outcome
from drift.training.run_folder import CONFIG, DATA, METRICS, RunFolder

MAJORITY = "majority class"  # a baseline: always the most frequent class of the part


def build_record(
    task: Task, budget: LabelBudget, outcome: Outcome, predictions: Mapping[str, Predictions], kept: Kept, model: Any
) -> RunRecord:
    """Scores of every seed and of the kept model, its calibration, label budget, and the facts of the task.

    predictions: on dev and test, where there are such. model: after calibration.
    """
    position = kept.position or 0
    content: dict[str, Any] = {
        "version": VERSION,
        "task": task.name,
        "unit": task.unit,
        "measures": task.measures,
        "method": task.config.method_name,
        "model": task.model_name(model),
        "kind": task.kind.name,
        **task.facts(),
        "label_budget": {"train": budget.train, "dev": budget.dev, "total": budget.total},
        "seeds": list(task.seeds),
        "kept_seed": task.seeds[position],
        "kept_because": kept.because,
        "averaged": kept.position is None,
        "steps": outcome.steps,
        "seconds": round(outcome.seconds, 1),
        "phases": outcome.ends,
        "start_on_dev": outcome.start,
        "best_steps": outcome.best_steps,
    }
    content |= {name: _held_out_scores(part, kept, task.baselines(name)) for name, part in predictions.items()}
    scored = "test" if "test" in predictions else "dev"
    if scored in predictions:
        content |= task.judge(scored, kept.probabilities(predictions[scored].probabilities), model)
    content |= _without_dev(outcome, kept)
    if outcome.flips is not None:
        flips = outcome.flips.of_trial(position)
        content["changes"] = judge_changes(flips, content["classes"], task.describe)
        content |= task.judge_flips(flips)
    notes = [*task.notes(), *_equal_scores(content, predictions)]
    try:
        return task.record_type.model_validate({**content, "notes": notes})
    except ValidationError as error:  # of a task from outside
        expected = task.record_type.__name__
        raise ConfigError(f"{task.name}: facts and judge do not fit {expected}: {first_fault(error)}") from error


def _held_out_scores(part: Predictions, kept: Kept, baselines: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The fields of `HeldOutScores`. baselines: probabilities of simple answers by name, `(n, C)`."""
    rows, C = len(part.labels), part.probabilities.shape[-1]
    model = part.score(kept.probabilities(part.probabilities), part.labels)
    commonest = np.bincount(part.labels, minlength=C)[:C].argmax()  # later ones are of classes that were not learned
    constant = np.eye(C)[np.full(rows, commonest)]
    simple = {MAJORITY: constant, **baselines}
    content: dict[str, Any] = {
        "rows": rows,
        "scores": [part.score(trial, part.labels) for trial in part.probabilities],
        "model": model,
        "baselines": {name: part.score(answer, part.labels) for name, answer in simple.items()},
    }
    if next(iter(model)) == "accuracy":
        content["interval"] = wilson_interval(model["accuracy"], rows)
    if part.start is not None:
        content["start"] = [part.score(trial, part.labels) for trial in part.start]
        content["start_model"] = part.score(kept.probabilities(part.start), part.labels)
    return content


def _without_dev(outcome: Outcome, kept: Kept) -> dict[str, Any]:
    """What was estimated and chosen without dev labels: class shares, start or game, and the accuracy."""
    content: dict[str, Any] = {}
    if outcome.shares:
        chosen = outcome.shares if kept.position is None else [outcome.shares[kept.position]]
        mean = np.mean([each.values for each in chosen], axis=0)
        content["class_shares"] = {"shares": mean.tolist(), "source": chosen[0].source}
    if outcome.choice is not None:
        start_kept = outcome.choice.start_kept
        content["choice"] = {
            "kept_start": sum(start_kept),
            "seeds": len(start_kept),
            "reason": outcome.choice.reason,
        }
    if (accuracy := estimate(outcome)) is not None:
        content["estimate"] = accuracy
    return content


def read_record(folder: RunFolder, task: str | type[Task] | None = None) -> tuple[type[Task], RunRecord]:
    """The task and the record of a finished run. task: of a run whose task is not built in."""
    content, where = folder.read_json(METRICS), str(folder.path / METRICS)
    name = content.get("task") if isinstance(content, dict) else None
    if not isinstance(name, str):
        raise FileError(f"{where} is not the record of a run; copy the run's folder again")
    if task is None and name not in TASKS:
        raise FileError(f"{folder.path} is a run of task {name!r}, which is not built in; pass its class as task=...")
    task_type = find_task(name if task is None else task)
    if task_type.name != name:
        raise FileError(f"{folder.path} is a run of task {name!r}, not of {task_type.name!r}")
    record = task_type.record_type.read(content, where)
    if record.kind not in task_type.kinds:
        raise FileError(f"{where} is damaged: kind: {record.kind!r} is not one of {', '.join(task_type.kinds)}")
    return task_type, record


def read_settings(folder: RunFolder, task: type[Task]) -> RunConfig:
    """The configuration of a finished run. Settings that were renamed since have their new names."""
    content, where = folder.config(), str(folder.path / CONFIG)
    if missing := [group for group in GROUPS if group not in content]:
        raise FileError(f"{where} is damaged: it has no {missing[0]}; copy the run's folder again")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # the user did not choose the old names
            return read_stored(content, where, task)
    except ConfigError as error:
        raise FileError(f"{error}; copy the run's folder again") from error


def read_fingerprint(folder: RunFolder) -> str:
    """The hash of the data that a run was trained on."""
    content = folder.read_json(DATA)
    if not isinstance(content, dict) or not isinstance(content.get("fingerprint"), str):
        raise FileError(f"{folder.path / DATA} is damaged: it has no fingerprint; copy the run's folder again")
    return str(content["fingerprint"])


def _equal_scores(content: Mapping[str, Any], predictions: Mapping[str, Predictions]) -> list[str]:
    """A note if many seeds have the same score: a spread of 0 would be taken for certainty."""
    seeds, scores = len(content["seeds"]), [content[part]["scores"] for part in predictions]
    if seeds == 1 or not scores or any(seed != part[0] for part in scores for seed in part):
        return []
    return [
        f"all {seeds} seeds have the same scores, because nothing differs between them; ± 0 does not mean that the"
        " score is certain: other labelled rows would give another"
    ]
