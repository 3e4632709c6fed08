"""A trained text classifier as one ONNX file: token ids to probabilities, for programs without torch."""

import copy
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from drift.data.files import atomic_file
from drift.data.packages import needed_for
from drift.errors import StateError
from drift.models.encoders import quietly

INPUTS = ("input_ids", "attention_mask")
TOLERANCE = 1e-4
SAMPLES = (  # of other numbers and lengths, so that one written into the graph shows
    ["", "One short text.", "A text that is somewhat longer than the other two, as real ones often are."],
    ["word " * 60],
)


class _Probabilities(nn.Module):
    """softmax(logits / temperature) of a module that returns logits, or an object with `.logits`."""

    def __init__(self, module: nn.Module, temperature: float) -> None:
        super().__init__()
        self.module, self.temperature = module, temperature

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        output = self.module(input_ids=input_ids, attention_mask=attention_mask)
        logits: Tensor = getattr(output, "logits", output)
        return (logits / self.temperature).softmax(-1)


def export_classifier(
    module: nn.Module, tokenizer: Any, path: str | os.PathLike[str], *, temperature: float = 1.0
) -> None:
    """Write a fine-tuned classifier or a `FrozenClassifier` as an ONNX file that computes what torch does.

    The graph takes `input_ids` and `attention_mask`, int64 of any shape `(N, T)`, and gives `probabilities`, `(N, C)`:
    the softmax of logits / temperature. It is compared with torch before the file appears; StateError if they differ.
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
        (found,) = session.run(None, {name: batch[name].numpy() for name in INPUTS})
        gap = float(np.abs(found - expected).max())
        if not gap <= TOLERANCE:  # NaN is a difference too
            raise StateError(
                f"the ONNX graph is {gap:.2g} away from torch, more than {TOLERANCE}; the file was not written:"
                " use the model through torch, or another encoder"
            )
