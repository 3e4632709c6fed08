"""Many copies of one architecture in a single module, so that all trials of an experiment train at once.

A small model spends its time on the overhead of calls and not on arithmetic, so a hundred models in one call cost
little more than one. Parameters keep their names and get a leading dimension of trials; an elementwise optimiser (SGD,
Adam, AdamW) then trains each trial independently.
"""

import copy
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from drift.errors import ConfigError
from drift.models.dropout import Dropout

# Elementwise layers: they work on stacked inputs unchanged.
ELEMENTWISE = (nn.Tanh, nn.ReLU, nn.GELU, nn.Dropout, Dropout, nn.Identity)


class StackedLinear(nn.Module):
    """y_s = x_s W_sᵀ + b_s for every trial s. weight: `(trials, out, in)`; bias: `(trials, out)`."""

    weight: nn.Parameter
    bias: nn.Parameter

    def forward(self, x: Tensor) -> Tensor:
        # W xᵀ and not x Wᵀ: the gradient of W is then a product with x as it lies in memory, several times faster.
        return torch.baddbmm(self.bias.unsqueeze(2), self.weight, x.mT).mT


class Stacked(nn.Module):
    """Stacked trials: inputs `(trials, N, ...)` to logits `(trials, N, C)`, each trial with its own weights.

    A sequence of linear and elementwise layers runs as batched products, any other module through `torch.func.vmap`.

    modules: one per trial, all of the same architecture. decay_scale: see `HasDecayScale`.
    """

    def __init__(self, modules: Sequence[nn.Module], *, decay_scale: float = 1.0) -> None:
        super().__init__()
        self.decay_scale = decay_scale
        if not modules:
            raise ConfigError("Stacked needs at least one module; got none")
        parameters, buffers = stack_module_state(list(modules))
        self.trials = len(modules)
        self.single = [copy.deepcopy(modules[0]).requires_grad_(False)]  # in a list: not a submodule
        self.base = copy.deepcopy(modules[0])
        self.batched = _is_plain(self.base)
        if self.batched:
            for name, layer in self.base.named_children():
                if isinstance(layer, nn.Linear):
                    self.base.set_submodule(name, StackedLinear().train(layer.training))
        for name, value in parameters.items():
            trainable = modules[0].get_parameter(name).requires_grad
            _replace(self.base, name, nn.Parameter(value.detach(), requires_grad=trainable))
        for name, value in buffers.items():
            _replace(self.base, name, value)

    def forward(self, *inputs: Tensor) -> Tensor:
        if self.batched:
            logits: Tensor = self.base(*inputs)
            return logits
        state = _slots(self.base)

        def one(state: dict[str, Tensor], *inputs: Tensor) -> Tensor:
            logits: Tensor = functional_call(self.base, state, inputs, tie_weights=False)
            return logits

        logits = vmap(one, randomness="different")(state, *inputs)
        return logits

    def trial(self, index: int) -> nn.Module:
        """Return one trial as an ordinary module, with a copy of its weights."""
        return self._module(lambda value: value[index].clone())

    def average(self) -> nn.Module:
        """Return a module with the mean weights of all trials. For linear modules its logits are the mean logits."""
        return self._module(lambda value: value.mean(0) if value.is_floating_point() else value[0].clone())

    def linear(self) -> dict[str, Tensor] | None:
        """Copies of `weight` (trials, out, in) and `bias` (trials, out), if there is one layer with parameters."""
        layers = [layer for layer in self.base.modules() if isinstance(layer, StackedLinear)] if self.batched else []
        if len(layers) != 1:
            return None
        return {name: value.detach().cpu().clone() for name, value in layers[0].named_parameters()}

    def _module(self, one_of: Callable[[Tensor], Tensor]) -> nn.Module:
        module = copy.deepcopy(self.single[0]).train(self.training)
        for name, value in (*self.base.named_parameters(), *self.base.named_buffers()):
            one = one_of(value.detach())
            _replace(module, name, nn.Parameter(one, value.requires_grad) if isinstance(value, nn.Parameter) else one)
        return module


def _is_plain(module: nn.Module) -> bool:
    """Return whether the module is a sequence of known layers that share no parameter.

    Types must match exactly, because a subclass may compute something else.
    """
    return (
        type(module) is nn.Sequential
        and all(type(layer) in ELEMENTWISE or (type(layer) is nn.Linear and layer.bias is not None) for layer in module)
        and len(list(module.named_parameters())) == len(list(module.named_parameters(remove_duplicate=False)))
    )


def _slots(module: nn.Module) -> dict[str, Tensor]:
    """Return the tensor of every slot, by name: a layer that is used twice has one slot, a tied parameter several.

    `functional_call` would fill a slot with two names twice, and would not restore its original tensor afterwards.
    """
    return {
        f"{name}.{key}" if name else key: tensor
        for name, layer in module.named_modules()
        for key, tensor in (*layer._parameters.items(), *layer._buffers.items())
        if tensor is not None
    }


def _replace(module: nn.Module, name: str, value: Tensor) -> None:
    """Replace the tensor of that name by `value`, wherever that tensor is used."""
    *path, leaf = name.split(".")
    owner = module.get_submodule(".".join(path))
    registry = "_parameters" if isinstance(value, nn.Parameter) else "_buffers"
    old = getattr(owner, registry).get(leaf)
    getattr(owner, registry)[leaf] = value
    for other in module.modules() if old is not None else ():
        slots = getattr(other, registry)
        slots.update({key: value for key, tensor in slots.items() if tensor is old})
