"""State of sharded models: each process keeps, saves and loads only its own shards."""

from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.optim import Optimizer

from drift.core.sharded import is_sharded

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


def local(tree: Any) -> Any:
    """Nested state with this process's shard in place of every sharded tensor."""
    if is_sharded(tree):
        return tree.to_local()
    if isinstance(tree, dict):
        return {key: local(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(local(value) for value in tree)
    return tree


def wrapped_like(tree: Any, pattern: Any) -> Any:
    """Undo `local`: shards become sharded tensors where `pattern`, the state as it is now, has them."""
    if is_sharded(pattern) and isinstance(tree, Tensor):
        return _sharded(tree, pattern)
    if isinstance(tree, dict) and isinstance(pattern, dict):
        return {key: wrapped_like(value, pattern.get(key)) for key, value in tree.items()}
    return tree


def wrapped_for(state: dict[str, Any], optimizer: Optimizer) -> dict[str, Any]:
    """An optimizer's state with shards wrapped like its parameters: a new optimizer has no state to copy from."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    per_parameter = {
        index: {
            key: _sharded(value, parameters[index])
            if is_sharded(parameters[index]) and isinstance(value, Tensor) and value.dim()
            else value
            for key, value in values.items()
        }
        for index, values in state["state"].items()
    }
    return {**state, "state": per_parameter}


def _sharded(shard: Tensor, pattern: "DTensor") -> "DTensor":
    from torch.distributed.tensor import DTensor

    return DTensor.from_local(
        shard.to(pattern.device),
        pattern.device_mesh,
        pattern.placements,
        run_check=False,
        shape=pattern.shape,
        stride=pattern.stride(),
    )
