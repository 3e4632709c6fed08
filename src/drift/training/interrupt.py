"""Ctrl-C as a request: the step in hand is finished and saved before the run stops."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Whether somebody asked the run to stop."""

    asked = False


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """In the block a first Ctrl-C (or SIGTERM) only takes note; a second one stops at once, as without the block."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():  # signals come to the main thread alone
        yield interrupt
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, frame: FrameType | None) -> None:
        interrupt.asked = True
        for each, handler in before.items():
            signal.signal(each, handler)

    for number in before:
        signal.signal(number, note)
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
