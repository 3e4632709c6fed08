"""Nested state (optimizers, schedules, generators) as named tensors and JSON, and back; nothing is pickled."""

from typing import Any

from torch import Tensor

from drift.errors import StateError

# How values are written that JSON does not have: tensors, tuples, and mappings with keys that are not strings.
TENSOR, TUPLE, MAPPING = "tensor", "tuple", "mapping"


def pack(state: Any, name: str = "state") -> tuple[Any, dict[str, Tensor]]:
    """The state as JSON values, and the tensors that these refer to by name."""
    tensors: dict[str, Tensor] = {}
    storages: set[int] = set()

    def write(value: Any, path: str) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, Tensor):
            while path in tensors:  # keys 1 and "1" of one mapping
                path += "'"
            storage = value.untyped_storage().data_ptr()
            # safetensors refuses tensors that share memory, as tied weights do
            tensors[path] = value.detach().clone() if storage in storages else value.detach().contiguous()
            storages.add(storage)
            return {TENSOR: path}
        if isinstance(value, list):
            return [write(item, f"{path}.{index}") for index, item in enumerate(value)]
        if isinstance(value, tuple):
            return {TUPLE: [write(item, f"{path}.{index}") for index, item in enumerate(value)]}
        if isinstance(value, dict):
            return {MAPPING: [[write(key, path), write(item, f"{path}.{key}")] for key, item in value.items()]}
        raise StateError(f"{path} is a {type(value).__name__}, which cannot be saved; use numbers, strings and tensors")

    return write(state, name), tensors


def unpack(packed: Any, tensors: dict[str, Tensor]) -> Any:
    """The state that `pack` took apart."""
    if isinstance(packed, list):
        return [unpack(item, tensors) for item in packed]
    if not isinstance(packed, dict):
        return packed
    ((tag, content),) = packed.items()
    if tag == TENSOR:
        return tensors[content]
    if tag == TUPLE:
        return tuple(unpack(item, tensors) for item in content)
    return {unpack(key, tensors): unpack(item, tensors) for key, item in content}
