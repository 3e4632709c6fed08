"""Scaling of node features: chosen by what the features are, and the same for another graph."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from drift.models.feature_scaling import FeatureScaling
from drift.models.propagation import Dense, Sparse, row_normalized


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


WORDS = (torch.rand(40, 30, generator=torch.Generator().manual_seed(1)) < 0.1).float()
UNITS = draw(40, 12) * 10.0 ** torch.linspace(-3, 3, 12) + 5


@pytest.mark.parametrize(
    ("features", "way"),
    [
        (WORDS.to_sparse_csr(), "rows"),
        ((WORDS * 3).to_sparse_csr(), "rows"),
        ((WORDS * -1).to_sparse_csr(), "together"),  # sums of positive and negative features may be near 0
        (draw(40, 12), "together"),
        (draw(40, 12).abs(), "together"),
        (UNITS, "columns"),
        (torch.ones(5, 2), "together"),
    ],
)
def test_the_way_follows_from_the_features(features: torch.Tensor, way: str) -> None:
    scaling = FeatureScaling.fit(features)
    assert scaling.way == way
    assert torch.isfinite(scaling.apply(features).to_dense()).all()


@pytest.mark.parametrize(
    ("features", "way"), [(WORDS.to_sparse_csr(), "rows"), (UNITS.abs(), "rows"), (draw(9, 3), "none")]
)
def test_the_original_rule_is_by_sign_alone(features: torch.Tensor, way: str) -> None:
    assert FeatureScaling.fit(features, "original") == FeatureScaling(way)  # type: ignore[arg-type]


def test_columns_are_those_of_scikit_learn_and_constant_ones_are_0() -> None:
    x = torch.cat([UNITS, torch.full((40, 1), 0.1), torch.zeros(40, 1)], 1)
    scaled = FeatureScaling.fit(x, "columns").apply(x)
    np.testing.assert_allclose(scaled[:, :12], StandardScaler().fit_transform(x.double())[:, :12], rtol=2e-3, atol=1e-4)
    np.testing.assert_allclose(scaled[:, 12:], 0, atol=1e-6)


def test_together_keeps_the_ratios_of_columns() -> None:
    x = draw(40, 6) * torch.tensor([4.0, 3, 2, 1, 1, 1]) + 7
    scaled = FeatureScaling.fit(x, "together").apply(x)
    assert scaled.var(0, correction=0).mean() == pytest.approx(1, rel=1e-5)
    np.testing.assert_allclose(scaled.std(0) / scaled.std(0)[0], x.std(0) / x.std(0)[0], rtol=1e-4)


@given(st.integers(0, 100))
def test_sparse_features_do_not_depend_on_the_units_of_their_columns(seed: int) -> None:
    factors = 10 ** (4 * torch.rand(30, generator=torch.Generator().manual_seed(seed)) - 2)
    plain, scaled = WORDS.to_sparse_csr(), (WORDS * factors).to_sparse_csr()
    one, other = (FeatureScaling.fit(x).apply(x).to_dense() for x in (plain, scaled))
    np.testing.assert_allclose(one, other, rtol=1e-5)
    assert torch.equal(one, row_normalized(plain).to_dense())  # words of equal units are as in the original works


def test_another_graph_is_scaled_like_the_first() -> None:
    scaling = FeatureScaling.fit(UNITS)
    again = FeatureScaling(scaling.way, **scaling.state_dict())
    assert torch.equal(again.apply(UNITS[:3]), scaling.apply(UNITS)[:3])
    words = (WORDS * torch.arange(1.0, 31)).to_sparse_csr()
    rows = FeatureScaling.fit(words)
    np.testing.assert_allclose(rows.apply(words.to_dense(), dense=True), rows.apply(words).to_dense(), rtol=1e-6)


def test_a_dense_matrix_multiplies_like_a_sparse_one() -> None:
    x, weight = draw(7, 5), draw(3, 5, 2, seed=2).requires_grad_()
    values = draw(3, 35, seed=3)
    products = []
    for matrix in (Dense(x), Sparse.of(x)):
        assert torch.equal(matrix.values, x.flatten())
        total = (matrix @ weight) + 2 * matrix.product(weight, values)
        (gradient,) = torch.autograd.grad(total.square().sum(), weight)
        products.append((total.detach(), gradient))
    for dense, sparse in zip(*products, strict=True):
        torch.testing.assert_close(dense, sparse)
