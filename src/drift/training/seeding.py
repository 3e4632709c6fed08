"""Random seeds: what torch draws in a `seeded` block depends only on the seed; the global state is restored."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's global generators in the block, and restore them afterwards."""
    with torch.random.fork_rng():
        if torch.accelerator.is_available():
            torch.manual_seed(seed)
        else:  # torch.manual_seed would keep a note, with a stack trace, for every absent device: slow, and it adds up
            torch.default_generator.manual_seed(seed)
        yield


def generator_of(seed: int, purpose: int) -> torch.Generator:
    """An independent generator for each purpose of one seed."""
    return torch.Generator().manual_seed(int(np.random.SeedSequence((seed, purpose)).generate_state(1)[0]))
