"""Classes that are described in words: their names, with a description or example phrases where there are some."""

import os
import reprlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from drift.errors import ConfigError
from drift.weak.rule_files import read_yaml

SUFFIXES = (".yaml", ".yml", ".json")
HOW = 'give names such as "sports, politics", or a YAML file with lines NAME: DESCRIPTION'

Phrases = dict[str, tuple[str, ...]]  # a description, or example phrases, of each class; empty if it has only a name


def class_phrases(classes: Any) -> Phrases:
    """The phrases that describe each class.

    classes: names, as one string with commas or as a list; a mapping from name to a description or a list of example
        phrases; or the path of a YAML file that holds such a list or mapping.
    """
    where = "classes"
    if isinstance(classes, os.PathLike) or (isinstance(classes, str) and classes.strip().lower().endswith(SUFFIXES)):
        where = os.fspath(classes).strip()
        classes = read_yaml(Path(where), "lines NAME: DESCRIPTION")[0]
    if isinstance(classes, str):
        classes = [name for name in map(str.strip, classes.split(",")) if name]
    if isinstance(classes, Mapping):
        found = {_name(name, where): _phrases(value, name, where) for name, value in classes.items()}
        names = list(map(str, classes))
    elif isinstance(classes, Iterable) and not isinstance(classes, bytes):
        names = [_name(name, where) for name in classes]
        found = dict.fromkeys(names, ())
    else:
        raise ConfigError(f"{where}: {reprlib.repr(classes)} is no list of classes; {HOW}")
    if len(found) < len(names):
        twice = next(name for place, name in enumerate(names) if name.strip() in map(str.strip, names[:place]))
        raise ConfigError(f"{where}: class {twice!r} is named twice; leave one out")
    if len(found) < 2:
        only = f"only the class {names[0]!r} is named" if names else "no class is named"
        raise ConfigError(f"{where}: {only}, a classifier needs at least two; {HOW}")
    return found


def _name(name: Any, where: str) -> str:
    if isinstance(name, (Mapping, list, tuple, set)) or name is None or not str(name).strip():
        raise ConfigError(f"{where}: {reprlib.repr(name)} is no name of a class; {HOW}")
    return str(name).strip()


def _phrases(value: Any, name: Any, where: str) -> tuple[str, ...]:
    values = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(values, (list, tuple)) or not all(isinstance(each, str) for each in values):
        raise ConfigError(
            f"{where}: class {name!r} has {reprlib.repr(value)}; give a description, or a list of example phrases"
        )
    return tuple(phrase.strip() for phrase in values if phrase.strip())
