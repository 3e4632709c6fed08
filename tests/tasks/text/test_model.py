"""A trained text classifier predicts the same after it was saved and loaded, here and in transformers."""

import json
from pathlib import Path

import numpy as np
import pyarrow
import pytest
import torch
from torch import Tensor, nn

from drift.data.word_tokens import WordTokenizer
from drift.errors import DataError, FileError
from drift.models.encoders import FrozenClassifier, load_classifier, load_encoder
from drift.models.textcnn import TextCNN
from drift.tasks.text.model import BATCH_TOKENS, TextModel
from tests.runs.small import WORDS, small_encoder, small_table

transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")

CLASSES = ["Économie", "sport", "world / other"]
KINDS = ("frozen", "finetuned", "textcnn")
TEXTS = ["", "team", *small_table(9)["body"], "quiet_optuna of words", "goal " * 100_000]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_encoder(tmp_path_factory.mktemp("encoder"))


def small_model(kind: str, encoder: str) -> TextModel:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        if kind == "frozen":
            body, tokenizer = load_encoder(encoder)
            head = nn.Sequential(nn.Linear(16, 3))
            module = FrozenClassifier(body, torch.randn(16), torch.rand(16) + 0.5, head, pool="cls")
        elif kind == "finetuned":
            module, tokenizer = load_classifier(encoder, CLASSES, seed=1)
        else:
            tokenizer = WordTokenizer([*WORDS["money"], *WORDS["sport"]])
            module = TextCNN(torch.randn(len(tokenizer), 5), 3, windows=(4, 2, 3), maps=6)
    return TextModel(module, tokenizer, CLASSES, kind, max_length=32, temperature=0.7)


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_opened_it_predicts_the_same(kind: str, encoder: str, tmp_path: Path) -> None:
    model = small_model(kind, encoder)
    model.save(tmp_path / "m")
    opened = TextModel.load(tmp_path / "m")
    assert (opened.classes, opened.kind, opened.max_length, opened.temperature) == (CLASSES, kind, 32, 0.7)
    np.testing.assert_array_equal(opened.predict_proba(TEXTS), model.predict_proba(TEXTS))
    modes = {oct(file.stat().st_mode) for file in (tmp_path / "m").rglob("*") if file.is_file()}
    assert len(modes) == 1  # whoever may read one file may read all


@pytest.mark.parametrize("kind", KINDS)
def test_a_prediction_depends_only_on_its_text(kind: str, encoder: str, capfd: pytest.CaptureFixture[str]) -> None:
    model = small_model(kind, encoder)
    together = model.predict_proba(TEXTS)
    np.testing.assert_allclose(together, np.concatenate([model.predict_proba([text]) for text in TEXTS]), atol=1e-6)
    np.testing.assert_allclose(together[::-1], model.predict_proba(TEXTS[::-1]), atol=1e-6)
    np.testing.assert_allclose(together.sum(1), 1, atol=1e-6)
    many = [*TEXTS, *["team goal win " * 10] * (BATCH_TOKENS // 16)]  # more than one batch
    np.testing.assert_allclose(model.predict_proba(many)[: len(TEXTS)], together, atol=1e-6)
    assert model.predict_proba([]).shape == (0, 3)
    assert capfd.readouterr() == ("", "")


def test_dropout_is_off_even_if_training_left_it_on(encoder: str) -> None:
    model = small_model("textcnn", encoder)
    model.module.train()
    np.testing.assert_array_equal(model.predict_proba(TEXTS), model.predict_proba(TEXTS))


def test_a_temperature_divides_the_logits(encoder: str) -> None:
    model = small_model("frozen", encoder)
    plain, hot = model.calibrated(1.0).predict_proba(TEXTS), model.calibrated(3.0).predict_proba(TEXTS)
    expected = plain ** (1 / 3)
    np.testing.assert_allclose(hot, expected / expected.sum(1, keepdims=True), atol=1e-6)
    assert model.temperature == 0.7


def test_transformers_opens_a_fine_tuned_model(encoder: str, tmp_path: Path) -> None:
    model = small_model("finetuned", encoder)
    model.save(tmp_path)
    pipeline = transformers.pipeline("text-classification", model=str(tmp_path), device="cpu")
    texts = TEXTS[1:-1]
    answers = pipeline(texts, top_k=None)
    scores = [[{answer["label"]: answer["score"] for answer in row}[name] for name in CLASSES] for row in answers]
    np.testing.assert_allclose(scores, model.calibrated(1.0).predict_proba(texts), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_folder_is_one_line(kind: str, encoder: str, tmp_path: Path) -> None:
    small_model(kind, encoder).save(tmp_path)
    for file in sorted(path for path in tmp_path.rglob("*") if path.is_file()):
        content = file.read_bytes()
        for damage in (content[: len(content) // 2], b"[1]", None):
            if damage is None:
                file.unlink()
            else:
                file.write_bytes(damage)
            if damage is not None and file.name == "tokenizer_config.json":
                continue  # transformers can do without most of it
            with pytest.raises(FileError) as error:
                TextModel.load(tmp_path)
            assert str(tmp_path) in str(error.value), file
            assert len(str(error.value).splitlines()) == 1, file
        file.write_bytes(content)
    TextModel.load(tmp_path)


@pytest.mark.parametrize("name", ["format", "kind", "classes", "max_length", "temperature", "files"])
def test_a_description_that_lacks_something_is_refused(name: str, encoder: str, tmp_path: Path) -> None:
    small_model("textcnn", encoder).save(tmp_path)
    description = json.loads((tmp_path / "drift.json").read_text(encoding="utf-8"))
    del description[name]
    (tmp_path / "drift.json").write_text(json.dumps(description))
    with pytest.raises(FileError, match=name):
        TextModel.load(tmp_path)


def test_another_version_is_refused(encoder: str, tmp_path: Path) -> None:
    small_model("textcnn", encoder).save(tmp_path)
    file = tmp_path / "drift.json"
    file.write_text(file.read_text(encoding="utf-8").replace("drift-text/1", "drift-text/9"), encoding="utf-8")
    with pytest.raises(FileError, match="'drift-text/9', not drift-text/1; it needs another version"):
        TextModel.load(tmp_path)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one text", "one string was given, .* give a list of texts"),
        (pyarrow.table({"body": ["a"]}), "a table was given; give a list of texts, or use drift.predict"),
        (["a", None], r"row 1 \(counted from 0\): None is not a text"),
        ([float("nan")], r"row 0 \(counted from 0\): nan is not a text"),
        ([b"a"], r"row 0 \(counted from 0\): b'a' is not a text"),
    ],
)
def test_anything_but_a_list_of_texts_is_refused_in_one_line(encoder: str, texts: object, message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        small_model("finetuned", encoder).predict_proba(texts)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


class Recorder(nn.Module):
    """A classifier that records the devices of its inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(1))
        self.seen: list[torch.device] = []

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        self.seen += [input_ids.device, attention_mask.device]
        return torch.zeros(len(input_ids), len(CLASSES))  # on the CPU: tensors on "meta" have no values


def test_inputs_are_moved_to_the_device_of_the_parameters() -> None:
    module = Recorder()
    model = TextModel(module, WordTokenizer(WORDS["money"]), CLASSES, "textcnn")
    module.to("meta")
    np.testing.assert_allclose(model.predict_proba(["bank", "stock market"]), 1 / 3, rtol=1e-6)
    assert module.seen
    assert {device.type for device in module.seen} == {"meta"}
