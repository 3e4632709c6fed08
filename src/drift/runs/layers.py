"""Settings from several places: files, `--set key=value` and mappings, merged into one."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from drift.data.reading import MOST_YAML, parse_yaml, read_text
from drift.errors import ConfigError

GROUPS = ("data", "model", "method", "training")
NAMED = ("model", "method")  # groups with a name among their settings
NAMED_AS = {"task": "text", "model.name": "default", "method.name": "drift"}  # examples, for messages


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by group; those of `above` replace those of `below`."""
    merged = dict(below)
    for name, value in above.items():
        if isinstance(merged.get(name), Mapping) and not isinstance(value, Mapping):
            raise ConfigError(
                f"{value!r} is not a group of settings; write group.name=value, such as model.name=textcnn"
            )
        merged[name] = _overlay(merged.get(name), value)
    return merged


def _overlay(below: Any, above: Any) -> Any:
    """A value in place of another. Two mappings are merged; a list or None replaces a mapping, such as a prior."""
    if not (isinstance(below, Mapping) and isinstance(above, Mapping)):
        return above
    return {**below, **{name: _overlay(below.get(name), value) for name, value in above.items()}}


def nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by group, from settings of which some have their full name, such as "training.steps"."""
    groups: dict[str, Any] = {}
    for path, content in settings.items():
        for part in reversed(str(path).split(".")):
            content = {part: content}
        groups = merge(groups, content)
    return groups


def read_config(path: str | Path) -> dict[str, Any]:
    """Read a configuration file in YAML."""
    content = parse_yaml(read_text(Path(path), most=MOST_YAML), path) or {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path} holds {type(content).__name__}, not settings by name")
    return nested(content)


def read_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Settings from `training.steps=300`; values are read as YAML."""
    settings: dict[str, Any] = {}
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        if not equals or not path:
            raise ConfigError(f"--set {assignment!r}: write key=value, such as training.steps=300")
        try:
            content: Any = parse_yaml(value, f"--set {path}")
        except ConfigError as error:
            if not isinstance(error.__cause__, yaml.YAMLError):
                raise
            content = value  # such as a text with a colon
        if isinstance(content, str):
            with suppress(ValueError):  # YAML takes 1e-5 for a string
                content = float(content)
        settings = merge(settings, nested({path.strip(): content}))
    return settings


def check_groups(layer: dict[str, Any]) -> dict[str, Any]:
    """The same settings; ConfigError if a group is not a mapping, or the name of a task, model or method no text."""
    for group in GROUPS:
        if not isinstance(layer.get(group, {}), Mapping):
            raise ConfigError(
                f"{layer[group]!r} is not a group of settings; write group.name=value, such as model.name=textcnn"
            )
    names = {"task": layer.get("task"), **{f"{group}.name": layer.get(group, {}).get("name") for group in NAMED}}
    for name, value in names.items():
        if value is not None and not isinstance(value, str):
            raise ConfigError(f"{name}={value!r} is not a name; give one word, such as {name}={NAMED_AS[name]}")
    return layer


def only_given(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are not None."""
    return {name: value for name, value in values.items() if value is not None}
