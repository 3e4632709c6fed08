"""Packages that come with an extra and are imported late: where one is missing, one line says what to install."""

from collections.abc import Iterator
from contextlib import contextmanager

from drift.errors import DriftError

INSTALL = "pip install 'drift-ssl[text]'"


class PackageError(DriftError, ImportError):
    """A package that is needed here is not installed."""


@contextmanager
def needed_for(what: str, install: str = INSTALL) -> Iterator[None]:
    """Import in the block what `what` needs; PackageError says how to install it, where that fails."""
    try:
        yield
    except ImportError as error:
        raise PackageError(f"{what}: {str(error).splitlines()[0]}; {install}") from error
