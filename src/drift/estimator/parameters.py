"""Checks of the parameters of `DriftClassifier`: scikit-learn's constraints, the prior and the hidden widths."""

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, Options, StrOptions
from torch import nn

from drift.core import SoftStrategy
from drift.data.labels import Encoded
from drift.data.shares import prior_shares
from drift.errors import ConfigError

CONSTRAINTS: dict[str, list[Any]] = {
    "module": [nn.Module, callable, None],
    "hidden": ["array-like"],  # `check_widths` checks the values
    "dropout": [Interval(Real, 0, 1, closed="left")],
    "input_dropout": [Interval(Real, 0, 1, closed="left")],
    "alpha": [Interval(Real, 0, 1, closed="both")],
    "tau": [Interval(Real, 0, None, closed="neither")],
    "class_mass": ["boolean"],
    "prior": [StrOptions({"labels"}), Mapping, "array-like", None],  # `make_strategy` checks the values
    "coupling": [StrOptions({"differentiable", "detached", "none"})],
    "weak": ["boolean"],
    "unlabeled_weight": [Interval(Real, 0, None, closed="left")],
    "initial_steps": [Interval(Integral, 0, None, closed="left")],
    "steps": [Interval(Integral, 0, None, closed="left")],
    "batch_size": [Interval(Integral, 1, None, closed="left")],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "weight_decay": [Interval(Real, 0, None, closed="left")],
    "standardize": ["boolean"],
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


def make_strategy(tau: float, class_mass: bool, prior: Any, encoded: Encoded) -> SoftStrategy:
    """Build the teacher's strategy, with the prior as one share per class in the order of the classes.

    Parameters
    ----------
    tau, class_mass : as in `DriftClassifier`.
    prior : the parameter as the user gave it.
    encoded : the labels given to `fit`.
    """
    if isinstance(prior, str):  # "labels"
        prior = np.bincount(encoded.codes[encoded.labeled]).tolist()
    shares = None if prior is None else prior_shares(prior, encoded.classes.tolist())
    return SoftStrategy(tau, class_mass, shares)


def _in_one_line(value: object) -> str:
    """The repr of a value; arrays and data frames have line breaks in theirs."""
    return " ".join(repr(value).split())
