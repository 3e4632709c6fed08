"""Encoders run on the best device: inputs follow the parameters, results come back to the CPU."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from drift.models import embedding, word_embedding
from drift.models.devices import best_device, device_of
from drift.models.embedding import embed
from drift.models.word_embedding import embed_words

WIDTH = 3
META = torch.device("meta")  # parameters can be moved there on any machine


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))


def test_the_best_device_is_the_accelerator_or_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert best_device() == torch.device("cpu")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    assert best_device() == torch.device("cuda")


def test_the_device_of_a_module_is_that_of_its_first_tensor() -> None:
    assert device_of(nn.Identity()) == torch.device("cpu")
    assert device_of(nn.Linear(2, 2)) == torch.device("cpu")
    assert device_of(nn.Linear(2, 2, device=META)) == META
    assert device_of(nn.BatchNorm1d(2, affine=False).to(META)) == META  # buffers only


class Recorder(nn.Module):
    """Records the devices of its inputs. Its hidden states are on the CPU, as meta tensors have no values."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.config = SimpleNamespace(hidden_size=WIDTH, max_position_embeddings=64)
        self.devices: list[torch.device] = []

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **options: Any) -> SimpleNamespace:
        self.devices += [input_ids.device, attention_mask.device]
        return SimpleNamespace(last_hidden_state=torch.ones(*input_ids.shape, WIDTH))


class Characters:
    """A tokenizer with one token per text or word."""

    pad_token_id, model_max_length = 0, 64

    def num_special_tokens_to_add(self) -> int:
        return 0

    def __call__(self, texts: list[str], **options: Any) -> dict[str, list[list[int]]]:
        return {"input_ids": [[1 + len(text)] * (1 + len(text) % 3) for text in texts]}


@pytest.mark.parametrize("device", [torch.device("cpu"), META], ids=str)
def test_texts_follow_the_encoder(monkeypatch: pytest.MonkeyPatch, device: torch.device) -> None:
    encoder = Recorder()
    monkeypatch.setattr(embedding, "best_device", lambda: device)
    monkeypatch.setattr(embedding, "load_encoder", lambda name: (encoder, Characters()))
    monkeypatch.setattr(embedding, "fingerprint", lambda name: "recorder")
    vectors = embed(["a", "bc", "def"], "recorder", max_length=8, pool="cls", jobs=1)
    assert np.array_equal(vectors, np.ones((3, WIDTH)))
    assert encoder.weight.device == device
    assert set(encoder.devices) == {device}


class OneWindow:
    """Two sentences of two words each, as `make_windows` returns them."""

    counts, lengths = np.array([2, 2]), np.array([2, 2])

    def __len__(self) -> int:
        return 2

    def inputs(self, rows: Tensor) -> dict[str, Tensor]:
        ids = torch.ones(len(rows), 2, dtype=torch.long)
        return {"input_ids": ids, "attention_mask": ids, "words": torch.arange(2 * len(rows))}

    def words(self, rows: Tensor) -> Tensor:
        return (2 * rows.unsqueeze(1) + torch.arange(2)).flatten()


@pytest.mark.parametrize("device", [torch.device("cpu"), META], ids=str)
def test_words_follow_the_encoder_and_it_returns(monkeypatch: pytest.MonkeyPatch, device: torch.device) -> None:
    encoder, moves = Recorder(), []
    move = encoder.to

    def to(target: torch.device) -> nn.Module:
        moves.append(target)
        # A meta tensor cannot come back with its values: give the encoder a new one.
        return move(target) if device_of(encoder) != META else encoder.to_empty(device=target)

    monkeypatch.setattr(encoder, "to", to)
    monkeypatch.setattr(word_embedding, "best_device", lambda: device)
    monkeypatch.setattr(word_embedding, "fingerprint", lambda name: "recorder")
    monkeypatch.setattr(word_embedding, "make_windows", lambda *args, **options: OneWindow())
    tagger = SimpleNamespace(base_model=encoder)
    vectors = embed_words([["a", "b"], ["c", "d"]], tagger, Characters(), "recorder", max_length=8)
    assert np.array_equal(vectors, np.ones((4, WIDTH)))
    assert set(encoder.devices) == {device}
    assert moves == [device, torch.device("cpu")]
    assert device_of(encoder) == torch.device("cpu")
