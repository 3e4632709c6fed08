"""Standardisation of features and conversion of rows to tensors, for dense arrays and sparse CSR matrices."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.utils import gen_batches
from sklearn.utils.sparsefuncs import min_max_axis
from torch import Tensor

from drift.errors import DataError

ROWS_PER_PIECE = 8192  # converted at once: a float64 copy of all rows could be several times as large as X
LARGEST_RATIO = 10.0  # of a feature's deviation to the median, if all features have one unit
VALUES_PER_PIECE = 2**22  # of a sparse matrix: 32 MB in float64


def row_slices(X: Any) -> Iterator[slice]:
    """Slices that cover the rows of `X`, each small enough for a dense float64 copy."""
    rows = ROWS_PER_PIECE
    if issparse(X):
        rows = max(1, min(rows, VALUES_PER_PIECE // X.shape[1]))
    yield from gen_batches(X.shape[0], rows)


def summed_duplicates(X: Any) -> Any:
    """A CSR matrix that stores each entry once; `X` itself is not changed. Dense arrays are returned as they are."""
    if issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def feature_scaling(X: Any, standardize: bool | str) -> tuple[np.ndarray, np.ndarray]:
    """Mean and divisor of each feature, in float64; zeros and ones if `standardize` is false.

    The divisor is the standard deviation of the feature. If `standardize` is "auto" and the features seem to have one
    unit, it is the same for all: their root mean square deviation. Differences in spread then remain, because a feature
    that varies more often says more about the class. For a sparse matrix the mean is 0, so that zero entries stay 0;
    the deviation is the same as for a dense array.
    """
    if standardize is False:
        return np.zeros(X.shape[1]), np.ones(X.shape[1])
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        mean, deviation = _sparse_moments(X) if issparse(X) else _dense_moments(X)
        low, high = min_max_axis(X, axis=0) if issparse(X) else (X.min(axis=0), X.max(axis=0))
        # The deviation of a constant feature is rounding error: dividing by it would magnify differences in new rows.
        varies = high - low > 10 * np.finfo(np.float64).eps * np.maximum(-low, high)
    unusable = ~np.isfinite(mean) | ~np.isfinite(deviation) | (varies & (deviation == 0))
    if unusable.any():
        feature = int(np.flatnonzero(unusable)[0])
        raise DataError(f"feature {feature} is too large or too small to compute with; rescale it")
    scale = np.where(varies, deviation, 1.0)
    if standardize == "auto" and varies.any() and (issparse(X) or _one_unit(deviation[varies])):
        scale = np.full(len(mean), np.sqrt(np.square(deviation[varies] / deviation.max()).mean()) * deviation.max())
    return np.zeros_like(mean) if issparse(X) else mean, scale


def _one_unit(deviations: np.ndarray) -> bool:
    """Whether features seem to be measured in one unit: no deviation is far above the median."""
    return bool(deviations.max() <= LARGEST_RATIO * np.median(deviations))


def _dense_moments(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    pieces = [X[rows] for rows in row_slices(X)]
    mean = sum(piece.sum(axis=0, dtype=np.float64) for piece in pieces) / len(X)
    deviation = np.sqrt(sum(np.square(piece - mean).sum(axis=0) for piece in pieces) / len(X))
    return mean, deviation


def _sparse_moments(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column, with the entries that are not stored counted as 0."""
    rows, features = X.shape
    parts = list(gen_batches(X.nnz, VALUES_PER_PIECE))

    def column_sums(part: slice, values: np.ndarray) -> np.ndarray:
        return np.bincount(X.indices[part], weights=values, minlength=features)

    start = np.zeros(features)
    mean = sum((column_sums(part, X.data[part]) for part in parts), start) / rows
    stored = np.bincount(X.indices[: X.nnz], minlength=features)
    squares = sum((column_sums(part, np.square(X.data[part] - mean[X.indices[part]])) for part in parts), start)
    return mean, np.sqrt((squares + (rows - stored) * np.square(mean)) / rows)


def scaled_tensor(X: Any, rows: slice, mean: np.ndarray, scale: np.ndarray, like: Tensor) -> Tensor:
    """Rows of `X`, dense and scaled, with the dtype and on the device of `like`."""
    piece = X[rows].toarray() if issparse(X) else X[rows]
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = piece - mean
        scaled /= scale
    tensor = torch.from_numpy(scaled).to(like.device, like.dtype)
    if not tensor.isfinite().all():
        row, feature = (int(index) for index in (~tensor.isfinite()).nonzero()[0])
        raise _too_large(X, row + rows.start, feature)
    return tensor


def training_rows(X: Any, mean: np.ndarray, scale: np.ndarray, like: Tensor) -> "Tensor | SparseRows":
    """All rows, scaled, to be indexed by batches of row numbers: a tensor for dense `X`, else `SparseRows`."""
    if issparse(X):
        return SparseRows(X, scale, like)
    tensor = like.new_empty(X.shape)
    for rows in row_slices(X):
        tensor[rows] = scaled_tensor(X, rows, mean, scale, like)
    return tensor


class SparseRows:
    """Scaled rows of a sparse matrix; indexing makes only the selected rows dense.

    Parameters
    ----------
    X : CSR matrix of shape (n_samples, n_features).
    scale : divisor of each feature.
    like : tensor whose dtype and device the rows get.
    """

    def __init__(self, X: Any, scale: np.ndarray, like: Tensor) -> None:
        self.device, self.dtype = like.device, like.dtype
        data = np.empty(X.nnz, np.float32 if like.dtype == torch.float32 else np.float64)
        for part in gen_batches(X.nnz, VALUES_PER_PIECE):
            with np.errstate(over="ignore"):
                data[part] = X.data[part] / scale[X.indices[part]]
            finite = torch.from_numpy(data[part]).to(like.dtype).isfinite()
            if not finite.all():
                entry = part.start + int((~finite).nonzero()[0])
                row = int(np.searchsorted(X.indptr, entry, side="right")) - 1
                raise _too_large(X, row, int(X.indices[entry]))
        self.matrix = type(X)((data, X.indices[: X.nnz], X.indptr), shape=X.shape)

    def __getitem__(self, rows: Tensor) -> Tensor:
        """The rows with these numbers, of shape (len(rows), n_features)."""
        return torch.from_numpy(self.matrix[rows.numpy()].toarray()).to(self.device, self.dtype)


def _too_large(X: Any, row: int, feature: int) -> DataError:
    return DataError(
        f"row {row}, feature {feature}: {X[row, feature]!s} is too large to compute with; rescale the feature"
    )
