"""Pretrained text encoders: how they are found and loaded, and classifiers built on them."""

import logging
import math
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from drift.core.randomness import random_state, set_random_state
from drift.errors import ConfigError, FileError, needed_for
from drift.models.catalogue import UNKNOWN_POOL, known_encoder
from drift.models.locating import encoder_path, hub_answers, located
from drift.settings import nearest

POOLS = ("mean", "cls", "layers")


def encoder_pool(name: str) -> str:
    """How an encoder turns a text into one vector if the settings do not say: as its entry in the table does."""
    if name == "default":
        return located(name).encoder.pool  # of the smaller encoder, if that is used instead
    encoder = known_encoder(name)
    return UNKNOWN_POOL if encoder is None else encoder.pool


def shelved_encoders() -> list[str]:
    """Return the names of the encoders in `$DRIFT_MODELS`."""
    shelf = os.environ.get("DRIFT_MODELS")
    return sorted(config.parent.name for config in Path(shelf).glob("*/config.json")) if shelf else []


def load_encoder(name: str) -> tuple[Any, Any]:
    """Return the encoder, in float32 and evaluation mode, and its tokenizer. name: see `encoder_path`."""
    return _load(name, "AutoModel", seed=0)  # a missing pooler is initialised at random, but nothing uses it


def load_tokenizer(name: str) -> tuple[Any, Any]:
    """Return the configuration of an encoder in a folder, and its tokenizer. name: see `encoder_path`."""
    path = encoder_path(name)
    with needed_for("text encoders"):
        import transformers
    try:
        with quietly(), without_bars(transformers):
            config, tokenizer = _config_and_tokenizer(transformers, path, local_files_only=True)
    except Exception as error:
        raise FileError(_unreadable(name, path, error)) from error
    _check_padding(name, tokenizer)
    return config, tokenizer


def load_classifier(
    name: str, classes: Sequence[str], *, seed: int, dropout: float | None = None
) -> tuple[nn.Module, Any]:
    """Return an encoder with a classification head, for fine-tuning, and its tokenizer.

    It is a sequence classifier of transformers whose configuration has the class names:
    `transformers.pipeline("text-classification", folder)` opens what `save_pretrained` writes.

    name: see `encoder_path`.
    classes: names of the classes.
    seed: seed for weights that the encoder does not have.
    dropout: replaces all dropout rates of the encoder. Default: its own.
    """
    return _load(
        name,
        "AutoModelForSequenceClassification",
        seed=seed,
        dropout=dropout,
        id2label=dict(enumerate(classes)),
        label2id={label: index for index, label in enumerate(classes)},
        problem_type="single_label_classification",  # the encoder's config may have another
    )


def load_tagger(
    name: str, tags: Sequence[str], *, seed: int, dropout: float | None = None, layers: int | None = None
) -> tuple[nn.Module, Any]:
    """Return an encoder with a token classification head, and its tokenizer.

    name, seed, dropout: as for `load_classifier`.
    tags: names of the tags.
    layers: number of layers to keep, from the first; the upper layers of some encoders represent texts better than
        words. Default: all.
    """
    return _load(
        name,
        "AutoModelForTokenClassification",
        seed=seed,
        dropout=dropout,
        layers=layers,
        id2label=dict(enumerate(tags)),
        label2id={tag: index for index, tag in enumerate(tags)},
    )


def encoder_part(name: str, share: float) -> int:
    """Return how many of an encoder's layers this share is, rounded up; at least one."""
    with needed_for("text encoders"):
        import transformers

    path = encoder_path(name)
    try:
        config = transformers.AutoConfig.from_pretrained(path)
    except Exception as error:
        raise FileError(_unreadable(name, path, error)) from error
    return max(1, math.ceil(int(getattr(config, "num_hidden_layers", 1)) * share - 1e-9))


