"""What calls are given, made what they need or refused on one line."""

import os
import reprlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from drift.errors import ConfigError, DataError, DriftError

if TYPE_CHECKING:
    from drift.weak.rules import RuleSet
    from drift.weak.token_rules import TokenRuleSet

Rules = TypeVar("Rules", "RuleSet", "TokenRuleSet")


def as_list(given: Any, what: str, refusal: type[DriftError] = DataError) -> list[Any]:
    """The values of anything that has them one after the other, but of no string or mapping, which only look so.

    what: to call it in a message.
    """
    try:
        if isinstance(given, (str, bytes, Mapping)):
            raise TypeError
        values = iter(given)
    except TypeError:
        raise refusal(f"{what}: {reprlib.repr(given)} is no list; give one") from None
    return list(values)


def as_rules(given: Any, kind: type[Rules]) -> Rules:
    """given: a set of rules of this kind, a list of rules, or the path of a file with some."""
    if isinstance(given, kind):
        return given
    if isinstance(given, (str, os.PathLike)):
        return kind.from_file(given)
    if isinstance(given, (list, tuple)):
        return kind(given)
    raise ConfigError(
        f"rules: {reprlib.repr(given)} is no {kind.__name__}; give one, a list of rules, or the path of a file"
    )
