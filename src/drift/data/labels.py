"""Labels as users write them, and as class indices: -1, None and NaN all mean "not labelled"."""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from drift.errors import LabelError

UNLABELED = -1
WRITTEN_BLANKS = {"", "-1", "nan", "NaN", "None", "<NA>"}  # what a missing label becomes in an array of strings
LIKELY_BLANKS = WRITTEN_BLANKS | {"N/A", "n/a", "NA", "null", "NULL", "?"}  # and what people write for one


@dataclass(frozen=True)
class Encoded:
    """The classes in sorted order, and for each row the index of its class or `UNLABELED`."""

    classes: np.ndarray
    codes: np.ndarray

    @property
    def labeled(self) -> NDArray[np.bool_]:
        return np.asarray(self.codes != UNLABELED)


def encode_labels(y: Any) -> Encoded:
    """Class indices for labels that are ints, strings or whole floats; -1, None and NaN are unlabelled."""
    y = label_column(y)
    blank = is_blank(y)
    known = y[~blank]
    if y.dtype == object and len(known):
        known = _one_kind(known)
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
    """Labels as an array of one dimension."""
    if isinstance(y, (list, tuple)) and len({isinstance(value, str) for value in y}) == 2:
        y = np.array(y, dtype=object)  # else numpy writes NaN and -1 as strings beside strings
    if hasattr(getattr(y, "dtype", None), "na_value"):
        y = y.astype(object)  # else pandas makes floats of whole numbers and booleans where some are missing
    return np.asarray(column_or_1d(y, warn=True))


def is_blank(y: np.ndarray) -> NDArray[np.bool_]:
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


def _one_kind(known: np.ndarray) -> np.ndarray:
    """An object array as the numbers or strings it holds; a mixture has no order and is refused."""
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
