"""Checks of the parameters of `DriftClassifier`: scikit-learn's constraints, the prior and the hidden widths."""

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, Options, StrOptions
from torch import Tensor, nn

from drift.core import SoftStrategy
from drift.data.labels import Encoded
from drift.errors import ConfigError
from drift.methods.shares import estimate_shares

if TYPE_CHECKING:
    from drift.estimator.classifier import DriftClassifier

SUM_TOLERANCE = 1e-3  # for shares that were rounded to three decimals
LARGEST_SHARE_SUM = 1.5  # whole numbers with a larger sum are counts
NAMES_IN_MESSAGE = 10
AUTO = StrOptions({"auto"})

CONSTRAINTS: dict[str, list[Any]] = {
    "module": [nn.Module, callable, None],
    "hidden": ["array-like"],  # `check_widths` checks the values
    "dropout": [Interval(Real, 0, 1, closed="left")],
    "input_dropout": [AUTO, Interval(Real, 0, 1, closed="left")],
    "alpha": [Interval(Real, 0, 1, closed="both")],
    "tau": [Interval(Real, 0, None, closed="neither")],
    "class_mass": ["boolean"],
    "prior": [
        StrOptions({"auto", "uniform", "labels"}),
        Mapping,
        "array-like",
        None,
    ],  # `make_strategy` checks the values
    "coupling": [StrOptions({"differentiable", "detached", "none"})],
    "weak": ["boolean"],
    "unlabeled_weight": [Interval(Real, 0, None, closed="left")],
    "start": [StrOptions({"auto", "labels"})],
    "initial_steps": [AUTO, Interval(Integral, 0, None, closed="left")],
    "steps": [AUTO, Interval(Integral, 0, None, closed="left")],
    "batch_size": [Interval(Integral, 1, None, closed="left")],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "weight_decay": [Interval(Real, 0, None, closed="left")],
    "standardize": [AUTO, "boolean"],
    "n_jobs": [Interval(Integral, 1, None, closed="left"), Options(Integral, {-1}), None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


def check_widths(hidden: Any) -> None:
    """Raise unless `hidden` is a sequence of positive integers."""
    widths = hidden.tolist() if isinstance(hidden, np.ndarray) else hidden
    if not isinstance(widths, Sequence) or not all(
        isinstance(width, (int, np.integer)) and width > 0 for width in widths
    ):
        raise ConfigError(f"hidden={_in_one_line(hidden)}: give a list of positive widths, such as (256,)")


class Prior(NamedTuple):
    """Class shares that pseudo-labels are balanced towards, in class order, and what they are based on."""

    values: np.ndarray
    source: str


def make_strategy(
    classifier: "DriftClassifier", encoded: Encoded, predict: Callable[[], Tensor]
) -> tuple[SoftStrategy, Prior]:
    """Build the teacher's strategy, with the prior as one share per class in the order of the classes.

    Parameters
    ----------
    classifier : the estimator with its parameters.
    encoded : the labels given to `fit`.
    predict : returns the start's probabilities of unlabelled rows; called only if the prior is estimated.
    """
    classes, prior = len(encoded.classes), classifier.prior
    if not classifier.class_mass and isinstance(prior, str) and prior != "labels":
        return SoftStrategy(classifier.tau, False), Prior(np.full(classes, 1 / classes), "not used: class_mass is off")
    if isinstance(prior, str) and prior == "auto" and classifier.coupling != "none":
        shares = estimate_shares(predict().numpy(), encoded.codes[encoded.labeled], classes)
        strategy = SoftStrategy(classifier.tau, True, shares.values)
        return strategy, Prior(np.array(shares.values), shares.source)
    given = given_shares(prior, encoded)
    strategy = SoftStrategy(classifier.tau, classifier.class_mass, given)
    if given is None:
        return strategy, Prior(np.full(classes, 1 / classes), "equal shares")
    source = "counts of the labels" if isinstance(prior, str) else "the shares given as prior"
    return strategy, Prior(np.array(given) / sum(given), source)


def check_prior(prior: Any, class_mass: bool, encoded: Encoded) -> None:
    """Raise unless the prior fits the classes, before anything is trained."""
    SoftStrategy(1.0, class_mass, given_shares(prior, encoded))


def given_shares(prior: Any, encoded: Encoded) -> tuple[float, ...] | None:
    """Shares that do not have to be estimated, in class order; None for equal shares."""
    names = encoded.classes.tolist()
    if isinstance(prior, str):
        prior = np.bincount(encoded.codes[encoded.labeled]).tolist() if prior == "labels" else None
    elif isinstance(prior, Mapping):
        prior = _in_class_order(prior, names)
    try:
        shares = None if prior is None else tuple(float(share) for share in prior)
    except (TypeError, ValueError):
        raise ConfigError(f"prior={_in_one_line(prior)}: give one number per class") from None
    if shares is not None:
        SoftStrategy(1.0, True, shares)  # its checks of the values come first
        _check_shares(shares, len(names))
    return shares


def _in_class_order(prior: Mapping[Any, Any], names: list[Any]) -> list[Any]:
    known = set(names)
    if unknown := [name for name in prior if name not in known]:
        more = ", ..." if len(names) > NAMES_IN_MESSAGE else ""
        classes = ", ".join(map(repr, names[:NAMES_IN_MESSAGE])) + more
        raise ConfigError(f"prior has a share for {unknown[0]!r}, which is not a class; the classes are {classes}")
    if missing := [name for name in names if name not in prior]:
        raise ConfigError(
            f"prior has no share for class {missing[0]!r}; give a share for each of the {len(names)} classes"
        )
    return [prior[name] for name in names]


def _check_shares(shares: Sequence[float], classes: int) -> None:
    """Raise unless there is one share per class and they sum to 1, or all are counts."""
    if len(shares) != classes:
        raise ConfigError(
            f"prior has {len(shares)} shares, the labels have {classes} classes;"
            " give one share per class, in the order of the sorted classes"
        )
    total = math.fsum(shares)
    are_counts = total > LARGEST_SHARE_SUM and all(share.is_integer() for share in shares)
    if not are_counts and abs(total - 1) > SUM_TOLERANCE:
        raise ConfigError(
            f"the shares in prior sum to {total:.6g}, not 1; divide each by the sum, or give whole-number counts"
        )


def _in_one_line(value: object) -> str:
    """The repr of a value; arrays and data frames have line breaks in theirs."""
    return " ".join(repr(value).split())
