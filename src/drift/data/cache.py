"""Where results that cost time are kept between runs, and by what name: the content they were made from."""

import hashlib
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from drift.data.files import atomic_file
from drift.errors import FileError


def cache_folder() -> Path:
    """`$DRIFT_CACHE`, or `drift` in the user's cache folder. It may be deleted at any time."""
    if chosen := os.environ.get("DRIFT_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "drift"


ADVICE = "set DRIFT_CACHE to a folder that can be written to"


def cache_place(name: str) -> Path:
    """A folder in the cache, made if it is not there."""
    folder = cache_folder() / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} cannot be made ({error.strerror}); {ADVICE}") from error
    if not os.access(folder, os.W_OK):
        raise FileError(f"{folder} cannot be written to; {ADVICE}")
    return folder


def cache_file(path: Path) -> AbstractContextManager[Path]:
    """Write a file of the cache as `atomic_file` does; where that cannot be, the message says how to move the cache."""
    return atomic_file(path, advice=ADVICE)


def content_key(texts: Iterable[str], *settings: object) -> str:
    """A name for what is made from these texts, in this order, with these settings (their `repr` counts)."""
    digest = hashlib.sha256(repr(settings).encode())
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little"))  # so that ["ab", "c"] is not ["a", "bc"]
        digest.update(encoded)
    return digest.hexdigest()[:32]
