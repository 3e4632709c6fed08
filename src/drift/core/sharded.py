"""Whether a tensor is sharded over processes, without importing torch's sharding, which takes half a second."""

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


def is_sharded(value: Any) -> "TypeGuard[DTensor]":
    """Return whether a value is a `DTensor`. There is none before the module that defines it is imported."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(value, module.DTensor)
