"""The state of torch's global random generators, to repeat the same random numbers."""

from typing import Any

import torch


def random_state() -> dict[str, Any]:
    """The current state of the generators of all devices, as tensors and lists that can be saved."""
    return {
        "cpu": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def set_random_state(state: dict[str, Any]) -> None:
    """Restore a state returned by `random_state`."""
    torch.set_rng_state(state["cpu"])
    if state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])
