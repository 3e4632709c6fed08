"""Bounded reading of text and YAML: a small or strange file must not take the memory or the time of the machine."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from drift.errors import ConfigError, DriftError, FileError

MOST_TEXT = 2**28  # bytes of a file that is read as a whole: 256 MB
MOST_YAML = 2**26  # bytes: 64 MB
MOST_DEPTH = 50  # levels of lists and mappings
MOST_VALUES = 1_000_000  # keys, values, lists and mappings, with every alias written out


def check_regular(path: str | os.PathLike[str]) -> None:
    """Refuse a device: reading /dev/zero never ends. Pipes are accepted. A path that does not exist is left alone."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    except ValueError as error:  # a NUL byte in the name
        raise FileError(f"{os.fspath(path)!r} is not the name of a file ({error})") from error
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise FileError(f"{path} is a device, not a file; give the name of a file")


def read_text(path: Path, *, most: int = MOST_TEXT) -> str:
    """A whole text file in UTF-8, with or without a byte order mark. most: its largest size, in bytes."""
    check_regular(path)
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise FileError(f"{path} cannot be read ({error.strerror})") from error
    if len(content) > most:
        raise FileError(f"{path} is larger than {most // 2**20:,} MB; split it")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from error


def parse_yaml(text: str, where: str | Path, *, error: type[DriftError] = ConfigError) -> Any:
    """The value of a YAML document with the types of YAML. where: its source, for messages. error: raised if faulty."""
    return _checked(text, where, error, lambda: yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def compose_yaml(text: str, where: str | Path) -> Any:
    """The nodes of a YAML document, whose scalars are strings; None if it is empty. where: its source, for messages."""
    return _checked(text, where, ConfigError, lambda: yaml.compose(text, Loader=_base_loader()))


def _base_loader() -> Any:
    return getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def _checked(text: str, where: str | Path, error: type[DriftError], load: Callable[[], Any]) -> Any:
    """Load a document after a look at its events, which takes constant memory however deep or repetitive it is."""
    try:
        _check_limits(text, where, error)
        return load()
    except yaml.MarkedYAMLError as fault:
        line = fault.problem_mark.line + 1 if fault.problem_mark else 1
        raise error(f"{where}:{line}: not YAML ({' '.join(str(fault.problem).split())})") from fault
    except yaml.YAMLError as fault:
        raise error(f"{where}: not YAML ({' '.join(str(fault).split())})") from fault
    except DriftError:
        raise
    except (ValueError, TypeError, OverflowError) as fault:  # such as a date of month 13, or a list as a key
        raise error(f"{where}: not YAML ({' '.join(str(fault).split())})") from fault


def _check_limits(text: str, where: str | Path, error: type[DriftError]) -> None:
    """Count depth and values with aliases written out: a page of aliases of aliases can stand for 10^9 values."""
    if len(text) > MOST_YAML:
        raise error(f"{where} is larger than {MOST_YAML // 2**20} MB; split it")
    open_values: list[tuple[str | None, int, int]] = []  # anchor, values before it, depth of what was seen in it
    anchors: dict[str, tuple[int, int]] = {}  # number of values and depth of each
    values = 0

    def close(anchor: str | None, before: int, depth: int) -> None:
        if anchor is not None:
            anchors[anchor] = values - before, depth
        if open_values:
            outer, outer_before, outer_depth = open_values[-1]
            open_values[-1] = outer, outer_before, max(outer_depth, depth + 1)

    for event in yaml.parse(text, Loader=_base_loader()):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _, _ in open_values):
                raise error(f"{where}:{line}: this alias refers to a value that contains it; write the value out")
            size, depth = anchors.get(event.anchor or "", (1, 0))
            values += size
            close(None, values, depth)
            deepest = len(open_values) + depth
        elif isinstance(event, yaml.ScalarEvent):
            values += 1
            close(event.anchor, values - 1, 0)
            deepest = len(open_values)
        elif isinstance(event, yaml.CollectionStartEvent):
            values += 1
            open_values.append((event.anchor, values - 1, 1))
            deepest = len(open_values)
        elif isinstance(event, yaml.CollectionEndEvent):
            close(*open_values.pop())
            continue
        else:
            continue
        if deepest > MOST_DEPTH:
            raise error(f"{where}:{line}: lists and mappings are nested more than {MOST_DEPTH} deep; write them flat")
        if values > MOST_VALUES:
            raise error(
                f"{where}:{line}: more than {MOST_VALUES:,} values, with aliases written out; use fewer aliases"
            )
