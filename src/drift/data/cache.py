"""The cache of expensive results: where it is, and the names of its files, which are hashes of their inputs."""

import hashlib
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from drift.data.files import atomic_file
from drift.errors import FileError


def cache_folder() -> Path:
    """`$DRIFT_CACHE`, or `drift` in the user's cache folder. The folder may be deleted at any time."""
    if folder := os.environ.get("DRIFT_CACHE"):
        return Path(folder)
    if user_cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(user_cache) / "drift"
    try:
        return Path.home() / ".cache" / "drift"
    except RuntimeError as error:  # no HOME, and no entry for the user, as in some containers
        raise FileError(f"there is no home folder for the cache ({error}); {ADVICE}") from error


ADVICE = "set DRIFT_CACHE to a folder that can be written to"


def cache_place(name: str) -> Path:
    """A folder in the cache, created if needed; FileError if it cannot be written to."""
    folder = cache_folder() / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} cannot be made ({error.strerror}); {ADVICE}") from error
    if not os.access(folder, os.W_OK):
        raise FileError(f"{folder} cannot be written to; {ADVICE}")
    return folder


def cache_file(path: Path) -> AbstractContextManager[Path]:
    """Write a file of the cache as `atomic_file` does. The error says how to move the cache if that fails."""
    return atomic_file(path, advice=ADVICE)


def content_key(texts: Iterable[str], *settings: object) -> str:
    """A name for a result: a hash of the texts, in this order, and of the `repr` of the settings."""
    digest = hashlib.sha256(repr(settings).encode())
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little"))  # distinguishes ["ab", "c"] from ["a", "bc"]
        digest.update(encoded)
    return digest.hexdigest()[:32]
