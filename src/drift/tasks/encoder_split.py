"""Which layers of an encoder a fine-tuned run trains, by its settings."""

from typing import Any

import torch

from drift.errors import ConfigError
from drift.models.embedding import fingerprint
from drift.models.hidden import encoder_layers
from drift.models.upper_layers import LayerSplit
from drift.tasks.settings import EncoderSettings

PART = 3  # without an accelerator, one layer of so many is trained


def split_encoder(model: Any, settings: EncoderSettings) -> LayerSplit | None:
    """The model split below the layers to train; None if all are trained. model: a classifier of transformers.

    By default all layers are trained on an accelerator, and otherwise the upper third of those of an encoder that can
    be split.
    """
    layers, wanted = encoder_layers(model), settings.train_layers
    depth = 0 if layers is None else len(layers)
    automatic = wanted == "auto"
    if automatic:
        wanted = "all" if torch.accelerator.is_available() or depth < 2 else max(1, round(depth / PART))
    if wanted == "all" or wanted == depth:
        return None
    identity = f"{fingerprint(settings.name)} {settings.max_length} {getattr(settings, 'layers', None)}"
    try:
        return LayerSplit(model, int(wanted), name=settings.name, identity=identity)
    except ConfigError:
        if automatic:
            return None
        raise
