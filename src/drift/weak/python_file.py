"""A Python file that holds rules."""

import os
from pathlib import Path
from typing import TypeVar

from drift.errors import ConfigError, DriftError, FileError

Kind = TypeVar("Kind")


def run_rules(path: str | os.PathLike[str], kind: type[Kind]) -> Kind:
    """Run a Python file, and give what it has in a variable called `rules`, which must be of the kind asked for."""
    import runpy

    if not Path(path).is_file():
        raise FileError(f"{path} is not there; give a YAML or Python file with rules")
    try:
        found = runpy.run_path(os.fspath(path)).get("rules")
    except DriftError as error:
        raise ConfigError(f"{path}: {error}") from error
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"{path} failed ({type(error).__name__}: {error}); run it with python to see where"
        ) from error
    if not isinstance(found, kind):
        raise ConfigError(f"{path} has no {kind.__name__}; end it with rules = {kind.__name__}([...])")
    return found
