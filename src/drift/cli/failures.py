"""How the command ends when something fails: one line and an exit code, for every kind of failure a user can cause."""

import os
import re
from dataclasses import dataclass

import typer

from drift.errors import ConfigError, DriftError, Interrupted

USER_ERROR, CTRL_C, STOPPED = 2, 130, 1
UsageError = typer.BadParameter.__bases__[
    0
]  # typer exports its subclasses only, and where it is depends on the version
# torch reports memory as RuntimeError, with the size that it asked for.
NO_MEMORY = re.compile(r"can't allocate memory|not enough memory|out of memory|bad_alloc|Unable to allocate", re.I)
SIZE = re.compile(r"(\d[\d.]*) ?(bytes|[KMGTPE]i?B)")
NUMBERS = ("WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT", "LOKY_MAX_CPU_COUNT")


@dataclass(frozen=True)
class Failure:
    """One line for the user, without the name of the command; empty if everything was said. code: the exit code."""

    line: str
    code: int = USER_ERROR


def failure(error: BaseException) -> Failure | None:
    """What to tell the user about an error; None if it is a defect of the program, which keeps its traceback."""
    if isinstance(error, Interrupted):
        return Failure(str(error), CTRL_C)
    if isinstance(error, DriftError):
        return Failure(str(error))
    if isinstance(error, UsageError):
        return _usage(error)
    if isinstance(error, typer.Abort):
        return Failure("stopped: the input ended", STOPPED)
    if isinstance(error, SystemExit):
        if isinstance(error.__context__, OSError):  # the reader of a pipe has gone, as with `drift methods | head -1`
            return Failure("", STOPPED)
        return Failure(f"code that the command called ended the program with sys.exit({error.code!r}); take that out")
    if isinstance(error, (MemoryError, RuntimeError)) and _is_memory(error):
        return Failure(f"{_memory(error)}; use smaller settings or less data, or a machine with more memory")
    if isinstance(error, OSError):
        where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, (str, bytes)) else ""
        return Failure(f"{where}{error.strerror or error}; check the name, the rights and the space on the disk")
    return None


def _usage(error: BaseException) -> Failure:
    """A wrong call: what was wrong, and where the right form is described."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        return Failure(context.get_help())
    message = " ".join(error.format_message().split()).rstrip(".")  # type: ignore[attr-defined]
    command = "drift" if context is None else " ".join(["drift", *context.command_path.split()[1:]])
    return Failure(f"{message}; see {command} --help")


def _is_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or NO_MEMORY.search(str(error)) is not None


def _memory(error: BaseException) -> str:
    size = SIZE.search(str(error))
    if size is None:
        return "not enough memory"
    number, unit = size.groups()
    wanted = f"{float(number) / 1e9:,.1f} GB" if unit == "bytes" else f"{number} {unit}"
    return f"not enough memory: {wanted} were asked for at once"


def check_environment() -> None:
    """Refuse environment variables that launchers set to numbers and that are none."""
    for name in NUMBERS:
        if (value := os.environ.get(name)) is not None and not re.fullmatch(r"\s*[+-]?\d{1,9}\s*", value):
            raise ConfigError(f"the environment variable {name} is {value!r}, not a whole number; unset or correct it")
