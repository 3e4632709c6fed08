"""Vectors of texts and of words, as `drift fit` computes them.

Where all vectors are in the cache, they are found without torch and without the encoder, whose import takes longer than
everything else that a page needs. For that, the settings that vectors are stored under are remembered in the cache.
"""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import drift
from drift.data.cache import cache_file, cache_folder, content_key
from drift.data.sealed import sealed_content
from drift.data.texts import checked
from drift.data.vector_store import VectorStore, read_array, text_keys
from drift.models.locating import folder_fingerprint, words_default
from drift.training.progress import progress

if TYPE_CHECKING:
    from drift.models.embedding import Embedder

FORMAT = "settings/1"
LAYERS = 1 / 2  # of an encoder's layers, from the first, for words: the upper ones represent whole texts


def text_vectors(texts: Sequence[str], encoder: str, *, quiet: bool) -> np.ndarray:
    """One vector per text, `(n, D)`, memory-mapped."""
    known = _remembered("texts", encoder)
    if known is not None:
        found = VectorStore(known["settings"], known["width"]).whole(text_keys(checked(texts)))
        if found is not None:
            return found[0]
    embedder = text_embedder(encoder)
    vectors = embedder.embed(texts, progress=partial(progress, shown=not quiet)).vectors
    _remember("texts", encoder, {"settings": embedder.settings, "width": vectors.shape[1]})
    return vectors


def text_embedder(encoder: str) -> "Embedder":
    """The embedder of `drift fit` for texts, with its default settings."""
    from drift.models.embedding import Embedder
    from drift.tasks import TASKS

    task = TASKS["text"]
    defaults = task.defaults(task.choose_kind({}, finetune=False), weak=False)["model"]
    settings: Any = task.model_settings(**{**defaults, "name": encoder})
    return Embedder.of(encoder, max_length=settings.max_length, pool=settings.pool, precision=settings.precision)


def word_vectors(sentences: Sequence[Sequence[str]], encoder: str, *, quiet: bool) -> np.ndarray:
    """One vector per word, `(words, D)`, memory-mapped: of `drift fit --task tokens` with a fixed encoder."""
    name = words_default() if encoder == "default" else encoder
    known = _remembered("words", name)
    if known is not None:
        lines = ("\0".join(words) for words in sentences)
        found = read_array(cache_folder() / "embeddings" / f"{content_key(lines, *known['settings'])}.npy")
        if found is not None:
            return found
    from drift.models.embedding import fingerprint
    from drift.models.encoders import encoder_part, load_tagger
    from drift.models.word_embedding import FORMAT as WORDS
    from drift.models.word_embedding import embed_words
    from drift.tasks import TASKS

    task = TASKS["tokens"]
    defaults = task.defaults(task.choose_kind({}, finetune=False), weak=False).get("model", {})
    settings: Any = task.model_settings(**{**defaults, "name": name})
    layers = encoder_part(name, LAYERS)
    tagger, tokenizer = load_tagger(name, ["O"], seed=0, layers=layers)
    shown = partial(progress, shown=not quiet)
    vectors = embed_words(
        sentences, tagger, tokenizer, name, max_length=settings.max_length, layers=layers, progress=shown
    )
    _remember("words", name, {"settings": [WORDS, fingerprint(name), settings.max_length, layers]})
    return vectors


def _remembered(what: str, encoder: str) -> dict[str, Any] | None:
    """The settings under which vectors were stored, if some were."""
    file = _file(what, encoder)
    content = None if file is None else sealed_content(file)
    if content is None:
        return None
    found: dict[str, Any] = json.loads(content)
    return found


def _remember(what: str, encoder: str, settings: dict[str, Any]) -> None:
    if (file := _file(what, encoder)) is not None:
        with cache_file(file) as aside:
            aside.write_text(json.dumps(settings), encoding="utf-8")


def _file(what: str, encoder: str) -> Path | None:
    """Where settings are remembered; None for an encoder that is not in a folder. what: the items with vectors."""
    content = folder_fingerprint(encoder)
    if content is None:
        return None
    return cache_folder() / "embeddings" / f"{content_key([], FORMAT, drift.__version__, what, encoder, content)}.json"