class FrozenClassifier(nn.Module):
    """Token ids to logits through a fixed encoder: head((pooled - mean) / scale).

    encoder: a module of transformers.
    mean, scale: statistics of the embeddings that the head was trained on, `(D,)`.
    head: a module from vectors to logits.
    pool: as for `text_vectors`.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, encoder: nn.Module, mean: Tensor, scale: Tensor, head: nn.Module, *, pool: str = "mean") -> None:
        super().__init__()
        self.encoder, self.head, self.pool = encoder, head, pool
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.classify(text_vectors(self.encoder, input_ids, attention_mask, self.pool))

    def classify(self, vectors: Tensor) -> Tensor:
        """Logits of pooled vectors, `(N, C)`."""
        logits: Tensor = self.head((vectors - self.mean) / self.scale)
        return logits


def text_vectors(encoder: nn.Module, input_ids: Tensor, attention_mask: Tensor, pool: str) -> Tensor:
    """Return one vector per text, `(N, D)`.

    encoder: a module of transformers.
    input_ids, attention_mask: `(N, T)`.
    pool: "mean", over tokens without padding; "cls", the first token; "layers", the means of the last and the
        third-last layer, concatenated, `(N, 2D)`: the third-last layer keeps information that the last one discards.
    """
    inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
    return pooled(encoder(**inputs, output_hidden_states=pool == "layers"), attention_mask, pool)


def pooled(output: Any, attention_mask: Tensor, pool: str) -> Tensor:
    """One vector per text, `(N, D)`, from what an encoder gives out; see `text_vectors`."""
    hidden: Tensor = output.last_hidden_state  # (N, T, D)
    if pool == "cls":
        return hidden[:, 0]
    real = attention_mask.unsqueeze(2).to(hidden.dtype)
    layers = [hidden]
    if pool == "layers":
        layers.append(output.hidden_states[-min(3, len(output.hidden_states))])  # embeddings, then one per layer
    return torch.cat([(layer * real).sum(1) / real.sum(1) for layer in layers], 1)


def _load(
    name: str, auto_class: str, *, seed: int, dropout: float | None = None, layers: int | None = None, **settings: Any
) -> tuple[Any, Any]:
    path = encoder_path(name)
    with needed_for("text encoders"):
        import transformers
    local = Path(path).is_dir() or not hub_answers()  # a cached model opens without the hub
    try:
        with quietly(), without_bars(transformers), drawing_from(seed):
            config, tokenizer = _config_and_tokenizer(transformers, path, local_files_only=local, **settings)
            if layers is not None:
                _keep_layers(config, layers, name)
            if dropout is not None:
                for key in [key for key in config.to_dict() if "dropout" in key]:
                    setattr(config, key, dropout)
            model, info = getattr(transformers, auto_class).from_pretrained(
                path,
                config=config,
                dtype=torch.float32,
                ignore_mismatched_sizes=True,
                output_loading_info=True,
                local_files_only=local,
            )
    except ConfigError:
        raise
    except Exception as error:  # a damaged file may raise anything, depending on the library that reads it
        raise FileError(_unreadable(name, path, error)) from error
    _check_weights(name, model, info)
    _check_padding(name, tokenizer)
    return model.eval(), tokenizer


def _config_and_tokenizer(transformers: Any, path: str, **settings: Any) -> tuple[Any, Any]:
    config = transformers.AutoConfig.from_pretrained(path, **settings)
    only = {"local_files_only": settings["local_files_only"]}
    return config, transformers.AutoTokenizer.from_pretrained(path, **only)


def _check_padding(name: str, tokenizer: Any) -> None:
    if tokenizer.pad_token_id is None:
        raise ConfigError(f"{name} has no padding token, so its texts cannot be put in batches; use another encoder")


def _keep_layers(config: Any, layers: int, name: str) -> None:
    depth = getattr(config, "num_hidden_layers", 0)
    if not 1 <= layers <= depth:
        raise ConfigError(f"model.layers is {layers}; {name} has {depth}")
    config.num_hidden_layers = layers


def _unreadable(name: str, path: str, error: Exception) -> str:
    reason = str(error).strip().split("\n")[0] or type(error).__name__
    if Path(path).is_dir():
        return f"{name} cannot be read as a text encoder ({reason}); write it again with save_pretrained"
    return (
        f"{name} is not a local folder and could not be loaded from the model hub ({reason}); give a folder or one that"
        f" `drift models` lists{nearest(name, ['default', *shelved_encoders()])}"
    )


def _check_weights(name: str, model: Any, info: dict[str, Any]) -> None:
    """Refuse missing encoder weights: transformers initialises them at random without an error. A head may be new."""
    body = f"{model.base_model_prefix}." if model.base_model is not model else ""
    absent = [*info["missing_keys"], *(key for key, *_ in info["mismatched_keys"])]
    if missing := sorted(key for key in absent if key.startswith(body) and "pooler" not in key):
        raise FileError(f"{name} lacks {len(missing)} of the weights its config.json asks for, such as {missing[0]}")


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress warnings, and log messages below errors."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


@contextmanager
def without_bars(transformers: Any) -> Iterator[None]:
    """Suppress the progress bars of transformers, which is passed because importing it is slow."""
    bars = transformers.utils.logging
    enabled = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            bars.enable_progress_bar()


@contextmanager
def drawing_from(seed: int) -> Iterator[None]:
    """Seed torch's global generator, from which transformers draws, and restore it afterwards."""
    before = random_state()
    torch.manual_seed(seed)
    try:
        yield
    finally:
        set_random_state(before)
