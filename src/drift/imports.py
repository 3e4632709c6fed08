"""Functions and classes that users name as `file.py:Name` or `package.module:Name`."""

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from drift.errors import ConfigError
from drift.settings import nearest

_FILES: dict[str, Path] = {}  # files that were executed in this process, by the names of their modules


def is_outside(name: str) -> bool:
    """Return whether a name refers to an object outside this package: `file.py:Name` or `package.module:Name`."""
    return ":" in os.path.splitdrive(name)[1]  # C:\\models is a folder on Windows


def load_object(name: str, what: str, *, noun: str = "Name") -> Any:
    """Load a function or class. Its file or module is executed, so pass only names that the user gave.

    name: `file.py:Name` or `package.module:Name`.
    what: what the object is for, such as "model" or "method"; used in messages.
    noun: what the object is, such as "function" or "class"; used in messages.

    Raises ConfigError, with the original exception as its cause if the file or module failed.
    """
    where, _, attribute = name.rpartition(":")
    if not where or not attribute:
        raise ConfigError(f"{what} {name!r}: write file.py:{noun} or package.module:{noun}")
    try:
        module = _run(Path(where), what) if where.endswith(".py") else importlib.import_module(where)
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{where} failed ({describe(error)}); import it with python to see where") from error
    loaded = getattr(module, attribute, None)
    if not callable(loaded):
        names = [key for key, value in vars(module).items() if _is_defined_in(module, value)]
        raise ConfigError(f"{where} has no {noun} {attribute!r}{nearest(attribute, names) if names else ''}")
    return loaded


def files_of(*classes: type) -> dict[str, Path]:
    """The files in which these classes and their bases are defined, if `load_object` executed them; by module name."""
    modules = {base.__module__ for each in classes for base in each.__mro__}
    return {name: path for name, path in _FILES.items() if name in modules}


def load_files(files: Mapping[str, Path]) -> None:
    """Execute files that `files_of` returned in another process, so that their classes can be unpickled here."""
    for name, path in files.items():
        if name not in sys.modules:
            _execute(name, path)


def describe(error: BaseException) -> str:
    """Return the type of an error and the first line of its message."""
    first_line = str(error).split("\n")[0]
    return f"{type(error).__name__}: {first_line}"


def _run(path: Path, what: str) -> ModuleType:
    """Execute a Python file as a module."""
    if not path.is_file():
        raise ConfigError(f"{path} is not there; give the Python file of the {what}")
    name = f"drift_{what}_{path.stem}"
    module = _execute(name, path)
    _FILES[name] = path.absolute()
    return module


def _execute(name: str, path: Path) -> ModuleType:
    """Execute a Python file as a module. It stays in `sys.modules`, where its classes look for their module."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # a name that ends in .py always has a spec
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _is_defined_in(module: ModuleType, value: object) -> bool:
    return (inspect.isfunction(value) or inspect.isclass(value)) and value.__module__ == module.__name__
