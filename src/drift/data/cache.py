"""Where results that cost time are kept between runs, and by what name: the content they were made from."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path


def cache_folder() -> Path:
    """`$DRIFT_CACHE`, or `drift` in the user's cache folder. It may be deleted at any time."""
    if chosen := os.environ.get("DRIFT_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "drift"


def content_key(texts: Iterable[str], *settings: object) -> str:
    """A name for what is made from these texts, in this order, with these settings (their `repr` counts)."""
    digest = hashlib.sha256(repr(settings).encode())
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little"))  # so that ["ab", "c"] is not ["a", "bc"]
        digest.update(encoded)
    return digest.hexdigest()[:32]
