"""Tasks: texts, words of sentences, nodes of graphs. A new task is one folder and one line in `TASKS`."""

from typing import Any

from drift.errors import ConfigError
from drift.imports import is_outside, load_object
from drift.settings import nearest
from drift.tasks.base import Kind, Task
from drift.tasks.config import RunConfig, config_type
from drift.tasks.nodes.task import NodeTask
from drift.tasks.text.task import TextTask
from drift.tasks.tokens.task import TokenTask

__all__ = ["TASKS", "Kind", "RunConfig", "Task", "config_type", "find_task"]

TASKS: dict[str, type[Task]] = {task.name: task for task in (TextTask, TokenTask, NodeTask)}


def find_task(task: Any) -> type[Task]:
    """The class of a task: a built-in name, `file.py:Class` as the user gave it, or the class itself."""
    if isinstance(task, str) and task in TASKS:
        return TASKS[task]
    if isinstance(task, str) and is_outside(task):
        task = load_object(task, "task", noun="class")
    if isinstance(task, type) and issubclass(task, Task):
        return task
    if isinstance(task, type):
        raise ConfigError(f"{task.__name__} is not a task; give a subclass of drift.tasks.Task")
    raise ConfigError(f"there is no task {task!r}{nearest(str(task), TASKS)}")
