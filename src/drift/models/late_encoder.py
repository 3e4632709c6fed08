"""An encoder whose weights are read when they are first needed: not at all, if all vectors are in the cache."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from drift.models.encoders import load_encoder, load_tokenizer
from drift.models.locating import encoder_path


class LateEncoder(nn.Module):
    """Takes the place of an encoder: reading weights, and the code of its architecture, takes seconds.

    name: as for `load_encoder`. config: of the encoder.
    """

    place: Tensor

    def __init__(self, name: str, config: Any) -> None:
        super().__init__()
        self.name, self.config = name, config
        self.register_buffer("place", torch.empty(0), persistent=False)  # on the device that this module is moved to
        self._read: list[nn.Module] = []  # a list, so that it is no submodule: this module has no weights of its own

    def read(self) -> nn.Module:
        """The encoder itself, in float32 and evaluation mode."""
        if not self._read:
            self._read.append(load_encoder(self.name)[0])
        (encoder,) = self._read
        return encoder.to(self.place.device)

    def forward(self, *args: Any, **inputs: Any) -> Any:
        return self.read()(*args, **inputs)


def late_encoder(name: str) -> tuple[nn.Module, Any]:
    """As `load_encoder`, but of an encoder in a folder only configuration and tokenizer are read at once."""
    path = encoder_path(name)
    if not Path(path).is_dir():
        return load_encoder(name)
    config, tokenizer = load_tokenizer(name)
    return LateEncoder(path, config), tokenizer


def read_encoder(encoder: nn.Module) -> nn.Module:
    """The encoder itself, where it may be a late one."""
    return encoder.read() if isinstance(encoder, LateEncoder) else encoder
