"""Devices for encoders that are applied outside the training loop."""

import itertools

import torch
from torch import nn


def best_device() -> torch.device:
    """Return the accelerator if there is one, else the CPU."""
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return accelerator or torch.device("cpu")


def device_of(module: nn.Module) -> torch.device:
    """Return the device of a module's first parameter or buffer; the CPU if it has neither."""
    tensor = next(itertools.chain(module.parameters(), module.buffers()), None)
    return torch.device("cpu") if tensor is None else tensor.device
