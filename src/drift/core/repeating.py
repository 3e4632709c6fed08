"""A forward pass that can be repeated later: the same random numbers, buffers and precision."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from drift.core.randomness import random_state, set_random_state
from drift.core.teacher import undisturbed_buffers


class Repeater:
    """Notes the state of a module before a forward pass, so that the pass can be repeated.

    Which parameters the module has, and whether it has buffers, is looked up once: to walk through all submodules costs
    more than to note the state.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.parameters = list(module.parameters())
        self.has_buffers = next(module.buffers(), None) is not None

    def before(self, run: Callable[[], Tensor]) -> "Repeatable":
        """Note the state before a forward pass. run: does it and returns its output."""
        return Repeatable(self, run)

    def versions(self) -> list[int]:
        """A number per parameter that changes with its values."""
        return [parameter._version for parameter in self.parameters]


class Repeatable:
    """A forward pass of a module. Each call repeats it, as long as the weights have not changed."""

    def __init__(self, repeater: Repeater, run: Callable[[], Tensor]) -> None:
        self.repeater, self.run = repeater, run
        module = repeater.module
        self._random = random_state()
        # Modules with a random stream of their own count their draws in a buffer. In evaluation no buffer changes.
        buffers = module.named_buffers() if repeater.has_buffers and module.training else ()
        self._buffers = {name: buffer.detach().clone() for name, buffer in buffers}
        device = repeater.parameters[0].device.type
        self._autocast = (device, torch.get_autocast_dtype(device), torch.is_autocast_enabled(device))
        self._weights = repeater.versions()

    @property
    def unchanged(self) -> bool:
        """Whether the weights are still those of the first run."""
        return self._weights == self.repeater.versions()

    def __call__(self) -> Tensor:
        set_random_state(self._random)
        for name, buffer in self.repeater.module.named_buffers():
            if name in self._buffers:
                buffer.data.copy_(self._buffers[name])
        device, dtype, enabled = self._autocast
        with torch.autocast(device, dtype, enabled):
            return self.run()


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
