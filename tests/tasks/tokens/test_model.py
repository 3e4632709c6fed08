"""A trained tagger: words are answered for by their first sub-words, alone as in company, by us and by others."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

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
    return TokenModel(module, tokenizer, CLASSES, "finetuned", entities=True, max_length=64, temperature=1.7)


@pytest.mark.parametrize("words", WHOLE, ids=str)
def test_words_are_answered_for_by_their_first_sub_words(model: TokenModel, words: list[str]) -> None:
    encoded = model.tokenizer(words, is_split_into_words=True, return_tensors="pt")
    of = encoded.word_ids()
    with torch.no_grad():
        logits = model.module(input_ids=encoded["input_ids"]).logits[0, [of.index(word) for word in range(len(words))]]
        windows = make_windows([words], model.tokenizer, max_length=64)
        torch.testing.assert_close(Tagger(model.module)(**windows.inputs(torch.tensor([0]))), logits)
    np.testing.assert_allclose(model.predict_proba([words])[0], torch.softmax(logits / 1.7, -1), atol=1e-6)


def test_other_sentences_of_the_batch_change_nothing(model: TokenModel) -> None:
    together = model.predict_proba(SENTENCES)
    assert [len(found) for found in together] == [len(words) for words in SENTENCES]
    for words, found in zip(SENTENCES, together, strict=True):
        np.testing.assert_allclose(found, model.predict_proba([words])[0], atol=1e-5)
        np.testing.assert_allclose(found.sum(-1), 1, atol=1e-5)
    assert model.predict_proba([]) == []


def test_a_folded_head_is_the_same_on_vectors_that_were_not_standardised() -> None:
    generator = torch.Generator().manual_seed(0)
    x = 3 + 5 * torch.randn(50, 8, generator=generator)
    mean, scale = x.mean(0), x.std(0)
    head = nn.Linear(8, 3)
    weight, bias = folded(head, mean, scale)
    torch.testing.assert_close(x @ weight.T + bias, head((x - mean) / scale), atol=1e-5, rtol=1e-5)


def test_what_is_saved_is_opened_the_same(model: TokenModel, tmp_path: Path) -> None:
    model.save(tmp_path)
    opened = TokenModel.load(tmp_path)
    assert (opened.classes, opened.entities, opened.max_length, opened.temperature) == (CLASSES, True, 64, 1.7)
    for found, expected in zip(opened.predict_proba(SENTENCES), model.predict_proba(SENTENCES), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_transformers_opens_it_and_names_tags_by_their_names(model: TokenModel, tmp_path: Path) -> None:
    model.save(tmp_path)
    words = ["mary", "smith", "lives", "in", "london"]
    raw = transformers.pipeline("token-classification", model=str(tmp_path))
    firsts = [each for each in raw(" ".join(words), ignore_labels=[]) if not each["word"].startswith("##")]
    probabilities = model.calibrated(1.0).predict_proba([words])[0]
    assert [each["entity"] for each in firsts] == [CLASSES[code] for code in probabilities.argmax(-1)]
    np.testing.assert_allclose([each["score"] for each in firsts], probabilities.max(-1), atol=1e-5)
    simple = transformers.pipeline("token-classification", model=str(tmp_path), aggregation_strategy="simple")
    assert {each["entity_group"] for each in simple(" ".join(words))} <= {"LOC", "PER"}


def test_an_inside_that_continues_nothing_begins(model: TokenModel) -> None:
    codes = [2, 2, 4, 0, 4]
    assert model.tags(np.eye(5)[codes]) == ["B-LOC", "I-LOC", "B-PER", "O", "B-PER"]
    slots = TokenModel(model.module, model.tokenizer, ["O", "Dish"], "finetuned", entities=False)
    assert slots.tags(np.eye(2)[[1, 0, 1]]) == ["Dish", "O", "Dish"]


def test_a_sentence_is_a_list_of_words(model: TokenModel) -> None:
    with pytest.raises(DataError, match="sentence 2: 'john lives' is one string; give a list of words"):
        model.predict_proba([["john"], "john lives"])


def test_a_folder_that_lost_something_is_told_so(model: TokenModel, tmp_path: Path) -> None:
    model.save(tmp_path)
    about = json.loads((tmp_path / "drift.json").read_text())
    (tmp_path / "drift.json").write_text(json.dumps({**about, "format": "drift-tokens/9"}))
    with pytest.raises(FileError, match="'drift-tokens/9', not drift-tokens/1"):
        TokenModel.load(tmp_path)
    (tmp_path / "drift.json").write_text(json.dumps(about))
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(FileError, match=r"lacks tokenizer\.json; copy it again"):
        TokenModel.load(tmp_path)
    (tmp_path / "drift.json").write_text("{")
    with pytest.raises(FileError, match="cannot be opened as a trained model"):
        TokenModel.load(tmp_path)
