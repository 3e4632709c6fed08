"""Checks of the parameters of `DriftClassifier`: scikit-learn's constraints, the prior and the hidden widths."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, Options, StrOptions
from torch import Tensor, nn

from drift.core import SoftStrategy
from drift.data.labels import Encoded
from drift.data.shares import prior_shares
from drift.errors import ConfigError
from drift.methods.shares import Shares, estimate_shares, held_shares, label_shares

if TYPE_CHECKING:
    from drift.estimator.classifier import DriftClassifier

AUTO = StrOptions({"auto"})
FAR_FROM_EQUAL = 0.25  # total variation between predicted and equal shares that is worth a warning
WIDEST = 100_000  # of a hidden layer

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
    "coupling": [StrOptions({"differentiable", "shared", "detached", "none"})],
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
        isinstance(width, (int, np.integer)) and 0 < width <= WIDEST for width in widths
    ):
        raise ConfigError(
            f"hidden={_in_one_line(hidden)}: give a list of positive widths up to {WIDEST:,}, such as (256,)"
        )


class Prior(NamedTuple):
    """Class shares that pseudo-labels are balanced towards, in class order, and what they are based on.

    held: classes whose share cannot be known, `(C,)`; None if there are none.
    """

    values: np.ndarray
    source: str
    held: np.ndarray | None = None


def make_strategy(
    classifier: "DriftClassifier", encoded: Encoded, predict: Callable[[], Tensor], unrecognised: np.ndarray | None
) -> tuple[SoftStrategy, Prior]:
    """Build the teacher's strategy, with the prior as one share per class in the order of the classes.

    Parameters
    ----------
    classifier : the estimator with its parameters.
    encoded : the labels given to `fit`.
    predict : returns the start's probabilities of unlabelled rows.
    unrecognised : classes whose labels the start does not recognise if it is not given them, `(n_classes,)`, if
        checked. If labels were drawn at random and few are of such a class, nothing shows how common it is, and it
        stays as the start predicts it.
    """
    classes, prior = len(encoded.classes), classifier.prior
    if not classifier.class_mass and isinstance(prior, str) and prior != "labels":
        return SoftStrategy(classifier.tau, False), Prior(np.full(classes, 1 / classes), "not used: class_mass is off")
    if isinstance(prior, str) and prior == "auto" and classifier.coupling != "none":
        predicted, labels = predict().numpy(), encoded.codes[encoded.labeled]
        estimated = len(predicted) > 0  # otherwise the labels are all there is
        shares = (
            estimate_shares(predicted, labels, weak=classifier.weak) if estimated else label_shares(labels, classes)
        )
        held = _unknown(unrecognised, shares, labels)
        if held is not None:
            shares = held_shares(shares, predicted, held)
            _warn_of_unknown(held, labels, encoded.classes)
        strategy = SoftStrategy(classifier.tau, True, shares.values)
        return strategy, Prior(np.array(shares.values), shares.source, held)
    given = given_shares(prior, encoded)
    strategy = SoftStrategy(classifier.tau, classifier.class_mass, given)
    if given is None:
        if classifier.class_mass and classifier.coupling != "none":
            _warn_of_skew(predict(), encoded.classes)
        return strategy, Prior(np.full(classes, 1 / classes), "equal shares")
    source = "counts of the labels" if isinstance(prior, str) else "the shares given as prior"
    return strategy, Prior(np.array(given) / sum(given), source)


def _unknown(unrecognised: np.ndarray | None, shares: Shares, labels: np.ndarray) -> np.ndarray | None:
    """Which classes have labels that are few and not recognised, if labels were drawn at random, `(C,)`."""
    if unrecognised is None or shares.labels_are != "random":
        return None
    classes = len(unrecognised)
    few = np.bincount(labels, minlength=classes) < len(labels) / classes
    return unrecognised & few if (unrecognised & few).any() else None


def _warn_of_skew(p: Tensor, classes: np.ndarray) -> None:
    """Warn if the predictions of the start `(n, C)` are far from the equal shares to which labels are balanced."""
    if not len(p):
        return
    shares = np.bincount(p.argmax(1).numpy(), minlength=len(classes)) / len(p)
    if np.abs(shares - 1 / len(classes)).sum() / 2 > FAR_FROM_EQUAL:
        most = int(shares.argmax())
        warnings.warn(
            f"pseudo-labels are balanced evenly over {len(classes)} classes, but {100 * shares[most]:.0f} % of the"
            f" unlabelled rows were predicted as {classes[most]}; use prior='auto' or give the class shares",
            UserWarning,
            stacklevel=2,
        )


def _warn_of_unknown(held: np.ndarray, labels: np.ndarray, classes: np.ndarray) -> None:
    """Warn of classes whose share cannot be known. labels: class indices of the labelled rows."""
    first = int(np.flatnonzero(held)[0])
    more = f" and {held.sum() - 1} more classes" if held.sum() > 1 else ""
    warnings.warn(
        f"{(labels == first).sum()} of {len(labels)} labels are of class {classes[first]}{more}, too few to know how"
        " common it is: self-training does not enlarge it; label more rows of it, or give the class shares as prior",
        UserWarning,
        stacklevel=2,
    )


def check_prior(prior: Any, class_mass: bool, encoded: Encoded) -> None:
    """Raise unless the prior fits the classes, before anything is trained."""
    SoftStrategy(1.0, class_mass, given_shares(prior, encoded))


def given_shares(prior: Any, encoded: Encoded) -> tuple[float, ...] | None:
    """Shares that do not have to be estimated, in class order; None for equal shares."""
    if isinstance(prior, str):
        prior = np.bincount(encoded.codes[encoded.labeled]).tolist() if prior == "labels" else None
    return None if prior is None else prior_shares(prior, encoded.classes.tolist())


def _in_one_line(value: object) -> str:
    """The repr of a value; arrays and data frames have line breaks in theirs."""
    return " ".join(repr(value).split())
