"""The perceptron: the order of its layers."""

import pytest
import torch
from torch import nn

from drift.models.mlp import mlp


def kinds(module: nn.Sequential) -> list[str]:
    return [type(layer).__name__ for layer in module]


def test_layers_in_their_order() -> None:
    assert kinds(mlp(4, 3, (8, 5), "relu")) == ["Linear", "ReLU", "Linear", "ReLU", "Linear"]
    dropped = mlp(4, 3, (8,), "tanh", input_dropout=0.2, dropout=0.5)
    assert kinds(dropped) == ["Dropout", "Linear", "Tanh", "Dropout", "Linear"]
    assert [layer.p for layer in dropped if isinstance(layer, nn.Dropout)] == [0.2, 0.5]


def test_no_hidden_layer_is_logistic_regression() -> None:
    model = mlp(4, 3, ())
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    assert kinds(model) == ["Linear"]
    assert torch.equal(model(x), nn.functional.linear(x, model[0].weight, model[0].bias))


@pytest.mark.parametrize("hidden", [(), (7,), (7, 5)])
def test_widths_join(hidden: tuple[int, ...]) -> None:
    shapes = [tuple(layer.weight.shape) for layer in mlp(4, 3, hidden) if isinstance(layer, nn.Linear)]
    assert shapes == [(b, a) for a, b in zip((4, *hidden), (*hidden, 3), strict=True)]
