"""Deprecated names of arguments: still accepted, with a warning."""

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from drift.errors import ConfigError

T = TypeVar("T", bound=Callable[..., Any])


def renamed_arguments(**names: str) -> Callable[[T], T]:
    """Decorator of a function or a class: accept the old names of keyword arguments, each with a FutureWarning.

    names: the new name of each old one, `old="new"`.
    """

    def decorate(target: T) -> T:
        function = target.__init__ if isinstance(target, type) else target  # type: ignore[misc]

        @functools.wraps(function)
        def accepting_old_names(*args: Any, **kwargs: Any) -> Any:
            for old, new in names.items():
                if old not in kwargs:
                    continue
                if new in kwargs:
                    raise ConfigError(f"{target.__name__} got both {old} and {new}, its new name; pass {new} only")
                warnings.warn(f"{target.__name__}({old}=...) is now {new}; use that name", FutureWarning, stacklevel=2)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        if not isinstance(target, type):
            return accepting_old_names  # type: ignore[return-value]
        target.__init__ = accepting_old_names  # type: ignore[misc]
        return target

    return decorate
