"""Checks of the arguments of `Game`. Each error names the value and says what to do."""

import math
import numbers
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import torch
from torch import Tensor

from drift.errors import ConfigError, LabelError, ShapeError, StateError

SUM_TOLERANCE = 1e-3  # of soft labels, which may be in half precision


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


OWNER = "drift.game"  # key in the metadata of a node of the graph: the game whose loss it computes


def mark_own(tensors: Iterable[Tensor], owner: object) -> None:
    """Note on the graph of these tensors which game computed them. Metadata of a node ends with the graph."""
    for tensor in tensors:
        if tensor.grad_fn is not None:
            _metadata(tensor.grad_fn)[OWNER] = owner


def _metadata(node: Any) -> dict[Any, Any]:
    """Metadata of a node of the graph; torch declares the property as a method."""
    found: dict[Any, Any] = node.metadata
    return found


def is_own(loss: Tensor, owner: object) -> bool:
    """Whether a loss was computed from what `mark_own` marked. Its graph is searched from the end, so this is fast."""
    waiting, seen = deque([loss.grad_fn]), {loss.grad_fn}
    while waiting:
        node = waiting.popleft()
        if node is None:
            continue
        if _metadata(node).get(OWNER) is owner:
            return True
        before = [each for each, _ in node.next_functions if each not in seen]
        seen.update(before)
        waiting.extend(before)
    return False


def check_finite(loss: Tensor, **inputs: Any) -> None:
    """Refuse a loss that is not a finite number. inputs: of the students, by name, to say where the fault begins."""
    if math.isfinite(value := float(loss.detach())):
        return
    tensors = {name: each for name, each in inputs.items() if isinstance(each, Tensor)}
    faulty = [name for name, each in tensors.items() if not torch.isfinite(each).all()]
    cause = f"{faulty[0]} has values that are not finite" if faulty else "the predictions of a player are not finite"
    raise StateError(f"the loss is {value}: {cause}; check the inputs, lower the learning rate, or clip gradients")


def check_pair(labeled: object) -> tuple[Any, Tensor]:
    """Require a pair of inputs and labels, and return it."""
    if isinstance(labeled, (tuple, list)) and len(labeled) == 2:
        return labeled[0], labeled[1]
    actual = f"a {type(labeled).__name__}" + (f" of {len(labeled)}" if isinstance(labeled, (tuple, list)) else "")
    raise ShapeError(f"labeled is {actual}; give a pair (inputs, labels)")


def check_labels(y: Tensor, log_q: Tensor) -> Tensor:
    """Require labels that fit the predictions.

    y: class indices `(..., N)`, returned as int64, or probabilities of the classes, `(..., N, C)`.
    log_q: `(..., N, C)`.
    """
    if isinstance(y, Tensor) and y.is_floating_point() and y.shape == log_q.shape:
        return _check_soft_labels(y)
    if not isinstance(y, Tensor) or y.is_floating_point() or y.is_complex():
        actual = str(y.dtype) if isinstance(y, Tensor) else type(y).__name__
        raise LabelError(
            f"labels are {actual}; give a tensor of class indices, torch.int64, or of one probability per class"
        )
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


def _check_soft_labels(y: Tensor) -> Tensor:
    """Require rows of probabilities. y: `(..., N, C)`."""
    low, off = torch.stack([y.min(), (y.sum(-1) - 1).abs().max()]).tolist()
    if not (low >= 0 and off <= SUM_TOLERANCE):
        raise LabelError("soft labels are not probabilities; each row must be at least 0 and sum to 1")
    return y
