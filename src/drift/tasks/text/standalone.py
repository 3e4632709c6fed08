"""`use.py` of a text classifier: by onnxruntime if there is a file, otherwise by transformers."""

from typing import Any

from drift.models.catalogue import known_encoder
from drift.models.encoders import FrozenClassifier
from drift.tasks.standalone import FOLDER, script
from drift.tasks.text.model import ENCODER, TextModel
from drift.tasks.text.report import service_lines

ONNX_NEEDS, TORCH_NEEDS = "onnxruntime, transformers and numpy", "torch, transformers and safetensors"
POOLED = {
    "cls": "output.last_hidden_state[:, 0]",
    "mean": "mean(output.last_hidden_state)",
    "layers": "torch.cat([mean(output.last_hidden_state), mean(states[-min(3, len(states))])], 1)",
}
TOKENS = (
    '    tokens = tokenizer(texts, truncation=True, max_length=about["max_length"], padding=True, return_tensors="pt")'
)
INPUTS = 'input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"]'
ANSWER = [
    '    probabilities = (logits / about["temperature"]).softmax(-1)',
    '    return [dict(zip(about["classes"], row.tolist())) for row in probabilities]',
]


def text_script(model: TextModel, record: Any, onnx: str | None) -> str | None:
    """The file; None for models that only this package can open. onnx: the name of an ONNX file of the folder."""
    if onnx is not None:
        lines = service_lines(record, {"model": {"max_length": model.max_length}}, FOLDER, FOLDER / onnx)
        return script(lines, "classify([text])[0]", ONNX_NEEDS)
    if isinstance(model.module, FrozenClassifier):
        return script(_frozen_lines(model, model.module), "classify([text])[0]", TORCH_NEEDS)
    if hasattr(model.module, "base_model"):
        return script(_finetuned_lines(), "classify([text])[0]", TORCH_NEEDS)
    return None


def _opening(auto: str) -> list[str]:
    return [
        "import json",
        "",
        "import torch",
        *(["from safetensors.torch import load_file"] if auto == "AutoModel" else []),
        f"from transformers import {auto}, AutoTokenizer",
        "",
        'about = json.load(open("@/drift.json", encoding="utf-8"))',
    ]


def _frozen_lines(model: TextModel, module: FrozenClassifier) -> list[str]:
    """A fixed encoder and a head."""
    encoder = f'"@/{ENCODER}"'
    revision = ""
    if model.by_reference and model.encoder is not None:
        known = known_encoder(model.encoder.name)
        name = model.encoder.name if known is None else known.hub
        encoder = f'os.environ.get("ENCODER", {name!r})  # a name on the model hub, or a folder'
        revision = "" if known is None else f", revision={known.revision!r}"
    return [
        *_opening("AutoModel"),
        'head = load_file("@/head.safetensors")',
        f"ENCODER = {encoder}",
        f'tokenizer = AutoTokenizer.from_pretrained("@/{ENCODER}")',
        f"encoder = AutoModel.from_pretrained(ENCODER{revision}).eval()",
        "",
        "",
        "@torch.inference_mode()",
        "def classify(texts):",
        TOKENS,
        '    mask = tokens["attention_mask"].unsqueeze(2)',
        "    mean = lambda layer: (layer * mask).sum(1) / mask.sum(1)",
        f"    output = encoder({INPUTS}, output_hidden_states=True)",
        "    states = output.hidden_states",
        f"    vectors = {POOLED[module.pool]}",
        '    logits = (vectors - head["mean"]) / head["scale"] @ head["head.0.weight"].T + head["head.0.bias"]',
        *ANSWER,
    ]


def _finetuned_lines() -> list[str]:
    return [
        *_opening("AutoModelForSequenceClassification"),
        'tokenizer = AutoTokenizer.from_pretrained("@")',
        'model = AutoModelForSequenceClassification.from_pretrained("@").eval()',
        "",
        "",
        "@torch.inference_mode()",
        "def classify(texts):",
        TOKENS,
        f"    logits = model({INPUTS}).logits",
        *ANSWER,
    ]
