"""Export of a classifier of texts or words to one ONNX file, from token ids to probabilities, for use without torch."""

import copy
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from drift.data.files import atomic_file
from drift.errors import StateError, needed_for
from drift.models.encoders import quietly
from drift.models.late_encoder import read_encoder

INPUTS = ("input_ids", "attention_mask")
TOLERANCE = 1e-4
SAMPLES = (  # of different sizes, to detect a size that was fixed in the graph
    ["", "One short text.", "A text that is somewhat longer than the other two, as real ones often are."],
    ["word " * 60],
)


class _Probabilities(nn.Module):
    """softmax(logits / temperature) of a module that returns logits, or an object with `.logits`."""

    def __init__(self, module: nn.Module, temperature: float) -> None:
        super().__init__()
        for name, part in list(module.named_children()):
            setattr(module, name, read_encoder(part))  # a tracer would record that it is read
        self.module, self.temperature = module, temperature

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        output = self.module(input_ids=input_ids, attention_mask=attention_mask)
        logits: Tensor = getattr(output, "logits", output)
        return (logits / self.temperature).softmax(-1)


def export_classifier(
    module: nn.Module, tokenizer: Any, path: str | os.PathLike[str], *, temperature: float = 1.0
) -> None:
    """Write a fine-tuned classifier, a `FrozenClassifier` or a tagger as an ONNX file.

    The graph takes `input_ids` and `attention_mask`, int64 of any shape `(N, T)`, and returns `probabilities`,
    `(N, C)`, or of a tagger `(N, T, C)`: the softmax of logits / temperature. Its results are compared with torch's
    before the file is created; StateError if they differ.

    module: the classifier.
    tokenizer: its tokenizer, for the inputs of the comparison.
    path: the file to write.
    temperature: divides the logits.
    """
    model = _Probabilities(copy.deepcopy(module).cpu(), temperature).eval()
    batches = [tokenizer(texts, padding=True, return_tensors="pt") for texts in SAMPLES]
    with atomic_file(path) as aside:
        _write(model, tuple(batches[0][name] for name in INPUTS), aside)
        _compare(model, batches, aside)


def _write(model: nn.Module, example: tuple[Tensor, ...], file: Path) -> None:
    with needed_for("ONNX export"), quietly():
        torch.onnx.export(
            model,
            example,
            file,
            input_names=INPUTS,
            output_names=["probabilities"],
            dynamic_shapes={name: {0: "texts", 1: "tokens"} for name in INPUTS},
            dynamo=True,
            external_data=False,
            verbose=False,
        )


def _compare(model: nn.Module, batches: list[Any], file: Path) -> None:
    with needed_for("checking an ONNX file"):
        import onnxruntime
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    for batch in batches:
        with torch.inference_mode():
            expected = model(*(batch[name] for name in INPUTS)).numpy()
        (exported,) = session.run(None, {name: batch[name].numpy() for name in INPUTS})
        gap = float(np.abs(exported - expected).max())
        if not gap <= TOLERANCE:  # NaN is a difference too
            raise StateError(
                f"the ONNX graph differs from torch by {gap:.2g}, more than {TOLERANCE}; the file was not written:"
                " use the model through torch, or another encoder"
            )
