"""Read rule files: YAML, with the line of every value, and Python."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from drift.data.reading import compose_yaml, read_text
from drift.errors import ConfigError, DriftError, FileError
from drift.weak.schema import Location

RuleSetType = TypeVar("RuleSetType")


def run_rules(path: str | os.PathLike[str], rule_set: type[RuleSetType]) -> RuleSetType:
    """Run a Python file and return its variable `rules`, which must be an instance of `rule_set`."""
    import runpy

    if not Path(path).is_file():
        raise FileError(f"{path} is not there; give a YAML or Python file with rules")
    try:
        rules = runpy.run_path(os.fspath(path)).get("rules")
    except DriftError as error:
        raise ConfigError(f"{path}: {error}") from error
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"{path} failed ({type(error).__name__}: {error}); run it with python to see where"
        ) from error
    if not isinstance(rules, rule_set):
        raise ConfigError(f"{path} has no {rule_set.__name__}; end it with rules = {rule_set.__name__}([...])")
    return rules


def read_yaml(path: Path, wanted: str = "at least one rule under `rules:`") -> tuple[Any, Callable[[Location], str]]:
    """Read a YAML file. Returns its content, and a function that names a location in it for error messages.

    The function returns `file:line` of the value at a location, or of the closest value around it. Keys that occur
    twice are errors. Scalars stay strings: in a list of keywords, `no`, `on` and `76` are words, not a boolean and a
    number.

    wanted: what an empty file should hold, for messages.
    """
    node = compose_yaml(read_text(path), path)
    if node is None:
        raise ConfigError(f"{path} is empty; write {wanted}")
    lines: dict[Location, int] = {}
    content = _value(node, (), path, lines)

    def where(at: Location) -> str:
        return f"{path}:{next(lines[at[:depth]] for depth in range(len(at), -1, -1) if at[:depth] in lines)}"

    return content, where


def _value(node: Any, at: Location, path: Path, lines: dict[Location, int]) -> Any:
    """Convert a YAML node at a location to a Python value, and record the line of each value in `lines`."""
    import yaml

    lines[at] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        return [_value(child, (*at, index), path, lines) for index, child in enumerate(node.value)]
    if not isinstance(node, yaml.MappingNode):
        return node.value
    mapping: dict[str, Any] = {}
    for key, child in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise ConfigError(f"{path}:{key.start_mark.line + 1}: a key must be a word")
        if key.value in mapping:
            raise ConfigError(f"{path}:{key.start_mark.line + 1}: key {key.value!r} is given twice; remove one")
        mapping[key.value] = _value(child, (*at, key.value), path, lines)
        lines[(*at, key.value)] = key.start_mark.line + 1
    return mapping
