"""Vectors that are in the cache are found without torch and without the encoder."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from drift.annotate.vectors import text_vectors, word_vectors
from tests.runs.small import small_encoder

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")

TEXTS = ["bank stock", "team goal", "bank fund match"]
AGAIN = """
import json, sys
import drift
with drift.Annotation(json.loads(sys.argv[1]), ["a", "b"], encoder=sys.argv[2], background=True) as session:
    assert session.next() is not None
    print(json.dumps([session.vectors.tolist(), [n for n in ("torch", "transformers", "sklearn") if n in sys.modules]]))
"""


def test_a_warm_start_imports_no_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    encoder = str(tmp_path / "encoder")
    small_encoder(Path(encoder))
    first = text_vectors(TEXTS, encoder, quiet=True)
    done = subprocess.run(
        [sys.executable, "-c", AGAIN, json.dumps(TEXTS), encoder], capture_output=True, text=True, check=True
    )
    vectors, imported = json.loads(done.stdout)
    assert np.array_equal(np.array(vectors, dtype=np.float32), first)
    assert imported == []


def test_words_are_found_again_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    encoder = str(tmp_path / "encoder")
    small_encoder(Path(encoder))
    sentences = [["bank", "stock"], ["goal"]]
    first = word_vectors(sentences, encoder, quiet=True)
    assert len(first) == 3
    monkeypatch.setitem(sys.modules, "drift.models.word_embedding", None)  # to import it again is an error
    assert np.array_equal(word_vectors(sentences, encoder, quiet=True), first)


def test_settings_of_another_encoder_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The encoder is told apart by its content, so that a folder that was replaced gives other vectors."""
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    encoder = tmp_path / "encoder"
    small_encoder(encoder)
    text_vectors(TEXTS, str(encoder), quiet=True)
    config = json.loads((encoder / "config.json").read_text())
    (encoder / "config.json").write_text(json.dumps({**config, "note": "changed"}))
    settings = list((tmp_path / "cache" / "embeddings").glob("*.json"))
    text_vectors(TEXTS, str(encoder), quiet=True)
    assert len(list((tmp_path / "cache" / "embeddings").glob("*.json"))) == len(settings) + 1
