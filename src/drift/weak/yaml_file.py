"""YAML as its author wrote it: every scalar a string, every value with its line, no key twice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from drift.errors import ConfigError, FileError
from drift.weak.schema import Location


def read_yaml(path: Path) -> tuple[Any, Callable[[Location], str]]:
    """The content of a file, and what to call a place in it: file:line of the value, or of the nearest one around it.

    Scalars stay strings: in a list of keywords `no`, `on` and `76` are words, not a boolean and a number.
    """
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        node = yaml.compose(path.read_text(encoding="utf-8-sig"), Loader=loader)
    except OSError as error:
        raise FileError(f"{path} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{path}:{line}: not YAML ({error.problem})") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML ({str(error).splitlines()[0]})") from error
    if node is None:
        raise ConfigError(f"{path} is empty; write at least one rule under `rules:`")
    lines: dict[Location, int] = {}
    content = _value(node, (), path, lines, ())

    def where(at: Location) -> str:
        return f"{path}:{next(lines[at[:depth]] for depth in range(len(at), -1, -1) if at[:depth] in lines)}"

    return content, where


def _value(node: Any, at: Location, path: Path, lines: dict[Location, int], above: tuple[Any, ...]) -> Any:
    import yaml

    lines[at] = line = node.start_mark.line + 1
    if any(node is each for each in above):
        raise ConfigError(f"{path}:{line}: an alias inside what it stands for; write the value out")
    above = (*above, node)
    if isinstance(node, yaml.SequenceNode):
        return [_value(child, (*at, place), path, lines, above) for place, child in enumerate(node.value)]
    if not isinstance(node, yaml.MappingNode):
        return node.value
    mapping: dict[str, Any] = {}
    for key, child in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise ConfigError(f"{path}:{key.start_mark.line + 1}: a key must be a word")
        if key.value in mapping:
            raise ConfigError(f"{path}:{key.start_mark.line + 1}: key {key.value!r} is there twice; remove one")
        mapping[key.value] = _value(child, (*at, key.value), path, lines, above)
        lines[(*at, key.value)] = key.start_mark.line + 1
    return mapping
