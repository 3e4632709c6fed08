"""torch's global generators as a state, to draw the same numbers once more."""

from typing import Any

import torch


def random_state() -> dict[str, Any]:
    """The generators of every device as they are now: tensors and lists, so that it can be saved."""
    return {
        "cpu": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def set_random_state(state: dict[str, Any]) -> None:
    """Go on drawing from where `random_state` was taken."""
    torch.set_rng_state(state["cpu"])
    if state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])
