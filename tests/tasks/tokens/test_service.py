"""Taggers as ONNX: the code on the page and in the guide tags as the model does, without torch or this package."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from drift.models.encoders import load_tagger
from drift.tasks.tokens.model import TokenModel
from drift.tasks.tokens.record import TokenRecord
from drift.tasks.tokens.service import service_lines
from tests.runs.small_tokens import CLASSES, small_sentences, small_word_encoder

onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'drift-ssl[text]'")
pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'drift-ssl[text]'")
GUIDE = Path(__file__).parents[3] / "docs/tokens.md"
SENTENCES = [["john"], *small_sentences(20)["tokens"]]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[TokenModel, Path]:
    """A tagger that often prefers I- without a B-, or another B- right after an entity, and its folder."""
    module, tokenizer = load_tagger(small_word_encoder(tmp_path_factory.mktemp("encoder")), CLASSES, seed=1)
    with torch.no_grad():
        module.classifier.weight.mul_(0.1)
        module.classifier.bias[CLASSES.index("B-PER")] += 0.3
    model = TokenModel(module.eval(), tokenizer, CLASSES, "finetuned", entities=True, restart=-3.0).calibrated(1.7)
    folder = tmp_path_factory.mktemp("run") / "model"
    model.save(folder)
    model.export_onnx(folder / "model.onnx")
    return model, folder


def function_of(lines: str) -> Any:
    names: dict[str, Any] = {}
    exec(lines, names)
    return names["tag"]


def record(entities: bool) -> TokenRecord:
    return TokenRecord.model_construct(entities=entities)


def test_the_exported_tagger_has_the_same_probabilities(saved: tuple[TokenModel, Path]) -> None:
    model, folder = saved
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    batch = model.tokenizer([" ".join(words) for words in SENTENCES], padding=True, return_tensors="pt")
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    expected = model.module(**inputs).logits.softmax(-1).detach().numpy()
    (probabilities,) = session.run(None, {name: value.numpy() for name, value in inputs.items()})
    np.testing.assert_allclose(probabilities, expected, atol=1e-4)


def test_the_lines_on_the_page_tag_as_the_model_does(saved: tuple[TokenModel, Path]) -> None:
    model, folder = saved
    tag = function_of("\n".join(service_lines(record(True), {}, folder, folder / "model.onnx")))
    assert [tag(words) for words in SENTENCES] == model.predict(SENTENCES)
    probabilities = model.predict_proba(SENTENCES)
    most_likely = [[CLASSES[code] for code in each.argmax(-1)] for each in probabilities]
    assert most_likely != model.predict(SENTENCES)  # or nothing was decoded
    assert replace(model, restart=0.0).predict(SENTENCES) != model.predict(SENTENCES)


def test_slots_are_tagged_by_the_same_lines(saved: tuple[TokenModel, Path]) -> None:
    model, folder = saved
    slots = replace(model, entities=False)
    tag = function_of("\n".join(service_lines(record(False), {}, folder, folder / "model.onnx")))
    assert [tag(words) for words in SENTENCES] == slots.predict(SENTENCES)
    most_likely = [[CLASSES[code] for code in each.argmax(-1)] for each in slots.predict_proba(SENTENCES)]
    assert most_likely != slots.predict(SENTENCES)  # or nothing was decoded
    assert most_likely == replace(slots, restart=0.0).predict(SENTENCES)


def test_the_guide_has_the_same_lines() -> None:
    run, guide = Path("runs/names/model"), GUIDE.read_text().replace("\n\n\n", "\n\n")
    lines = service_lines(record(True), {}, run, run / "model.onnx")
    assert "\n".join(["```python", *lines, "", 'print(tag("Ann Smith lives in Bern .".split()))']) in guide
