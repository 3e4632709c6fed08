"""A tagger as a service: sentences in, tags and entities out."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.sentence_formats import SentenceRow, sentence_of
from drift.data.texts import checked
from drift.errors import DataError
from drift.models.devices import device_of
from drift.models.onnx_module import OnnxModule
from drift.tasks.parts import Trained
from drift.tasks.service import Input, Service
from drift.tasks.tokens.model import TokenModel
from drift.tasks.tokens.predict import entities_of

ENTITY = {
    "type": "object",
    "properties": {
        "start": {"type": "integer", "description": "First character, in the text or in the words joined by spaces."},
        "end": {"type": "integer"},
        "label": {"type": "string"},
        "text": {"type": "string"},
        "confidence": {"type": "number"},
    },
}
SCHEMA = {
    "type": "object",
    "properties": {
        "tokens": {"type": "array", "items": {"type": "string"}},
        "tags": {"type": "array", "items": {"type": "string"}, "description": "One per token."},
        "entities": {"type": "array", "items": ENTITY},
    },
}
SENTENCE = {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}


def token_service(run: Trained, onnx: Path | None) -> Service:
    """The service of a tagger. onnx: a file to use instead of torch."""
    model: TokenModel = run.model
    reader = model if onnx is None else replace(model, module=OnnxModule(onnx, len(model.classes)))

    def probabilities(name: str, rows: Sequence[SentenceRow]) -> list[np.ndarray]:
        return reader.predict_proba([row.tokens for row in rows])

    def answer(row: SentenceRow, probabilities: np.ndarray, abstain_below: float) -> dict[str, Any]:
        tags, entities = entities_of(model, row, probabilities, abstain_below)
        return {"tokens": row.tokens, "tags": tags, "entities": entities}

    examples = ["Ann Smith lives in Bern.", "A sentence without names."]
    engine = f"onnxruntime ({onnx.name})" if onnx is not None else f"torch ({device_of(model.module)})"
    return Service({"sentences": Input(_sentence, SENTENCE, examples)}, probabilities, answer, SCHEMA, engine)


def _sentence(value: Any, field: str, place: int) -> SentenceRow:
    if not isinstance(value, (str, list)):
        raise DataError(f"{field}[{place}] is {type(value).__name__}; send a string or a list of words")
    row = sentence_of(value, field, place)
    for _ in checked(row.tokens):  # half a character would fail in the tokenizer
        pass
    return row
