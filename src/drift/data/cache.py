"""Where results that cost time are kept between runs, and by what name: the content they were made from."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from drift.data.files import whole_file
from drift.errors import FileError


def cache_folder() -> Path:
    """`$DRIFT_CACHE`, or `drift` in the user's cache folder. It may be deleted at any time."""
    if chosen := os.environ.get("DRIFT_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "drift"


@contextmanager
def cache_file(path: Path) -> Iterator[Path]:
    """Write a file of the cache as `whole_file` does; where that cannot be, the message says how to move the cache."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)  # whole_file's own message would ask for another name
        with whole_file(path) as aside:
            yield aside
    except OSError as error:
        raise FileError(
            f"{path.parent} cannot be written to ({error}); set DRIFT_CACHE to a folder that can"
        ) from error


def content_key(texts: Iterable[str], *settings: object) -> str:
    """A name for what is made from these texts, in this order, with these settings (their `repr` counts)."""
    digest = hashlib.sha256(repr(settings).encode())
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little"))  # so that ["ab", "c"] is not ["a", "bc"]
        digest.update(encoded)
    return digest.hexdigest()[:32]
