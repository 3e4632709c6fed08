"""How many threads torch computes with, for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Compute with `count` threads in the block, as before after it.

    One is right for small models: handing a tenth of a millisecond's work to a second thread costs more than it saves,
    and the result no longer depends on how many cores the machine has.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
