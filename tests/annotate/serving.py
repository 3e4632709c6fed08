"""A page of a session in this process: no start of a command, and vectors that need no encoder."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import drift


@contextmanager
def served(session: drift.Annotation, folder: Path, out: str = "labels.csv") -> Iterator[str]:
    """The address of the page."""
    from drift.annotate.finish import Finish
    from drift.annotate.server import Server

    server = Server(session, Finish(session, folder / out, folder / "run"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server.url
    finally:
        server.stop()
        thread.join(10)
