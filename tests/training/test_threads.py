"""The number of threads is lent for a block and given back."""

import platform
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

from drift.training.threads import threads


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_as_asked_inside_and_as_before_after(count: int) -> None:
    with threads(count):
        assert torch.get_num_threads() == count
    assert torch.get_num_threads() == 2


def test_given_back_after_a_fault() -> None:
    with pytest.raises(ZeroDivisionError), threads(1):
        raise ZeroDivisionError
    assert torch.get_num_threads() == 2


def test_it_nests_and_decorates() -> None:
    @threads(1)
    def inside() -> tuple[int, int]:
        with threads(3):
            deep = torch.get_num_threads()
        return deep, torch.get_num_threads()

    assert inside() == inside() == (3, 1)  # twice: a decorator must not be used up
    assert torch.get_num_threads() == 2


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's")
def test_the_allocator_takes_the_setting() -> None:
    """In a process of its own, for it concerns all of it."""
    code = "from drift.training.threads import keep_freed_memory; print(keep_freed_memory())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "True\n"
