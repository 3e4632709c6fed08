"""Labels as users write them, and as class indices: -1, None and NaN mean "unlabelled". Also label budgets."""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from drift.errors import LabelError
from drift.settings import listed

UNLABELED = -1
NEARLY_ALL = 0.9  # share of labels that are no classes, from which they are taken for another column
WRITTEN_BLANKS = {"", "-1", "nan", "NaN", "None", "<NA>"}  # forms of a missing label in an array of strings
LIKELY_BLANKS = WRITTEN_BLANKS | {"N/A", "n/a", "NA", "null", "NULL", "?"}  # and in files that people write


@dataclass(frozen=True)
class Encoded:
    """Encoded labels. classes: the labels in sorted order. codes: the class index of each row, or `UNLABELED`."""

    classes: np.ndarray
    codes: np.ndarray

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """Whether each row has a label."""
        return np.asarray(self.codes != UNLABELED)


def encode_labels(y: Any) -> Encoded:
    """Encode labels as class indices. y: ints, strings or whole floats; -1, None and NaN are unlabelled."""
    y = label_column(y)
    blank = is_blank(y)
    known = y[~blank]
    if y.dtype == object and len(known):
        known = _plain_array(known)
    if len(known):
        check_classification_targets(known)
    classes, codes = np.unique(known, return_inverse=True)
    if written := sorted(WRITTEN_BLANKS.intersection(classes.tolist())):
        raise LabelError(f"{written[0]!r} is among the labels as a string; write None for rows without a label")
    _check_classes(classes, blank, y)
    encoded = np.full(len(y), UNLABELED, dtype=np.int64)
    encoded[~blank] = codes
    return Encoded(classes, encoded)


def label_column(y: Any) -> np.ndarray:
    """Labels as a one-dimensional array."""
    if isinstance(y, (list, tuple)) and len({isinstance(value, str) for value in y}) == 2:
        y = np.array(y, dtype=object)  # otherwise numpy turns NaN and -1 into strings
    if hasattr(getattr(y, "dtype", None), "na_value"):
        y = y.astype(object)  # otherwise pandas turns integers and booleans with missing values into floats
    return np.asarray(column_or_1d(y, warn=True))


def is_blank(y: np.ndarray) -> NDArray[np.bool_]:
    """Whether each label is missing."""
    if y.dtype.kind == "f":
        assert_all_finite(y[~np.isnan(y)], input_name="y")
        return np.asarray(np.isnan(y) | (y == UNLABELED))
    if y.dtype.kind in "iu":
        return np.asarray(y == UNLABELED)
    if y.dtype.kind == "O":
        return np.array([_blank_value(value) for value in y], dtype=bool)
    return np.zeros(len(y), dtype=bool)


def _blank_value(value: Any) -> bool:
    if value is None or value is getattr(sys.modules.get("pandas"), "NA", None):  # pd.NA cannot be compared
        return True
    return not isinstance(value, str) and bool(value != value or value == UNLABELED)


def _plain_array(known: np.ndarray) -> np.ndarray:
    """An object array as an array of numbers or of strings. A mixture has no order and is an error."""
    if all(isinstance(value, str) for value in known):
        return known.astype(str)
    if any(isinstance(value, str) for value in known):
        number = next(value for value in known if not isinstance(value, str))
        raise LabelError(f"labels mix strings with other values such as {number!r}; write all of them as strings")
    return np.array(known.tolist())


def _check_classes(classes: np.ndarray, blank: np.ndarray, y: np.ndarray) -> None:
    if len(classes) >= 2:
        return
    if not len(classes):
        raise LabelError(f"none of the {len(y)} rows has a label (0 classes); label some rows of at least two classes")
    if y.dtype.kind in "iuf" and (y == UNLABELED).any():
        raise LabelError(
            f"y holds -1 and one class, {classes[0]}: -1 means unlabelled, so there is one class only;"
            " if -1 is a class of yours, rename it (for example to 0)"
        )
    raise LabelError(f"every labelled row is of one class, {classes.tolist()[0]!r}; a classifier needs at least two")


