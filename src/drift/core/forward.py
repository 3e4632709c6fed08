"""From a module and its inputs to log-probabilities, with checks that report misuse in plain words."""

import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from drift.core.softmax import log_softmax
from drift.errors import ShapeError

Inputs = Any
"""What a module is called with: a tensor, a tuple of positional arguments, or a mapping of keyword arguments."""


SUMS_TO_ONE = 1e-3  # half precision included


def log_probabilities(
    module: nn.Module, inputs: Inputs, *, stacked: bool = False, warn_of_probabilities: bool = False
) -> Tensor:
    """log f(x, θ): `(N, C)`, or `(trials, N, C)` from a stacked module. The dtype is float32 or wider.

    module: returns logits, or an object with `.logits`. inputs: see `Inputs`. stacked: whether the first dimension of
    the logits is trials. warn_of_probabilities: warn if the output looks like probabilities.
    """
    logits = _checked_logits(_call(module, inputs), module, stacked)
    if warn_of_probabilities and _are_probabilities(logits.detach()):
        warnings.warn(
            f"{type(module).__name__} seems to return probabilities: all rows are between 0 and 1 and sum to 1; return"
            " logits (leave out the softmax), or their logarithm",
            stacklevel=2,
        )
    # Half precision overflows in log p / τ; the sums over the batch need float32 too.
    return log_softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)))


def _call(module: nn.Module, inputs: Inputs) -> object:
    try:
        if isinstance(inputs, Mapping):
            output = module(**inputs)
        elif isinstance(inputs, (tuple, list)):
            output = module(*inputs)
        else:
            output = module(inputs)
    except torch.OutOfMemoryError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise ShapeError(f"{type(module).__name__} could not be called with {_described(inputs)}: {error}") from error
    if not torch.is_grad_enabled():
        _reshard(module)
    return getattr(output, "logits", output)


def _reshard(module: nn.Module) -> None:
    """Free the parameters that `fully_shard` gathered for a forward without a backward.

    Otherwise it keeps them, and the next forward uses them although the weights have changed.
    """
    if hasattr(module, "reshard"):
        for part in module.modules():
            if callable(reshard := getattr(part, "reshard", None)):
                reshard()


def _described(inputs: Inputs) -> str:
    if isinstance(inputs, Tensor):
        return f"a tensor {tuple(inputs.shape)} of {inputs.dtype}"
    if isinstance(inputs, Mapping):
        return "{" + ", ".join(f"{key}: {_described(value)}" for key, value in inputs.items()) + "}"
    if isinstance(inputs, (tuple, list)):
        return f"{len(inputs)} arguments (" + ", ".join(map(_described, inputs)) + ")"
    return f"a {type(inputs).__name__}"


def _checked_logits(logits: object, module: nn.Module, stacked: bool) -> Tensor:
    name = type(module).__name__
    if not isinstance(logits, Tensor):
        raise ShapeError(
            f"{name} returned {type(logits).__name__}; return a tensor of logits, or an object with .logits"
        )
    dims = 3 if stacked else 2
    if logits.dim() != dims:
        hint = "flatten it to one row per example (for tokens: one row per real token)"
        if logits.dim() == 3:
            hint += ", or pass stacked=True if the first dimension is independent trials"
        raise ShapeError(f"{name} returned logits of shape {tuple(logits.shape)}, {dims} dimensions are needed; {hint}")
    rows, classes = logits.shape[-2:]
    if classes < 2:
        raise ShapeError(
            f"{name} returned logits for {classes} class; log C = 0 leaves no weights: use at least 2 classes"
        )
    if rows == 0:
        raise ShapeError(f"{name} was given an empty batch; skip it, or pass None for no unlabelled data")
    return logits


def _are_probabilities(logits: Tensor) -> bool:
    """Whether no value is negative and every row sums to 1, which logits do by accident only."""
    sums = logits.float().sum(-1)
    return bool((logits >= 0).all() & ((sums - 1).abs() < SUMS_TO_ONE).all())


def joined(rows: list[Tensor]) -> Tensor:
    """Concatenate batches `(..., N, C)` along N."""
    return rows[0] if len(rows) == 1 else torch.cat(rows, dim=-2)
