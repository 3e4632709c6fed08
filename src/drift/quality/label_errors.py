"""Which labels are probably wrong: confident learning, from probabilities of models that did not see the labels.

A row counts as confidently of class j if its probability of j is at least what rows labelled j have on average:

    t_j = mean of p_ij over rows i with label j
    Q[y, j] = number of rows labelled y whose confident class is j   (the most likely one, if there are several)

Q, with each row scaled to the number of labels of its class, estimates how many labels of class y are truly of class
j. The method is that of Northcutt, Jiang and Chuang (2021), "Confident Learning: Estimating Uncertainty in Dataset
Labels"; `benchmarks/check.py` compares this implementation with theirs, cleanlab.
"""

from dataclasses import dataclass

import numpy as np

from drift.errors import LabelError, ShapeError


@dataclass(frozen=True)
class LabelErrors:
    """Suspected label errors.

    rows: their row numbers, the most suspicious first. suggested: the class index that is likelier, for each.
    margin: by how much it is likelier than the label, for each. joint: estimated number of labels `(C, C)`, by the
    class in the table and the true class.
    """

    rows: np.ndarray
    suggested: np.ndarray
    margin: np.ndarray
    joint: np.ndarray

    @property
    def estimated(self) -> float:
        """Estimated number of wrong labels, found or not."""
        return float(self.joint.sum() - np.trace(self.joint))


def find_label_errors(codes: np.ndarray, probabilities: np.ndarray) -> LabelErrors:
    """Rows whose label is probably wrong.

    Of the rows labelled y, as many as Q estimates to be of class j are suspected: those with the largest margin
    p_j - p_y. A row whose label is its most likely class is never suspected.

    codes: class indices of all rows, `(n,)`, none missing. probabilities: `(n, C)`, of models that were not trained on
    the row's own label.
    """
    codes = np.asarray(codes)
    if probabilities.ndim != 2 or len(probabilities) != len(codes):
        raise ShapeError(f"probabilities are {probabilities.shape}, there are {len(codes)} labels; give (n, C)")
    if codes.size and not 0 <= codes.min() <= codes.max() < probabilities.shape[1]:
        raise LabelError(
            f"labels are {codes.min()} to {codes.max()}; give class indices below {probabilities.shape[1]}"
        )
    joint = confident_joint(codes, probabilities)
    classes = probabilities.shape[1]
    margins = probabilities - probabilities[np.arange(len(codes)), codes][:, None]
    suspected = np.zeros(len(codes), dtype=bool)
    for label in range(classes):
        rows = np.flatnonzero(codes == label)
        for other in range(classes):
            count = min(round(joint[label, other]), len(rows)) if other != label else 0
            if count:
                suspected[rows[np.argsort(-margins[rows, other], kind="stable")[:count]]] = True
    best = probabilities.argmax(1)
    rows = np.flatnonzero(suspected & (best != codes))
    margin = margins[rows, best[rows]]
    order = np.argsort(-margin, kind="stable")
    return LabelErrors(rows[order], best[rows[order]], margin[order], joint)


def confident_joint(codes: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Estimated number of rows by label and true class, `(C, C)`; each row of it sums to the number of such labels."""
    classes = probabilities.shape[1]
    counts = np.bincount(codes, minlength=classes)
    own = probabilities[np.arange(len(codes)), codes]
    # A class without labels has no threshold that a row could reach.
    thresholds = np.where(counts, np.bincount(codes, own, minlength=classes) / np.maximum(counts, 1), np.inf)
    confident = probabilities >= thresholds - 1e-6  # the mean of equal numbers may be rounded above them
    chosen = np.where(confident, probabilities, -1.0).argmax(1)
    sure = confident.any(1)
    joint = np.zeros((classes, classes))
    np.add.at(joint, (codes[sure], chosen[sure]), 1)
    seen = joint.sum(1)
    np.fill_diagonal(joint, np.where(seen == 0, 1, joint.diagonal()))  # no confident row: no evidence of errors
    return np.asarray(joint / joint.sum(1, keepdims=True) * counts[:, None])
