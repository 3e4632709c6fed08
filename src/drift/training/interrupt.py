"""Ctrl-C as a request: the current step is finished and saved before the run stops."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Whether the user asked the run to stop."""

    asked = False


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """In the block, a first Ctrl-C (or SIGTERM) only sets a flag; a second one stops at once, as without the block."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():  # only the main thread receives signals
        yield interrupt
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def set_flag(number: int, frame: FrameType | None) -> None:
        interrupt.asked = True
        for each, handler in before.items():
            signal.signal(each, handler)

    for number in before:
        signal.signal(number, set_flag)
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
