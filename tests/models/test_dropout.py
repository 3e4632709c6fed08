"""The faster dropout is dropout: rate, scale, gradient, random stream, and the identity in evaluation."""

import pytest
import torch

from drift.models.dropout import Dropout
from drift.models.stacked import Stacked
from drift.tasks.text.model import linear_head


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_a_share_p_is_dropped_and_the_rest_rescaled(p: float) -> None:
    torch.manual_seed(0)
    x = torch.rand(300, 401) + 1
    y = Dropout(p)(x)
    kept = y != 0
    assert torch.allclose(y[kept], x[kept] / (1 - p), rtol=1e-6)
    expected = (1 - p) * x.numel()
    assert abs(int(kept.sum()) - expected) < 5 * (expected * p) ** 0.5  # standard deviations
    by_row, by_column = kept.double().mean(1), kept.double().mean(0)
    for means, count in ((by_row, 401), (by_column, 300)):  # as far apart as independent draws would be
        assert float(means.std()) == pytest.approx((p * (1 - p) / count) ** 0.5, rel=0.25)


def test_neighbours_fall_out_independently() -> None:
    torch.manual_seed(0)
    kept = (Dropout(0.5)(torch.ones(200_000)) != 0).double()
    for step in (1, 2, 3, 4, 64):
        both = float((kept[step:] * kept[:-step]).mean())
        assert both == pytest.approx(0.25, abs=5 * (0.25 * 0.75 / 200_000) ** 0.5)


def test_the_gradient_is_the_mask() -> None:
    x = torch.randn(50, 7, dtype=torch.float64, requires_grad=True)
    y = Dropout(0.3)(x)
    y.sum().backward()
    assert torch.equal(x.grad, torch.where(y != 0, torch.tensor(1 / 0.7, dtype=torch.float64), 0))
    assert y.dtype == torch.float64


def test_the_same_seed_draws_the_same_and_the_next_call_draws_another() -> None:
    x, layer = torch.ones(64, 33), Dropout(0.5)
    torch.manual_seed(3)
    first, second = layer(x), layer(x)
    torch.manual_seed(3)
    assert torch.equal(layer(x), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("p", [0.0, 0.4, 1.0])
def test_in_evaluation_and_at_the_ends_it_is_torchs(p: float) -> None:
    x = torch.randn(5, 6)
    assert torch.equal(Dropout(p).eval()(x), x)
    if p != 0.4:
        assert torch.equal(Dropout(p)(x), torch.nn.Dropout(p)(x))


def test_stacked_heads_drop_each_their_own_in_one_product() -> None:
    heads = Stacked([linear_head(40, 3, 0.5) for _ in range(4)])
    assert heads.batched
    with torch.no_grad():
        heads.base.get_submodule("0").weight.fill_(1.0)
    out = heads(torch.ones(4, 6, 40))
    assert len({tuple(trial.flatten().tolist()) for trial in out}) == 4
