"""A text classifier as a service: texts, or vectors of its fixed encoder."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.text_tables import text_of
from drift.errors import DataError
from drift.models.devices import device_of
from drift.models.encoders import FrozenClassifier
from drift.models.onnx_module import OnnxModule
from drift.tasks.parts import Trained
from drift.tasks.service import CLASS_SCHEMA, Input, Service, class_answer, vector_input
from drift.tasks.text.model import TextModel

EXAMPLES = ["The first text.", "Another text."]


def text_service(run: Trained, onnx: Path | None) -> Service:
    """The service of a run on texts. onnx: a file to use instead of torch."""
    model: TextModel = run.model
    reader = with_onnx(model, onnx) if onnx is not None else model.without_cache()
    inputs = {"texts": Input(_text, {"type": "string"}, EXAMPLES)}
    if isinstance(model.module, FrozenClassifier):
        inputs["vectors"] = vector_input(len(model.module.mean))

    def probabilities(name: str, rows: Sequence[Any]) -> np.ndarray:
        return reader.predict_proba(rows) if name == "texts" else model.of_vectors(np.stack(rows))

    engine = f"onnxruntime ({onnx.name})" if onnx is not None else f"torch ({device_of(model.module)})"
    return Service(inputs, probabilities, class_answer(model.classes), CLASS_SCHEMA, engine)


def with_onnx(model: TextModel, file: Path) -> TextModel:
    """The same classifier, computed by onnxruntime. The file has the temperature in it."""
    return replace(model, module=OnnxModule(file, len(model.classes)), temperature=1.0, embedder=None, heads=None)


def _text(value: Any, field: str, place: int) -> str:
    if not isinstance(value, str):
        raise DataError(f"{field}[{place}] is {type(value).__name__}; send a string")
    return text_of(value, field, place)
