"""Stacked trials equal single trials, whether computed as batched products or through vmap."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from drift.errors import ConfigError
from drift.models.mlp import mlp
from drift.models.stacked import Stacked

TRIALS, ROWS, FEATURES, CLASSES = 3, 7, 4, 3


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(FEATURES, FEATURES)
        self.head = nn.Linear(FEATURES, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x + torch.tanh(self.inner(x)))


class Centred(nn.Sequential):
    """Looks like a plain sequence, but its forward mixes the rows of a batch."""

    def forward(self, x: Tensor) -> Tensor:
        logits = super().forward(x)
        return logits - logits.mean(0)


class Doubled(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


def used_twice() -> nn.Module:
    layer = nn.Linear(FEATURES, FEATURES)
    return nn.Sequential(layer, nn.Tanh(), layer)


def tied() -> nn.Module:
    model = nn.Sequential(nn.Linear(FEATURES, FEATURES), nn.Tanh(), nn.Linear(FEATURES, FEATURES))
    model[2].weight = model[0].weight
    return model


BATCHED: dict[str, Callable[[], nn.Module]] = {
    "no hidden layer": lambda: mlp(FEATURES, CLASSES, ()),
    "tanh": lambda: mlp(FEATURES, CLASSES, (5,)),
    "relu, deep": lambda: mlp(FEATURES, CLASSES, (5, 6), "relu"),
    "gelu": lambda: mlp(FEATURES, CLASSES, (5,), "gelu"),
    "dropout of nothing": lambda: nn.Sequential(nn.Dropout(0.0), nn.Linear(FEATURES, CLASSES), nn.Identity()),
}
MAPPED: dict[str, Callable[[], nn.Module]] = {
    "layer norm": lambda: nn.Sequential(nn.Linear(FEATURES, 5), nn.LayerNorm(5), nn.Linear(5, CLASSES)),
    "batch norm": lambda: nn.Sequential(nn.Linear(FEATURES, 5), nn.BatchNorm1d(5), nn.Linear(5, CLASSES)),
    "residual": Residual,
    "no bias": lambda: nn.Sequential(nn.Linear(FEATURES, 5, bias=False), nn.Tanh(), nn.Linear(5, CLASSES)),
    "one layer": lambda: nn.Linear(FEATURES, CLASSES),
    "nested": lambda: nn.Sequential(nn.Sequential(nn.Linear(FEATURES, 5), nn.Tanh()), nn.Linear(5, CLASSES)),
    "softmax inside": lambda: nn.Sequential(nn.Linear(FEATURES, 5), nn.Softmax(1), nn.Linear(5, CLASSES)),
    "a sequence with its own forward": lambda: Centred(nn.Linear(FEATURES, 5), nn.Tanh(), nn.Linear(5, CLASSES)),
    "a linear layer with its own forward": lambda: nn.Sequential(Doubled(FEATURES, 5), nn.Linear(5, CLASSES)),
    "one layer twice": used_twice,
    "tied weights": tied,
}
ANY = {**BATCHED, **MAPPED}


def trials(name: str, count: int = TRIALS) -> list[nn.Module]:
    torch.manual_seed(0)
    return [ANY[name]().double() for _ in range(count)]


def inputs(rows: int = ROWS) -> Tensor:
    return torch.randn(TRIALS, rows, FEATURES, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", ANY)
def test_logits_and_gradients_are_those_of_each_trial_alone(name: str) -> None:
    modules, x = trials(name), inputs()
    stacked = Stacked(modules)
    logits = stacked(x)
    alone = torch.stack([module(part) for module, part in zip(modules, x, strict=True)])
    assert torch.allclose(logits, alone, rtol=1e-12, atol=1e-12)

    logits.square().sum().backward()
    alone.square().sum().backward()
    for index, module in enumerate(modules):
        for key, parameter in module.named_parameters():
            gradient = stacked.base.get_parameter(key).grad[index]
            assert torch.allclose(gradient, parameter.grad, rtol=1e-10, atol=1e-12), key


def test_plain_sequences_run_as_batched_products_and_others_do_not() -> None:
    assert {name for name in ANY if Stacked(trials(name)).batched} == set(BATCHED)


@pytest.mark.parametrize("name", ANY)
def test_a_returned_trial_is_the_original_module(name: str) -> None:
    modules = trials(name)
    stacked = Stacked(modules)
    for index, module in enumerate(modules):
        back = stacked.trial(index)
        assert type(back) is type(module)
        assert back.state_dict().keys() == module.state_dict().keys()
        assert all(torch.equal(value, module.state_dict()[key]) for key, value in back.state_dict().items())
        assert torch.equal(back.eval()(inputs()[index]), module.eval()(inputs()[index]))


def test_a_returned_trial_has_its_own_weights() -> None:
    stacked = Stacked(trials("tanh"))
    before = copy.deepcopy(stacked.state_dict())
    back = stacked.trial(1)
    with torch.no_grad():
        for parameter in back.parameters():
            parameter.add_(1.0)
    assert all(torch.equal(value, before[key]) for key, value in stacked.state_dict().items())


@pytest.mark.parametrize("name", ["tanh", "residual"])
def test_the_modules_that_went_in_are_left_alone(name: str) -> None:
    modules, x = trials(name), inputs()
    before = [copy.deepcopy(module.state_dict()) for module in modules]
    stacked = Stacked(modules)
    stacked(x).sum().backward()
    torch.optim.SGD(stacked.parameters(), lr=1.0).step()
    for module, state in zip(modules, before, strict=True):
        assert all(torch.equal(value, state[key]) for key, value in module.state_dict().items())
        assert all(parameter.grad is None and parameter.requires_grad for parameter in module.parameters())


@pytest.mark.parametrize("name", ANY)
def test_parameters_keep_their_names_and_gain_a_dimension(name: str) -> None:
    modules = trials(name)
    stacked = Stacked(modules)
    shapes = {key: (TRIALS, *value.shape) for key, value in modules[0].named_parameters()}
    assert {key: tuple(value.shape) for key, value in stacked.base.named_parameters()} == shapes
    assert {key: tuple(value.shape) for key, value in stacked.named_parameters()} == {
        f"base.{key}": shape for key, shape in shapes.items()
    }


@pytest.mark.parametrize("name", ["relu, deep", "layer norm"])
def test_frozen_stays_frozen(name: str) -> None:
    modules, x = trials(name), inputs()
    for module in modules:
        module[0].requires_grad_(False)
    stacked = Stacked(modules)
    trainable = {key for key, value in modules[0].named_parameters() if value.requires_grad}
    assert {key for key, value in stacked.base.named_parameters() if value.requires_grad} == trainable
    stacked(x).sum().backward()
    assert {key for key, value in stacked.base.named_parameters() if value.grad is not None} == trainable
    back = stacked.trial(0)
    assert {key for key, value in back.named_parameters() if value.requires_grad} == trainable


@pytest.mark.parametrize("name", ["tanh", "layer norm", "residual"])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_an_optimiser_trains_each_trial_as_if_alone(name: str, kind: type[torch.optim.Optimizer]) -> None:
    modules, x = trials(name), inputs()
    stacked = Stacked(modules)
    optimizer, alone = kind(stacked.parameters(), lr=0.05), [kind(m.parameters(), lr=0.05) for m in modules]
    for _ in range(5):
        optimizer.zero_grad()
        stacked(x).square().mean((1, 2)).sum().backward()
        optimizer.step()
        for module, single, part in zip(modules, alone, x, strict=True):
            single.zero_grad()
            module(part).square().mean().backward()
            single.step()
    for index, module in enumerate(modules):
        state = stacked.trial(index).state_dict()
        # Adam divides by the root of a square, which magnifies rounding errors of a gradient close to zero.
        assert all(torch.allclose(state[key], v, rtol=1e-7, atol=1e-8) for key, v in module.state_dict().items())


def test_running_statistics_are_kept_per_trial() -> None:
    modules, x = trials("batch norm"), inputs()
    stacked = Stacked(modules)
    for _ in range(3):
        stacked(x)
        for module, part in zip(modules, x, strict=True):
            module(part)
    for index, module in enumerate(modules):
        back = stacked.trial(index)
        assert torch.allclose(back[1].running_mean, module[1].running_mean)
        assert torch.allclose(back[1].running_var, module[1].running_var)
        assert back[1].num_batches_tracked == 3


@pytest.mark.parametrize("tail", [nn.Identity, nn.Flatten], ids=["batched", "mapped"])
def test_dropout_differs_between_trials_and_stops_in_evaluation(tail: type[nn.Module]) -> None:
    modules = [nn.Sequential(nn.Dropout(0.5), tail(), nn.Linear(20, 20)) for _ in range(TRIALS)]
    for module in modules:  # the identity, so that the logits show what was dropped
        nn.init.eye_(module[2].weight)
        nn.init.zeros_(module[2].bias)
    ones, stacked = torch.ones(TRIALS, 50, 20), Stacked(modules)
    torch.manual_seed(0)
    assert stacked.batched == (tail is nn.Identity)
    kept = stacked(ones) > 0
    assert 0.4 < kept.double().mean() < 0.6
    agreement = [(kept[i] == kept[j]).double().mean() for i, j in ((0, 1), (0, 2), (1, 2))]
    assert all(0.4 < share < 0.6 for share in agreement)  # as two coins agree
    assert torch.equal(stacked.eval()(ones), ones)


def test_training_mode_reaches_the_layers_and_a_returned_trial() -> None:
    stacked = Stacked([mlp(FEATURES, CLASSES, dropout=0.5) for _ in range(TRIALS)])
    for mode in (False, True):
        stacked.train(mode)
        assert all(module.training is mode for module in stacked.modules())
        assert all(module.training is mode for module in stacked.trial(0).modules())


def test_a_copy_is_whole_and_independent() -> None:
    stacked, x = Stacked(trials("tanh")), inputs()
    twin = copy.deepcopy(stacked)
    assert torch.equal(stacked(x), twin(x))
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.zero_()
    assert stacked(x).abs().sum() > 0
    assert twin(x).abs().sum() == 0


def test_no_module_at_all_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one module"):
        Stacked([])
