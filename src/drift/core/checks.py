"""What a user gives the game, checked where it comes in: each fault says what was seen and what to do."""

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import torch
from torch import Tensor

from drift.errors import ConfigError, LabelError, ShapeError


def is_number(value: object) -> bool:
    """A real, finite number."""
    return isinstance(value, numbers.Real) and math.isfinite(value)


def check_alpha(value: float) -> float:
    if not (is_number(value) and 0.0 <= value <= 1.0):
        raise ConfigError(
            f"alpha={value!r} is not a number in [0, 1]; it weighs the old teacher, the paper uses 0.9 to 0.99"
        )
    return float(value)


def check_choice(name: str, value: object, choices: Any) -> None:
    """One of the strings of a `Literal`."""
    if value not in get_args(choices):
        raise ConfigError(f"{name}={value!r} is not one of {', '.join(map(repr, get_args(choices)))}")


def check_kind(name: str, value: object, kind: type, hint: str) -> None:
    if not isinstance(value, kind):
        seen = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
        raise ConfigError(f"{name} is {seen}; {hint}")


def check_micro_batches(batches: Sequence[Any]) -> None:
    """Keyword arguments of `loss`, the same kinds of rows in all of them."""
    if not batches:
        raise ShapeError("accumulate() was given no micro-batch; pass at least one")
    kinds = []
    for place, batch in enumerate(batches):
        if not isinstance(batch, Mapping) or not set(batch) <= {"labeled", "unlabeled"}:
            seen = sorted(map(str, batch)) if isinstance(batch, Mapping) else f"a {type(batch).__name__}"
            raise ShapeError(f"micro-batch {place} is {seen}; give a mapping with the keys labeled, unlabeled or both")
        kinds.append(sorted(key for key, value in batch.items() if value is not None))
        if kinds[place] != kinds[0]:
            raise ShapeError(f"micro-batch {place} has {kinds[place]}, the first has {kinds[0]}; give all the same")


def check_pair(labeled: object) -> tuple[Any, Tensor]:
    """Inputs and their labels."""
    if isinstance(labeled, (tuple, list)) and len(labeled) == 2:
        return labeled[0], labeled[1]
    kind = f"a {type(labeled).__name__}" + (f" of {len(labeled)}" if isinstance(labeled, (tuple, list)) else "")
    raise ShapeError(f"labeled is {kind}; give a pair (inputs, labels)")


def check_labels(y: Tensor, log_q: Tensor) -> Tensor:
    """Class indices that fit the predictions they are compared with, as int64."""
    if not isinstance(y, Tensor) or y.is_floating_point() or y.is_complex():
        kind = str(y.dtype) if isinstance(y, Tensor) else type(y).__name__
        raise LabelError(f"labels are {kind}; give a tensor of class indices, torch.int64")
    if y.shape != log_q.shape[:-1]:
        raise ShapeError(f"labels have shape {tuple(y.shape)}, predictions {tuple(log_q.shape)}; give one label a row")
    classes = log_q.shape[-1]
    low, high = torch.stack(y.aminmax()).tolist()  # one wait for a GPU, not two
    if low < 0 or high >= classes:
        seen = low if low < 0 else high
        raise LabelError(f"label {seen} is outside 0..{classes - 1}; fix it, or pass the row as unlabeled")
    return y.long()
