"""`DriftClassifier` on sparse matrices: the same results as on dense arrays, without a dense copy of all rows."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.preprocessing import StandardScaler
from torch import nn

from drift.errors import DataError
from drift.estimator import scaling
from tests.estimator.short import short

DENSE, Y = make_blobs(120, n_features=6, centers=3, cluster_std=2.0, random_state=0)
DENSE[np.random.default_rng(0).random(DENSE.shape) < 0.6] = 0.0
FEW = np.where(np.arange(len(Y)) < 30, Y, -1)
FORMATS = ["csr", "csc", "coo", "bsr", "lil", "dok"]


@pytest.mark.parametrize("settings", [{}, {"weak": True}, {"coupling": "none"}, {"batch_size": 8}], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_unscaled_sparse_rows_give_the_same_model_as_dense_rows(settings: dict[str, Any], dtype: Any) -> None:
    X = DENSE.astype(dtype)
    dense = short(standardize=False, **settings).fit(X, FEW)
    model = short(standardize=False, **settings).fit(sparse.csr_matrix(X), FEW)
    for rows in (X, sparse.csr_matrix(X)):
        assert np.allclose(model.predict_proba(rows), dense.predict_proba(rows), rtol=1e-6, atol=1e-7)
        assert np.array_equal(model.predict(rows), dense.predict(X))
        assert model.score(rows, Y) == dense.score(X, Y)
    assert np.array_equal(model.transduction_, dense.transduction_)
    assert model.n_iter_ == dense.n_iter_


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("name", FORMATS)
def test_every_sparse_format_gives_the_same_model(container: Any, name: str) -> None:
    expected = short().fit(sparse.csr_matrix(DENSE), FEW).predict_proba(DENSE)
    X = container(DENSE).asformat(name)
    assert np.array_equal(short().fit(X, FEW).predict_proba(X), expected)
    assert X.format == name


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_rows_are_scaled_without_centring(dtype: Any) -> None:
    X = DENSE.astype(dtype)
    X[:, 5] = 0.0
    X[:, 4] = 0.1  # constant: its deviation is rounding error
    model = short().fit(sparse.csr_matrix(X), FEW)
    scaler = StandardScaler(with_mean=False).fit(X.astype(np.float64))
    assert np.array_equal(model.mean_, np.zeros(6))
    assert np.allclose(model.scale_, scaler.scale_, rtol=1e-12)
    scaled = scaler.transform(X)
    unscaled = short(standardize=False).fit(scaled, FEW)
    assert np.allclose(model.predict_proba(X), unscaled.predict_proba(scaled), atol=1e-4)


def test_a_model_of_dense_rows_predicts_sparse_rows_alike() -> None:
    model = short().fit(DENSE, FEW)
    assert model.mean_.any()
    assert np.array_equal(model.predict_proba(sparse.csr_matrix(DENSE)), model.predict_proba(DENSE))


def test_stored_zeros_and_duplicate_entries_change_nothing() -> None:
    entries = sparse.coo_matrix(DENSE)
    halves = sparse.csr_matrix(DENSE.shape)
    halves.data = np.repeat(entries.data / 2, 2)  # each entry is stored as two halves
    halves.indices, halves.indptr = np.repeat(entries.col, 2), np.append(0, np.cumsum(2 * (DENSE != 0).sum(1)))
    stored_zeros = sparse.csr_matrix(np.ones_like(DENSE))
    stored_zeros.data = DENSE.ravel().copy()
    expected = short().fit(sparse.csr_matrix(DENSE), FEW)
    for X in (halves, stored_zeros):
        stored = X.nnz
        model = short().fit(X, FEW)
        assert np.allclose(model.scale_, expected.scale_, rtol=1e-12)
        assert np.allclose(model.predict_proba(X), expected.predict_proba(DENSE), atol=1e-5)
        assert X.nnz == stored  # the caller's matrix is as it was


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_sparse_rows_get_the_dtype_of_the_module(dtype: torch.dtype) -> None:
    module = nn.Linear(6, 3).to(dtype)
    dense = short(module=module, standardize=False).fit(DENSE, FEW)
    model = short(module=module, standardize=False).fit(sparse.csr_matrix(DENSE), FEW)
    assert np.array_equal(model.predict_proba(DENSE), dense.predict_proba(DENSE))


def test_a_sparse_value_too_large_to_compute_with_is_named() -> None:
    X = sparse.lil_matrix(DENSE)
    X[70, 1] = 1e300
    model = short(standardize=False)
    with pytest.raises(DataError, match=r"row 70, feature 1: 1e\+300 is too large"):
        model.fit(X, FEW)
    with pytest.raises(DataError, match=r"row 70, feature 1: 1e\+300 is too large"):
        model.fit(DENSE, FEW).predict(X)
    with pytest.raises(DataError, match="feature 1 is too large or too small"):
        short().fit(X, FEW)


def test_work_in_pieces_gives_the_same_model(monkeypatch: pytest.MonkeyPatch) -> None:
    X = sparse.csr_matrix(DENSE)
    whole = short().fit(X, FEW)
    monkeypatch.setattr(scaling, "VALUES_PER_PIECE", 50)
    pieces = short().fit(X, FEW)
    assert [piece.stop - piece.start for piece in scaling.row_slices(X)] == [8] * 15
    assert np.allclose(pieces.scale_, whole.scale_, rtol=1e-12)
    assert np.allclose(pieces.predict_proba(X), whole.predict_proba(X), atol=1e-6)


def test_a_wide_sparse_matrix_is_never_dense_as_a_whole() -> None:
    X = sparse.random(10_000, 4_000, density=0.001, format="csr", random_state=0, dtype=np.float32)  # 160 MB if dense
    y = np.where(np.arange(X.shape[0]) < 100, np.arange(X.shape[0]) % 2, -1)
    model = short(initial_steps=2, steps=2)
    peaks = []
    tracemalloc.start()
    for call in (lambda: model.fit(X, y), lambda: model.predict(X)):
        tracemalloc.reset_peak()
        call()
        peaks.append(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
    assert max(peaks) < 2 * X.shape[0] * X.shape[1]  # half of the dense float32 matrix


def test_sparse_rows_with_missing_values_are_refused() -> None:
    X = sparse.csr_matrix(DENSE)
    X.data[3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        short().fit(X, FEW)
