"""An ONNX file in the place of a module of torch: the same call, computed by onnxruntime."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from drift.errors import FileError, needed_for

SMALLEST = float(np.finfo(np.float32).tiny)


class OnnxModule(nn.Module):
    """Logits from an ONNX file that `export_classifier` or `quantise` wrote: logarithms of its probabilities."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        with needed_for("running an ONNX file"):
            import onnxruntime
        try:
            self.session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has a class per cause, and no base class of its own
            reason = " ".join(str(error).split())
            raise FileError(f"{file} cannot be opened as ONNX ({reason}); copy it again") from error

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **_: Any) -> Any:
        inputs = {"input_ids": input_ids.numpy(), "attention_mask": attention_mask.numpy()}
        (probabilities,) = self.session.run(None, inputs)
        return SimpleNamespace(logits=torch.from_numpy(probabilities).clamp_min(SMALLEST).log())
