"""Names of entity types as weak tags of a run, alone or where other weak tags say nothing."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.files import expanded
from drift.data.sentences import Sentences
from drift.data.tags import repaired, split_tag
from drift.models.embedding import Embedder
from drift.tasks.tokens.settings import TokenDataSettings
from drift.weak.type_names import NameTags, name_tags

MAX_LENGTH = 64  # tokens of a candidate in its sentence


def with_names(
    train: Sentences, weak: list[Any], settings: TokenDataSettings
) -> tuple[list[list[str | None] | None], list[str]]:
    """Weak tags with those of the names of types on words that have none, and notes.

    weak: the other weak tags of each sentence; None for none.
    """
    assert settings.classes is not None
    found = _tagged(train, settings)
    plain = train.scheme == "IO"
    merged: list[list[str | None] | None] = []
    for named, others in zip(found.tags, weak, strict=True):
        tags = [split_tag(tag, "IOB2")[1] or tag for tag in named] if plain else named
        pairs = zip(tags, [None] * len(tags) if others is None else others, strict=True)
        joined = [name if other is None else other for name, other in pairs]
        merged.append(joined if plain else repaired(joined))
    notes = [
        f"class names tag {found.tagged:,} of {found.candidates:,} {found.unit}; the others are left open",
        *found.faults,
    ]
    return merged, notes


def _tagged(train: Sentences, settings: TokenDataSettings) -> NameTags:
    assert settings.classes is not None
    if settings.gliner is not None:
        from drift.weak.gliner import gliner_tags

        folder = next(filter(Path.is_dir, _folders(settings.gliner)), None)
        return gliner_tags(train.tokens, settings.classes, str(folder or settings.gliner), local=folder is not None)
    embedder = Embedder(settings.names_encoder, max_length=MAX_LENGTH, pool="auto")

    def embed(texts: Any) -> np.ndarray:
        return np.asarray(embedder.embed(list(texts)).vectors)

    return name_tags(train.tokens, settings.classes, embed)


def _folders(name: str) -> list[Path]:
    """Where a model of this name may be on this machine."""
    shelf = os.environ.get("DRIFT_MODELS")
    return [expanded(name), *([Path(shelf, name)] if shelf else [])]
