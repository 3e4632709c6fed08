"""Which layers of an encoder a fine-tuned run trains, by its settings."""

from typing import Any

import torch

from drift.errors import ConfigError
from drift.models.embedding import fingerprint
from drift.models.hidden import encoder_layers
from drift.models.upper_layers import LayerSplit
from drift.tasks.settings import EncoderSettings


def split_encoder(model: Any, settings: EncoderSettings, *, share: float) -> LayerSplit | None:
    """The model split below the layers to train; None if all are trained.

    model: a classifier of transformers. share: of its layers that is trained by default on a machine without an
    accelerator, counted from the last; with one, and if the model cannot be split, all are.
    """
    layers, wanted = encoder_layers(model), settings.train_layers
    depth = 0 if layers is None else len(layers)
    automatic = wanted == "auto"
    if automatic:
        wanted = "all" if torch.accelerator.is_available() or depth < 2 else max(1, round(depth * share))
    if wanted == "all" or wanted == depth:
        return None
    identity = f"{fingerprint(settings.name)} {settings.max_length} {depth}"
    try:
        return LayerSplit(model, int(wanted), name=settings.name, identity=identity, precision=settings.precision)
    except ConfigError:
        if automatic:
            return None
        raise
