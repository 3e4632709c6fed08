"""Checks of the arguments of `Game`. Each error names the value and says what to do."""

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import torch
from torch import Tensor

from drift.errors import ConfigError, LabelError, ShapeError, StateError


def is_number(value: object) -> bool:
    """Whether a value is a real, finite number."""
    return isinstance(value, numbers.Real) and math.isfinite(value)


def check_alpha(value: float) -> float:
    if not (is_number(value) and 0.0 <= value <= 1.0):
        raise ConfigError(
            f"alpha={value!r} is not a number in [0, 1]; it weights the old teacher, the paper uses 0.9 to 0.99"
        )
    return float(value)


def check_choice(name: str, value: object, choices: Any) -> None:
    """Require one of the strings of a `Literal`."""
    if value not in get_args(choices):
        raise ConfigError(f"{name}={value!r} is not one of {', '.join(map(repr, get_args(choices)))}")


def check_type(name: str, value: object, expected: type, hint: str) -> None:
    """Require an instance of `expected`. hint: the end of the message, which says what to pass instead."""
    if not isinstance(value, expected):
        actual = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
        raise ConfigError(f"{name} is {actual}; {hint}")


def check_micro_batches(batches: Sequence[Any]) -> None:
    """Require a non-empty list of keyword arguments of `loss`, each with the same keys set."""
    if not batches:
        raise ShapeError("accumulate() was given no micro-batch; pass at least one")
    keys = []
    for index, batch in enumerate(batches):
        if not isinstance(batch, Mapping) or not set(batch) <= {"labeled", "unlabeled"}:
            actual = sorted(map(str, batch)) if isinstance(batch, Mapping) else f"a {type(batch).__name__}"
            raise ShapeError(
                f"micro-batch {index} is {actual}; give a mapping with the keys labeled, unlabeled or both"
            )
        keys.append(sorted(key for key, value in batch.items() if value is not None))
        if keys[index] != keys[0]:
            raise ShapeError(f"micro-batch {index} has {keys[index]}, the first has {keys[0]}; give all the same keys")


def check_state(state: object, keys: Sequence[str]) -> None:
    """Require a mapping with these keys, as `state_dict` returns it."""
    if not isinstance(state, Mapping):
        raise StateError(f"not a game's state but a {type(state).__name__}; pass what game.state_dict() returned")
    if missing := set(keys) - set(state):
        raise StateError(f"not a game's state: {sorted(missing)} missing; pass what game.state_dict() returned")


def check_pair(labeled: object) -> tuple[Any, Tensor]:
    """Require a pair of inputs and labels, and return it."""
    if isinstance(labeled, (tuple, list)) and len(labeled) == 2:
        return labeled[0], labeled[1]
    actual = f"a {type(labeled).__name__}" + (f" of {len(labeled)}" if isinstance(labeled, (tuple, list)) else "")
    raise ShapeError(f"labeled is {actual}; give a pair (inputs, labels)")


def check_labels(y: Tensor, log_q: Tensor) -> Tensor:
    """Require class indices that fit the predictions, and return them as int64. y: `(..., N)`; log_q: `(..., N, C)`."""
    if not isinstance(y, Tensor) or y.is_floating_point() or y.is_complex():
        actual = str(y.dtype) if isinstance(y, Tensor) else type(y).__name__
        raise LabelError(f"labels are {actual}; give a tensor of class indices, torch.int64")
    if y.shape != log_q.shape[:-1]:
        raise ShapeError(
            f"labels have shape {tuple(y.shape)}, predictions {tuple(log_q.shape)}; give one label per row"
        )
    classes = log_q.shape[-1]
    low, high = torch.stack(y.aminmax()).tolist()  # one synchronisation with a GPU, not two
    if low < 0 or high >= classes:
        label = low if low < 0 else high
        raise LabelError(f"label {label} is outside 0..{classes - 1}; fix it, or pass the row as unlabeled")
    return y.long()
