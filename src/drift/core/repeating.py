"""A forward pass that can be repeated later: the same random numbers, buffers and precision."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from drift.core.randomness import random_state, set_random_state
from drift.core.teacher import undisturbed_buffers


class Repeatable:
    """A forward pass of a module. Create it before the first run; each call repeats that run, as long as the weights
    have not changed.

    module: what is run. run: returns its output.
    """

    def __init__(self, module: nn.Module, run: Callable[[], Tensor]) -> None:
        self.module, self.run = module, run
        self._random = random_state()
        # Modules with a random stream of their own count their draws in a buffer. In evaluation no buffer changes.
        buffers = module.named_buffers() if module.training else ()
        self._buffers = {name: buffer.detach().clone() for name, buffer in buffers}
        device = next(module.parameters()).device.type
        self._autocast = (device, torch.get_autocast_dtype(device), torch.is_autocast_enabled(device))
        self._weights = _versions(module)

    @property
    def unchanged(self) -> bool:
        """Whether the weights are still those of the first run."""
        return self._weights == _versions(self.module)

    def __call__(self) -> Tensor:
        set_random_state(self._random)
        for name, buffer in self.module.named_buffers():
            if name in self._buffers:
                buffer.data.copy_(self._buffers[name])
        device, dtype, enabled = self._autocast
        with torch.autocast(device, dtype, enabled):
            return self.run()


def _versions(module: nn.Module) -> tuple[int, ...]:
    return tuple(parameter._version for parameter in module.parameters())


@contextmanager
def undisturbed(module: nn.Module) -> Iterator[None]:
    """Restore the random state, the module's buffers and its gradients after the block; in it, it has none."""
    random, gradients = random_state(), [(parameter, parameter.grad) for parameter in module.parameters()]
    for parameter, _ in gradients:
        parameter.grad = None
    try:
        with undisturbed_buffers(module):
            yield
    finally:
        set_random_state(random)
        for parameter, gradient in gradients:
            parameter.grad = gradient
