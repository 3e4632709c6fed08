"""Each word vector equals that of its sentence alone, in order, and is computed once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from drift.models.encoders import load_tagger
from drift.models.word_embedding import embed_words
from tests.runs.small_tokens import CLASSES, small_sentences, small_word_encoder

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")

SENTENCES = [["berlin"], *small_sentences(7)["tokens"], ["mary", "smith"]]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_word_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))


class Counted:
    """An encoder that counts its forward passes."""

    def __init__(self, encoder: str, layers: int | None = None) -> None:
        self.tagger, self.tokenizer = load_tagger(encoder, CLASSES, seed=0, layers=layers)
        self.name, self.layers, self.forwards = encoder, layers, 0
        self.tagger.base_model.register_forward_hook(self._seen)

    def _seen(self, *_: Any) -> None:
        self.forwards += 1

    def vectors(self, sentences: list[list[str]], max_length: int = 64) -> np.ndarray:
        return embed_words(sentences, self.tagger, self.tokenizer, self.name, max_length=max_length, layers=self.layers)

    def alone(self, words: list[str]) -> np.ndarray:
        encoded = self.tokenizer(words, is_split_into_words=True, return_tensors="pt")
        of = encoded.word_ids()
        with torch.no_grad():
            hidden = self.tagger.base_model(input_ids=encoded["input_ids"]).last_hidden_state[0]
        return hidden[[of.index(word) for word in range(len(words))]].numpy()


@pytest.mark.parametrize("layers", [None, 1])
def test_vectors_are_those_of_each_sentence_alone(encoder: str, layers: int | None) -> None:
    counted = Counted(encoder, layers)
    expected = np.concatenate([counted.alone(words) for words in SENTENCES])
    np.testing.assert_allclose(counted.vectors(SENTENCES), expected, atol=1e-5)


def test_what_was_computed_is_not_computed_again(encoder: str) -> None:
    counted = Counted(encoder)
    first = counted.vectors(SENTENCES)
    once = counted.forwards
    assert once > 0
    np.testing.assert_array_equal(counted.vectors(SENTENCES), first)
    assert counted.forwards == once
    for sentences, max_length in ((SENTENCES[::-1], 64), (SENTENCES, 32), ([[" ".join(SENTENCES[1])]], 64)):
        before = counted.forwards
        counted.vectors(sentences, max_length)
        assert counted.forwards > before
    assert not np.allclose(Counted(encoder, layers=1).vectors(SENTENCES), first)


def test_the_head_is_the_encoders_last_layer_away(encoder: str) -> None:
    """A frozen run trains on the same vectors that the saved tagger's head will read."""
    counted = Counted(encoder)
    head = counted.tagger.classifier
    assert isinstance(head, nn.Linear)
    encoded = counted.tokenizer(SENTENCES[1], is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        logits = counted.tagger(input_ids=encoded["input_ids"]).logits[0]
        firsts = [encoded.word_ids().index(word) for word in range(len(SENTENCES[1]))]
        actual = head(torch.from_numpy(np.array(counted.vectors([SENTENCES[1]]))))
    torch.testing.assert_close(actual, logits[firsts], atol=1e-5, rtol=1e-4)
