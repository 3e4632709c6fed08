"""An ONNX file in the place of a module of torch: the same call, computed by onnxruntime."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from drift.errors import FileError, needed_for

INPUTS = {"input_ids", "attention_mask"}
LONGEST = 300  # characters of a reason
SMALLEST = float(np.finfo(np.float32).tiny)


class OnnxModule(nn.Module):
    """Logits from an ONNX file that `export_classifier` or `quantise` wrote: logarithms of its probabilities.

    classes: number of classes; a file with other inputs or outputs is refused.
    """

    def __init__(self, file: Path, classes: int) -> None:
        super().__init__()
        self.file, self.classes = file, classes
        with needed_for("running an ONNX file"):
            import onnxruntime
        try:
            self.session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has a class per cause, and no base class of its own
            reason = " ".join(str(error).split())
            raise FileError(f"{file} cannot be opened as ONNX ({reason[:LONGEST]}); copy it again") from error
        outputs = self.session.get_outputs()
        if {each.name for each in self.session.get_inputs()} != INPUTS or len(outputs) != 1:
            raise self._foreign()

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **_: Any) -> Any:
        inputs = {"input_ids": input_ids.numpy(), "attention_mask": attention_mask.numpy()}
        try:
            (probabilities,) = self.session.run(None, inputs)
        except Exception as error:
            raise self._foreign() from error
        expected = ((len(input_ids), self.classes), (*input_ids.shape, self.classes))  # of texts, of words
        if not isinstance(probabilities, np.ndarray) or probabilities.shape not in expected:
            raise self._foreign()
        return SimpleNamespace(logits=torch.from_numpy(probabilities).float().clamp_min(SMALLEST).log())

    def _foreign(self) -> FileError:
        return FileError(f"{self.file} is not the ONNX file of this model; copy it again, or delete it to use torch")