@dataclass(frozen=True)
class KnownLabels:
    """Labels as indices into the known classes.

    codes: `UNLABELED` for None. unknown: labels that are no class; their codes follow those of the classes, so that no
    prediction equals them. notes: a warning about them.
    """

    codes: np.ndarray
    unknown: list[str]
    notes: list[str]


def known_labels(
    labels: Sequence[str | None],
    classes: Sequence[str],
    name: str,
    *,
    refuse: bool = True,
    unit: str = "rows",
    neutral: str | None = None,
) -> KnownLabels:
    """Encode labels by known classes. A label that is no class is refused, or counted: it can only be scored as wrong.

    labels: one per row, None for none. name: of their table, for messages. refuse: raise LabelError for such a label;
    otherwise only if nearly all are no classes, as then it is probably the wrong column. unit: what a label is of, in
    the plural. neutral: a class that every table has, such as O; it is left out when counting.
    """
    code_of = {label: code for code, label in enumerate(classes)}
    unknown = Counter(label for label in labels if label is not None and label not in code_of)
    given = sum(label is not None and label != neutral for label in labels)
    count = sum(unknown.values())
    if unknown and (refuse or count >= NEARLY_ALL * given):
        row, label = next((row, label) for row, label in enumerate(labels, 1) if label in unknown)
        raise LabelError(_unknown_message(label, classes, f"{name}, {unit[:-1]} {row}", count, given, unit))
    code_of |= {label: code for code, label in enumerate(sorted(unknown), len(classes))}
    codes = np.array([UNLABELED if label is None else code_of[label] for label in labels], dtype=np.int64)
    return KnownLabels(codes, sorted(unknown), _unknown_notes(unknown, classes, name, given, unit))


def normalized_label(label: str) -> str:
    """A label in lower case and without ".0": spreadsheets write 1 as 1.0 if other cells of the column are blank."""
    return label.casefold().removesuffix(".0")


def _alike(label: str, classes: Sequence[str]) -> str | None:
    """A class that differs from a label only in how it is written."""
    return next((known for known in classes if normalized_label(known) == normalized_label(label)), None)


def _unknown_message(label: str | None, classes: Sequence[str], where: str, count: int, given: int, unit: str) -> str:
    near = _alike(str(label), classes)
    if near is not None:
        hint = f"if it is {near!r}, write both alike"
    elif count >= NEARLY_ALL * given:
        hint = f"{count:,} of {given:,} {unit} have such labels: name the right column with --label"
    else:
        hint = "add training rows or a rule with this label, or take the row out"
    return f"{where}: label {label!r} is not among the training labels ({listed(classes)}); {hint}"


def _unknown_notes(unknown: Counter[str], classes: Sequence[str], name: str, given: int, unit: str) -> list[str]:
    if not unknown:
        return []
    named = [
        f"{label!r}" + ("" if (near := _alike(label, classes)) is None else f" (if it is {near!r}, write both alike)")
        for label in sorted(unknown)
    ]
    return [
        f"warning: {sum(unknown.values()):,} of {given:,} labelled {unit} of {name} have labels that training lacks"
        f" ({listed(named)}); they count as errors"
    ]


def sample_per_class(labels: np.ndarray, n: int, *, seed: int) -> np.ndarray:
    """Row numbers of `n` random rows of each class, sorted.

    labels: `(rows,)`, none missing. n: rows per class; LabelError if a class has fewer. seed: of the random choice.
    """
    generator = np.random.default_rng(seed)
    chosen = []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        if len(rows) < n:
            raise LabelError(
                f"class {label!r} has {len(rows)} rows, {n} were asked for; ask for fewer labels per class"
            )
        chosen.append(generator.permutation(rows)[:n])
    return np.sort(np.concatenate(chosen))


@dataclass(frozen=True)
class LabelBudget:
    """Number of gold labels that a run used. Weak labels do not count, and neither do test labels, scored once.

    train: labels to train on. dev: labels for model selection.
    """

    train: int = 0
    dev: int = 0

    @property
    def total(self) -> int:
        return self.train + self.dev

    def __str__(self) -> str:
        return f"{self.total:,} gold labels ({self.train:,} to train, {self.dev:,} dev)"
