"""The ONNX file equals torch, in both modes, for any number and length of texts."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from drift.errors import StateError
from drift.models.encoders import FrozenClassifier, load_classifier, load_encoder
from drift.models.onnx_export import export_classifier

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'drift-ssl[text]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'drift-ssl[text]'")
ENCODER = Path(os.environ.get("DRIFT_MODELS") or "nowhere") / "paraphrase-MiniLM-L3-v2"
pytestmark = pytest.mark.skipif(
    not ENCODER.is_dir(), reason="set DRIFT_MODELS to a folder with paraphrase-MiniLM-L3-v2"
)

BATCHES = (["Shares fell."], ["", "Shares fell on Monday.", "goal " * 150], ["one", "two", "three", "four", "five"])


def in_onnx(file: Path, inputs: dict[str, Tensor]) -> np.ndarray:
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    assert [each.name for each in session.get_inputs()] == ["input_ids", "attention_mask"]
    assert [each.name for each in session.get_outputs()] == ["probabilities"]
    return session.run(None, {name: value.numpy() for name, value in inputs.items()})[0]


@pytest.fixture(params=["frozen", "fine-tuned"])
def classifier(request: pytest.FixtureRequest) -> tuple[nn.Module, object]:
    if request.param == "fine-tuned":
        return load_classifier(str(ENCODER), ["a", "b", "c"], seed=1)
    encoder, tokenizer = load_encoder(str(ENCODER))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        head = nn.Sequential(nn.Dropout(0.5), nn.Linear(384, 3))
        return FrozenClassifier(encoder, torch.randn(384) / 10, torch.rand(384) / 5 + 0.1, head), tokenizer


def test_probabilities_are_those_of_torch_at_the_temperature(
    classifier: tuple[nn.Module, object], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    module, tokenizer = classifier
    module.eval()
    module.get_submodule("head" if hasattr(module, "head") else "dropout").train()
    modes = [each.training for each in module.modules()]
    export_classifier(module, tokenizer, tmp_path / "model.onnx", temperature=0.25)
    assert [each.training for each in module.modules()] == modes
    assert capfd.readouterr() == ("", "")
    assert os.listdir(tmp_path) == ["model.onnx"]
    module.eval()
    for texts in BATCHES:
        inputs = tokenizer(texts, padding=True, return_tensors="pt")
        inputs = {name: inputs[name] for name in ("input_ids", "attention_mask")}
        with torch.no_grad():
            output = module(**inputs)
        expected = torch.softmax(4 * getattr(output, "logits", output), dim=1).numpy()
        assert expected.std() > 0.01
        np.testing.assert_allclose(in_onnx(tmp_path / "model.onnx", inputs), expected, atol=1e-5)


class OtherWhenExported(nn.Module):
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return input_ids[:, :2] * 0.0 + torch.tensor([0.0, 1.0 if torch.compiler.is_exporting() else 1.01])


def test_a_graph_that_computes_something_else_is_not_written(tmp_path: Path) -> None:
    _, tokenizer = load_encoder(str(ENCODER))
    (tmp_path / "model.onnx").write_text("the old one")
    with pytest.raises(StateError, match="differs from torch by"):
        export_classifier(OtherWhenExported(), tokenizer, tmp_path / "model.onnx")
    assert os.listdir(tmp_path) == ["model.onnx"]
    assert (tmp_path / "model.onnx").read_text() == "the old one"
