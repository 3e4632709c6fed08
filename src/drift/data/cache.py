"""The cache of expensive results: where it is, and the names of its files, which are hashes of their inputs."""

import hashlib
import os
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from drift.data.files import atomic_file
from drift.data.sealed import seal
from drift.errors import ConfigError, FileError


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


@contextmanager
def cache_file(path: Path) -> Iterator[Path]:
    """Write a file of the cache as `atomic_file` does, with a checksum at its end: `is_sealed` reads it.

    The error says how to move the cache if that fails.
    """
    with atomic_file(path, advice=ADVICE) as aside:
        yield aside
        if aside.stat().st_size:
            seal(aside)


LIMIT = "10GB"
UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
KEPT = "encoders"  # never removed to make room: to get one again may need a network
# Nothing else in the folder is touched.
PARTS = ("embeddings", "states", "tokens", "texts", "translations", "vampire", "word-vectors", KEPT)


def cache_limit() -> int:
    """`$DRIFT_CACHE_SIZE` in bytes, such as 500MB or 20GB; default: 10 GB."""
    given = os.environ.get("DRIFT_CACHE_SIZE") or LIMIT
    number, unit = given.strip().upper(), 1
    for name, size in UNITS.items():
        if number.endswith(name):
            number, unit = number.removesuffix(name), size
    try:
        limit = float(number) * unit
    except ValueError:
        limit = -1.0
    if not 0 <= limit < float("inf"):
        raise ConfigError(f"DRIFT_CACHE_SIZE is {given!r}; give a number with KB, MB, GB or TB, such as 20GB")
    return int(limit)


def cached_files(part: str) -> dict[Path, os.stat_result]:
    """The files of one of `PARTS`."""
    files = {}
    for path in (cache_folder() / part).rglob("*"):
        try:
            if path.is_file():
                files[path] = path.stat()
        except OSError:  # another process removed it
            continue
    return files


def make_room(keep: Collection[Path] = ()) -> None:
    """Remove the files that were not used for the longest time until the cache is within its limit.

    keep: files that stay, because they are in use. Encoders stay too.
    """
    files = {path: stat for part in PARTS if part != KEPT for path, stat in cached_files(part).items()}
    excess = sum(stat.st_size for stat in files.values()) - cache_limit()
    for path in sorted(files, key=lambda path: (files[path].st_mtime_ns, path.name)):
        if excess <= 0:
            return
        if path in keep:
            continue
        try:
            path.unlink()
        except OSError:  # in use, on Windows
            continue
        excess -= files[path].st_size


def clear_cache() -> int:
    """Delete everything in the cache; return the number of bytes."""
    size = 0
    for part in PARTS:
        size += sum(stat.st_size for stat in cached_files(part).values())
        if (cache_folder() / part).is_dir():
            shutil.rmtree(cache_folder() / part)
    return size


def content_key(texts: Iterable[str], *settings: object) -> str:
    """A name for a result: a hash of the texts, in this order, and of the `repr` of the settings."""
    digest = hashlib.sha256(repr(settings).encode())
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little"))  # distinguishes ["ab", "c"] from ["a", "bc"]
        digest.update(encoded)
    return digest.hexdigest()[:32]
