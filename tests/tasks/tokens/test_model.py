"""A trained tagger: the first sub-word of a word gives its tag, in any batch, here and in transformers."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from drift.data.windows import make_windows
from drift.errors import DataError, FileError
from drift.models.encoders import load_tagger
from drift.tasks.tokens.model import Tagger, TokenModel, folded
from tests.runs.small_tokens import CLASSES, small_sentences, small_word_encoder

transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")

SENTENCES = [["john"], [], *small_sentences(6)["tokens"], ["quiet_optuna", "", "of"], ["berlin", "and"] * 300]
WHOLE = [words for words in SENTENCES if 0 < len(words) < 30 and "" not in words]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TokenModel:
    module, tokenizer = load_tagger(small_word_encoder(tmp_path_factory.mktemp("encoder")), CLASSES, seed=1)
    return TokenModel(module, tokenizer, CLASSES, "finetuned", entities=True, max_length=64).calibrated(1.7)


@pytest.mark.parametrize("words", WHOLE, ids=str)
def test_the_first_sub_word_gives_the_tag(model: TokenModel, words: list[str]) -> None:
    encoded = model.tokenizer(words, is_split_into_words=True, return_tensors="pt")
    word_ids = encoded.word_ids()
    with torch.no_grad():
        firsts = [word_ids.index(word) for word in range(len(words))]
        logits = model.module(input_ids=encoded["input_ids"]).logits[0, firsts]
        windows = make_windows([words], model.tokenizer, max_length=64)
        torch.testing.assert_close(Tagger(model.module)(**windows.inputs(torch.tensor([0]))), logits)
    np.testing.assert_allclose(model.predict_proba([words])[0], torch.softmax(logits, -1), atol=1e-6)


def test_other_sentences_of_the_batch_change_nothing(model: TokenModel) -> None:
    together = model.predict_proba(SENTENCES)
    assert [len(probabilities) for probabilities in together] == [len(words) for words in SENTENCES]
    for words, probabilities in zip(SENTENCES, together, strict=True):
        np.testing.assert_allclose(probabilities, model.predict_proba([words])[0], atol=1e-5)
        np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-5)
    assert model.predict_proba([]) == []


def test_a_folded_head_gives_the_same_logits_on_raw_vectors() -> None:
    generator = torch.Generator().manual_seed(0)
    x = 3 + 5 * torch.randn(50, 8, generator=generator)
    mean, scale = x.mean(0), x.std(0)
    head = nn.Linear(8, 3)
    weight, bias = folded(head, mean, scale)
    torch.testing.assert_close(x @ weight.T + bias, head((x - mean) / scale), atol=1e-5, rtol=1e-5)


def test_saved_and_loaded_it_predicts_the_same(model: TokenModel, tmp_path: Path) -> None:
    model.save(tmp_path)
    opened = TokenModel.load(tmp_path)
    assert (opened.classes, opened.entities, opened.max_length, opened.temperature) == (CLASSES, True, 64, 1.7)
    for loaded, expected in zip(opened.predict_proba(SENTENCES), model.predict_proba(SENTENCES), strict=True):
        np.testing.assert_array_equal(loaded, expected)


def test_transformers_opens_it_with_the_names_of_the_tags(model: TokenModel, tmp_path: Path) -> None:
    model.save(tmp_path)
    words = ["mary", "smith", "lives", "in", "london"]
    raw = transformers.pipeline("token-classification", model=str(tmp_path))
    firsts = [each for each in raw(" ".join(words), ignore_labels=[]) if not each["word"].startswith("##")]
    probabilities = model.predict_proba([words])[0]
    assert [each["entity"] for each in firsts] == [CLASSES[code] for code in probabilities.argmax(-1)]
    np.testing.assert_allclose([each["score"] for each in firsts], probabilities.max(-1), atol=1e-5)
    simple = transformers.pipeline("token-classification", model=str(tmp_path), aggregation_strategy="simple")
    assert {each["entity_group"] for each in simple(" ".join(words))} <= {"LOC", "PER"}


def test_tags_are_the_most_likely_valid_ones(model: TokenModel) -> None:
    place, person = [0.0, 0.3, 0.7, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0, 0.5]
    assert model.tags(np.array([place, place])) == ["B-LOC", "I-LOC"]
    assert model.tags(np.array([person, place])) == ["O", "B-LOC"]
    slots = TokenModel(model.module, model.tokenizer, ["O", "Dish"], "finetuned", entities=False)
    assert slots.tags(np.eye(2)[[1, 0, 1]]) == ["Dish", "O", "Dish"]


def test_a_sentence_is_a_list_of_words(model: TokenModel) -> None:
    with pytest.raises(DataError, match="sentence 2: 'john lives' is one string; give a list of words"):
        model.predict_proba([["john"], "john lives"])


def test_a_damaged_folder_is_refused(model: TokenModel, tmp_path: Path) -> None:
    model.save(tmp_path)
    description = json.loads((tmp_path / "drift.json").read_text())
    (tmp_path / "drift.json").write_text(json.dumps({**description, "format": "drift-tokens/9"}))
    with pytest.raises(FileError, match="'drift-tokens/9', not drift-tokens/1"):
        TokenModel.load(tmp_path)
    (tmp_path / "drift.json").write_text(json.dumps(description))
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(FileError, match=r"lacks tokenizer\.json; copy it again"):
        TokenModel.load(tmp_path)
    (tmp_path / "drift.json").write_text("{")
    with pytest.raises(FileError, match="cannot be opened as a trained model"):
        TokenModel.load(tmp_path)


def test_inputs_are_moved_to_the_device_of_the_parameters(model: TokenModel, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.device] = []

    def forward(tagger: Tagger, input_ids: Tensor, attention_mask: Tensor, words: Tensor) -> Tensor:
        seen.extend([input_ids.device, attention_mask.device, words.device])
        return torch.zeros(len(words), len(CLASSES))  # on the CPU: tensors on "meta" have no values

    monkeypatch.setattr(Tagger, "forward", forward)
    moved = replace(model, module=nn.Linear(1, 1))
    moved.module.to("meta")
    for probabilities in moved.predict_proba([["john", "lives"], ["in"]]):
        np.testing.assert_allclose(probabilities, 1 / len(CLASSES), rtol=1e-6)
    assert seen
    assert {device.type for device in seen} == {"meta"}
