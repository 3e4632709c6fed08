"""The prior of classes as users give it: shares that sum to 1, or counts; as a sequence or by class name."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from drift.errors import ConfigError

SUM_TOLERANCE = 1e-3  # for shares that were rounded to three decimals
LARGEST_SHARE_SUM = 1.5  # whole numbers with a larger sum are counts
NAMES_IN_MESSAGE = 10


def prior_shares(prior: Any, classes: Sequence[Any], *, name: str = "prior") -> tuple[float, ...]:
    """A prior as one positive number per class, in the order of the classes; ConfigError if it is not one.

    prior: shares that sum to 1 (to three decimals), or whole-number counts; a sequence in the order of the classes, or
        a mapping from class to number.
    classes: all classes, in order.
    name: of the parameter, for messages.
    """
    values = _in_class_order(prior, classes, name) if isinstance(prior, Mapping) else prior
    try:
        shares = tuple(float(share) for share in values)
    except (TypeError, ValueError):
        raise ConfigError(f"{name}={_in_one_line(prior)}: give one number per class") from None
    if not all(math.isfinite(share) and share > 0 for share in shares):
        raise ConfigError(f"{name}={_in_one_line(shares)}: every class needs a positive share")
    if len(shares) != len(classes):
        raise ConfigError(
            f"{name} has {len(shares)} shares, the labels have {len(classes)} classes;"
            f" give one share per class, in this order: {_listed(classes)}"
        )
    total = math.fsum(shares)
    are_counts = total > LARGEST_SHARE_SUM and all(share.is_integer() for share in shares)
    if not are_counts and abs(total - 1) > SUM_TOLERANCE:
        raise ConfigError(
            f"the shares in {name} sum to {total:.6g}, not 1; divide each by the sum, or give whole-number counts"
        )
    return shares


def _in_class_order(prior: Mapping[Any, Any], classes: Sequence[Any], name: str) -> list[Any]:
    known = set(classes)
    if unknown := [key for key in prior if key not in known]:
        listed = _listed(classes, repr)
        raise ConfigError(f"{name} has a share for {unknown[0]!r}, which is not a class; the classes are {listed}")
    if missing := [key for key in classes if key not in prior]:
        raise ConfigError(
            f"{name} has no share for class {missing[0]!r}; give a share for each of the {len(classes)} classes"
        )
    return [prior[key] for key in classes]


def _listed(classes: Sequence[Any], written: Any = str) -> str:
    more = ", ..." if len(classes) > NAMES_IN_MESSAGE else ""
    return ", ".join(map(written, classes[:NAMES_IN_MESSAGE])) + more


def _in_one_line(value: object) -> str:
    """The repr of a value; arrays and data frames have line breaks in theirs."""
    return " ".join(repr(value).split())
