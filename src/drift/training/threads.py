"""How many threads torch computes with, and what the allocator does with large tensors."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # glibc's names, from malloc.h
KEPT = 512 * 1024 * 1024  # bytes


def keep_freed_memory() -> bool:
    """Let this process keep memory it frees, up to half a gigabyte, for the next step to use.

    By default glibc hands activations of more than 32 MB back to the kernel every step and gets them again page by
    page: two moons take 10 to 30 % longer that way, and so do larger batches of an encoder (`benchmarks/loop.py
    memory`). For a program's start, not for a library: it concerns the whole process. Returns whether it took effect,
    which it does on Linux with glibc.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(M_MMAP_THRESHOLD, KEPT)) and bool(mallopt(M_TRIM_THRESHOLD, KEPT))


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Compute with `count` threads in the block, as before after it; None changes nothing.

    One is right for small models: handing a tenth of a millisecond's work to a second thread costs more than it saves,
    and the result no longer depends on how many cores the machine has.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
