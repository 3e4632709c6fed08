"""Multi-layer perceptron: the default student for feature vectors, and the two-layer network of two moons."""

from collections.abc import Sequence

from torch import nn

ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU, "gelu": nn.GELU}


def mlp(
    features: int,
    classes: int,
    hidden: Sequence[int] = (50,),
    activation: str = "tanh",
    *,
    input_dropout: float = 0.0,
    dropout: float = 0.0,
) -> nn.Sequential:
    """Build linear layers `features -> hidden... -> classes` with activations, and dropout if any, between them.

    features: width of the input. classes: number of logits. hidden: width of each hidden layer. activation: tanh, relu
    or gelu. input_dropout: dropout rate on the input. dropout: dropout rate after each hidden layer.
    """
    layers: list[nn.Module] = [nn.Dropout(input_dropout)] if input_dropout else []
    width = features
    for size in hidden:
        layers += [nn.Linear(width, size), ACTIVATIONS[activation]()]
        if dropout:
            layers.append(nn.Dropout(dropout))
        width = size
    return nn.Sequential(*layers, nn.Linear(width, classes))
