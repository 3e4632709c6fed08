"""An ONNX file of a text classifier with products in int8: smaller, and faster on processors with int8 products."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.batches import batches_by_length, pad_rows
from drift.data.files import atomic_file
from drift.errors import needed_for
from drift.models.encoders import quietly

PRODUCTS = ["MatMul", "Gemm"]  # what is quantised; sums and normalisations stay float32
BATCH_TOKENS = 1024


def quantise(file: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Write an ONNX file whose weights are int8, one scale per column; inputs of products are quantised as they come.

    file: as `export_classifier` writes it. target: the file to write.
    """
    with needed_for("quantising an ONNX file"):
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic
    model = onnx.load(file)
    del model.graph.value_info[:]  # shapes noted by torch's exporter, with which the quantiser's own ones disagree
    with tempfile.TemporaryDirectory() as folder, atomic_file(target) as aside, quietly():
        plain = Path(folder, "model.onnx")
        onnx.save(model, plain)
        quantize_dynamic(plain, aside, weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=PRODUCTS)


def probabilities(file: str | os.PathLike[str], tokenizer: Any, texts: Sequence[str], *, max_length: int) -> np.ndarray:
    """Probabilities of texts by an ONNX file that `export_classifier` or `quantise` wrote, `(n, C)`."""
    with needed_for("checking an ONNX file"):
        import onnxruntime
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    encoded = tokenizer(list(texts), truncation=True, max_length=max_length)["input_ids"]
    tokens = [row or [tokenizer.pad_token_id] for row in encoded]
    found: dict[int, np.ndarray] = {}
    for rows in batches_by_length([len(row) for row in tokens], BATCH_TOKENS):
        ids, mask = (part.numpy() for part in pad_rows([tokens[row] for row in rows], int(tokenizer.pad_token_id)))
        found |= zip(rows, session.run(None, {"input_ids": ids, "attention_mask": mask})[0], strict=True)
    return np.stack([found[row] for row in range(len(tokens))])
