"""The last sections of a run's page: how to use the model, and how to reproduce the run."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from drift.errors import FileError
from drift.report.page import Section, Table
from drift.runs.result import MODEL, ONNX
from drift.tasks import TASKS, Task
from drift.tasks.record import RunRecord
from drift.tasks.record_parts import Part
from drift.training.run_folder import CONFIG, ENVIRONMENT, RunFolder


class Environment(Part):
    """Where a run was made: `environment.json`."""

    command: list[str]
    python: str
    platform: str
    packages: dict[str, str]
    git_commit: str | None


def usage_sections(folder: RunFolder, task: type[Task], record: RunRecord, config: Mapping[str, Any]) -> list[Section]:
    """How to use the model on the command line, in Python, and, if there is an ONNX file, without torch."""
    model, kind = folder.path / MODEL, task.kinds[record.kind]
    if not model.exists():
        again = [f"drift fit --config {shlex.quote(str(folder.path / CONFIG))} -o NEW"]
        return [Section("How to use the model", ["The model was not kept. This trains it again:"], commands=again)]
    code = f", model={record.model!r}" if kind.from_user_code else ""
    code += "" if task.name in TASKS else f", task={task.__name__}"
    opened = f"run = drift.load({str(folder.path)!r}{code})"
    sections = [
        Section("How to use the model", commands=use_commands(folder.path, task, record)),
        Section(
            "In Python",
            [f"The model is {kind.title}: {record.model}."],
            commands=["import drift", opened, *task.usage.python],
        ),
    ]
    if (model / ONNX).exists():
        lines = task.service_lines(record, config, model, model / ONNX)
        sections.append(Section("In a service, without torch", commands=lines))
    return sections


def use_commands(path: Path, task: type[Task], record: RunRecord) -> list[str]:
    """Commands that use the model of a run. The user's code is named in each: code is run only if it is named."""
    code = f" --model {shlex.quote(record.model)}" if task.kinds[record.kind].from_user_code else ""
    code += "" if task.name in TASKS else f" --task FILE.py:{task.__name__}"
    return [f"drift {command}".replace("RUN", shlex.quote(str(path))) + code for command in task.usage.commands]


def origin_sections(folder: RunFolder) -> list[Section]:
    """Every setting, the command, the commit and the versions of packages."""
    try:
        made = Environment.model_validate(folder.read_json(ENVIRONMENT))
    except ValidationError as error:
        raise FileError(f"{folder.path / ENVIRONMENT} is damaged; copy the run's folder again") from error
    rows = [
        ["command", shlex.join(made.command)],
        ["commit", made.git_commit or "not in a git repository"],
        ["python", made.python],
        ["platform", made.platform],
        *([name, version] for name, version in made.packages.items()),
    ]
    settings = (folder.path / CONFIG).read_text(encoding="utf-8")
    return [
        Section("Settings", commands=[settings], folded="All settings of the run"),
        Section("Origin", tables=[Table(["what", "which"], rows)], folded="Command, commit and versions of packages"),
    ]
