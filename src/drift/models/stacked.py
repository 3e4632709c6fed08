"""Many copies of one architecture as a single module: every trial of an experiment trains at once.

A small model spends its time on the cost of calls, not on arithmetic, so a hundred of them in one call cost little
more than one. Parameters keep their names and gain a leading dimension of trials; an optimiser that works element by
element (SGD, Adam, AdamW) then trains each trial as if it were alone.
"""

import copy
from collections.abc import Sequence

from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from drift.errors import ConfigError


class Stacked(nn.Module):
    """Trials side by side: inputs `(trials, N, ...)` to logits `(trials, N, C)`, each trial with weights of its own."""

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        super().__init__()
        if not modules:
            raise ConfigError("Stacked needs at least one module; got none")
        parameters, buffers = stack_module_state(list(modules))
        self.trials = len(modules)
        self.base = copy.deepcopy(modules[0])
        for name, value in parameters.items():
            trainable = self.base.get_parameter(name).requires_grad
            _replace(self.base, name, nn.Parameter(value.detach(), requires_grad=trainable))
        for name, value in buffers.items():
            _replace(self.base, name, value)

    def forward(self, *inputs: Tensor) -> Tensor:
        state = {**dict(self.base.named_parameters()), **dict(self.base.named_buffers())}

        def one(state: dict[str, Tensor], *inputs: Tensor) -> Tensor:
            logits: Tensor = functional_call(self.base, state, inputs)
            return logits

        logits: Tensor = vmap(one, randomness="different")(state, *inputs)
        return logits

    def trial(self, index: int) -> nn.Module:
        """One trial as an ordinary module, with weights of its own."""
        module = copy.deepcopy(self.base)
        for name, value in (*self.base.named_parameters(), *self.base.named_buffers()):
            one = value.detach()[index].clone()
            _replace(module, name, nn.Parameter(one) if isinstance(value, nn.Parameter) else one)
        return module


def _replace(module: nn.Module, name: str, value: Tensor) -> None:
    *path, leaf = name.split(".")
    owner = module.get_submodule(".".join(path))
    if isinstance(value, nn.Parameter):
        owner._parameters[leaf] = value
    else:
        owner._buffers[leaf] = value
