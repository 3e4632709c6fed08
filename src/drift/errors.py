"""Exceptions of the package. Every message says what is wrong, where, and what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

INSTALL = "pip install 'drift-ssl[text]'"


class DriftError(Exception):
    """Base class of all errors that this package raises."""


class ConfigError(DriftError, ValueError):
    """A setting is invalid, or two settings contradict each other."""


class ShapeError(DriftError, ValueError):
    """A tensor or array has the wrong shape."""


class DataError(DriftError, ValueError):
    """The data holds values that cannot be used."""


class LabelError(DriftError, ValueError):
    """Labels are missing, out of range or ambiguous."""


class StateError(DriftError, RuntimeError):
    """A method was called out of order, or a saved state does not match."""


class FileError(DriftError, OSError):
    """A file is missing, damaged or of the wrong format, or cannot be written."""


class Interrupted(DriftError, RuntimeError):  # noqa: N818 - the user asked for it, so it is not named an error
    """The user stopped the run; its progress is saved."""


class PackageError(DriftError, ImportError):
    """An optional package is needed and not installed."""


@contextmanager
def needed_for(purpose: str, install: str = INSTALL) -> Iterator[None]:
    """Import optional packages in the block: an ImportError becomes a PackageError that says how to install them.

    purpose: what needs the package; it starts the message. install: the command to run; it ends the message.
    """
    try:
        yield
    except ImportError as error:
        raise PackageError(f"{purpose}: {str(error).splitlines()[0]}; {install}") from error
