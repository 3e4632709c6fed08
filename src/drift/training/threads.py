"""The number of threads of torch, and how the allocator treats large tensors."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # glibc's names, from malloc.h
KEPT = 512 * 1024 * 1024  # bytes


def keep_freed_memory() -> bool:
    """Let this process keep freed memory, up to half a gigabyte, for the next step.

    By default glibc returns activations of more than 32 MB to the kernel in every step and gets them back page by page:
    two moons take 10 to 30 % longer that way, and so do larger batches of an encoder (`benchmarks/loop.py memory`).
    Call it when a program starts, not in a library: it affects the whole process. Returns whether it took effect, which
    it does on Linux with glibc.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(M_MMAP_THRESHOLD, KEPT)) and bool(mallopt(M_TRIM_THRESHOLD, KEPT))


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Compute with `count` threads in the block; None changes nothing.

    One thread is right for small models: passing a tenth of a millisecond of work to a second thread costs more than it
    saves, and with one thread the result does not depend on the number of cores.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
