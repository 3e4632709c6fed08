"""Encoders are found by name and opened quietly, errors are one line; classifiers open without this package."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from drift.errors import FileError
from drift.models.encoders import FrozenClassifier, load_classifier, load_encoder
from drift.models.locating import encoder_path

transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
NAME = "paraphrase-MiniLM-L3-v2"
ENCODER = Path(os.environ.get("DRIFT_MODELS") or "nowhere") / NAME
pytestmark = pytest.mark.skipif(not ENCODER.is_dir(), reason=f"set DRIFT_MODELS to a folder with {NAME}")


@pytest.fixture
def model_copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ENCODER, tmp_path / "model", copy_function=shutil.copyfile))


def test_a_name_is_a_folder_or_one_on_the_shelf_or_the_hub_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert encoder_path(str(ENCODER)) == str(ENCODER)
    assert encoder_path(NAME) == str(ENCODER)
    assert encoder_path("somebody/some-model") == "somebody/some-model"
    monkeypatch.delenv("DRIFT_MODELS")
    assert encoder_path(NAME) == NAME
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert encoder_path(NAME) == NAME  # the folder in the working directory
    assert encoder_path(f"./{NAME}") == NAME


@pytest.mark.parametrize("name", ["", "sub", "missing"])
def test_a_folder_without_a_model_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "sub").mkdir()
    with pytest.raises(FileError, match="no config"):
        load_encoder(str(tmp_path / name))


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("content", [b"", b"{ not what it was", b"[1]"])
def test_a_damaged_file_is_one_line(model_copy: Path, file: str, content: bytes) -> None:
    (model_copy / file).write_bytes(content)
    with pytest.raises(FileError, match=str(model_copy)) as caught:
        load_encoder(str(model_copy))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("fault", ["lost", "of another shape"])
def test_weights_that_are_not_there_are_not_made_up(model_copy: Path, fault: str) -> None:
    weights = load_file(model_copy / "model.safetensors")
    name = next(name for name in weights if name.endswith("layer.1.output.dense.weight"))
    kept = weights.pop(name)
    if fault == "of another shape":
        weights[name] = kept[:, :10].contiguous()
    save_file(weights, model_copy / "model.safetensors", {"format": "pt"})
    with pytest.raises(FileError, match=r"lacks 1 .*layer\.1\.output\.dense\.weight"):
        load_encoder(str(model_copy))
    with pytest.raises(FileError, match=r"lacks 1 .*layer\.1\.output\.dense\.weight"):
        load_classifier(str(model_copy), ["a", "b"], seed=0)


def test_an_unknown_name_without_a_network_is_one_line() -> None:
    code = "import sys\nfrom drift.models.encoders import load_encoder\nfrom drift.errors import FileError\n" + (
        "try: load_encoder('nobody/no-such-model')\nexcept FileError as error: print(error)"
    )
    offline = {**os.environ, "HF_HUB_OFFLINE": "1"}  # read when the hub's library is imported, hence a new process
    done = subprocess.run([sys.executable, "-c", code], env=offline, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.startswith("nobody/no-such-model is not a local folder")
    assert done.stdout.count("\n") == 1


def test_opening_makes_no_noise_and_leaves_everything_as_it_was(capfd: pytest.CaptureFixture[str]) -> None:
    transformers.utils.logging.enable_progress_bar()
    before = torch.get_rng_state()
    encoder, _ = load_encoder(NAME)
    load_classifier(NAME, ["a", "b"], seed=3)
    assert capfd.readouterr() == ("", "")
    assert transformers.utils.logging.is_progress_bar_enabled()
    assert torch.equal(torch.get_rng_state(), before)
    assert not encoder.training
    assert {value.dtype for value in encoder.parameters()} == {torch.float32}


def test_a_saved_classifier_opens_in_a_plain_pipeline(tmp_path: Path) -> None:
    classes = ["Sci/Tech", "World", "Sport"]
    model, tokenizer = load_classifier(NAME, classes, seed=0)
    with torch.no_grad():
        model.classifier.weight.mul_(20)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    texts = ["The striker scored twice.", "A new telescope"]
    answers = transformers.pipeline("text-classification", model=str(tmp_path), top_k=None)(texts)
    with torch.no_grad():
        logits = model(**tokenizer(texts, padding=True, return_tensors="pt")).logits
    for answer, row in zip(answers, logits.softmax(1).tolist(), strict=True):
        assert {each["label"]: each["score"] for each in answer} == pytest.approx(
            dict(zip(classes, row, strict=True)), abs=1e-5
        )
    again, _ = load_classifier(str(tmp_path), classes, seed=9)
    assert torch.equal(again.classifier.weight, model.classifier.weight)
    more, _ = load_classifier(str(tmp_path), [*classes, "Business"], seed=9)
    assert more.classifier.weight.shape == (4, 384)
    assert json.loads((tmp_path / "config.json").read_text())["id2label"] == dict(zip("012", classes, strict=True))


def test_new_weights_follow_the_seed() -> None:
    first, second, other = (load_classifier(NAME, ["a", "b"], seed=seed)[0] for seed in (4, 4, 5))
    assert torch.equal(first.classifier.weight, second.classifier.weight)
    assert torch.equal(first.bert.pooler.dense.weight, second.bert.pooler.dense.weight)
    assert not torch.equal(first.classifier.weight, other.classifier.weight)


def test_dropout_is_everywhere_or_as_the_encoder_has_it() -> None:
    def rates(dropout: float | None) -> set[float]:
        model, _ = load_classifier(NAME, ["a", "b"], seed=0, dropout=dropout)
        assert model.config.attention_probs_dropout_prob == (0.1 if dropout is None else dropout)
        return {layer.p for layer in model.modules() if isinstance(layer, torch.nn.Dropout)}

    assert rates(None) == {0.1}
    assert rates(0.0) == {0.0}
    assert rates(0.3) == {0.3}


@pytest.mark.parametrize("pool", ["mean", "cls"])
def test_a_frozen_classifier_is_the_head_of_the_pooled_tokens(pool: str) -> None:
    encoder, tokenizer = load_encoder(NAME)
    generator = torch.Generator().manual_seed(0)
    mean, scale = torch.randn(384, generator=generator), torch.rand(384, generator=generator) + 0.5
    head = torch.nn.Linear(384, 3)
    classifier = FrozenClassifier(encoder, mean, scale, head, pool=pool)
    texts = ["short", "a text with some more words in it"]
    with torch.no_grad():
        alone = [encoder(**tokenizer(text, return_tensors="pt")).last_hidden_state[0] for text in texts]
        vectors = torch.stack([hidden[0] if pool == "cls" else hidden.mean(0) for hidden in alone])
        batch = tokenizer(texts, padding=True, return_tensors="pt")
        logits = classifier(batch["input_ids"], batch["attention_mask"])
        np.testing.assert_allclose(logits, head((vectors - mean) / scale), atol=1e-4)


HUB = """
import os, socket, threading
server = socket.create_server(("127.0.0.1", 0))
os.environ["HF_ENDPOINT"] = f"http://127.0.0.1:{server.getsockname()[1]}"
asked = []
def hang_up():
    while True:
        connection = server.accept()[0]
        asked.append(connection.recv(200).decode().splitlines()[0])
        connection.close()
threading.Thread(target=hang_up, daemon=True).start()
from drift.models.encoders import load_encoder
try:
    load_encoder("somebody/some-model")
except Exception as error:
    print(type(error).__name__, error)
print(sum(line.startswith("HEAD / ") for line in asked), sum("some-model" in line for line in asked))
"""


def test_a_hub_that_does_not_answer_is_asked_once_and_not_for_the_model(tmp_path: Path) -> None:
    environment = {**os.environ, "HF_HOME": str(tmp_path)}  # read when the hub's library is imported
    for name in ("HF_HUB_OFFLINE", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        environment.pop(name, None)
    done = subprocess.run([sys.executable, "-c", HUB], capture_output=True, text=True, env=environment, check=True)
    message, asked = done.stdout.splitlines()
    assert message.startswith(
        "FileError somebody/some-model is not a local folder and could not be loaded from the model hub"
    )
    assert asked == "1 0"
