"""What a trained model offers to a service: which rows it takes, and what it answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drift.errors import DataError

Json = Mapping[str, Any]
Rows = Sequence[np.ndarray] | np.ndarray  # one array per row


@dataclass(frozen=True)
class Input:
    """A kind of row that a service takes.

    read: makes what the model takes from one value of the request; DataError says what is wrong. Its other arguments
    are the name of the field and the value's place in it, for messages.
    schema: of one value, as JSON schema.
    example: rows to show to a reader.
    """

    read: Callable[[Any, str, int], Any]
    schema: Json
    example: Sequence[Any]


@dataclass(frozen=True)
class Service:
    """Predictions for single requests.

    inputs: by the name of their field in a request; the first is shown to readers.
    probabilities: of rows of the input with that name, one array per row. Called by one thread at a time.
    answer: what is sent about a row; its last argument is the lowest confidence that gets a label.
    schema: of what `answer` makes, as JSON schema.
    engine: what computes, for a reader.
    """

    inputs: Mapping[str, Input]
    probabilities: Callable[[str, Sequence[Any]], Rows]
    answer: Callable[[Any, np.ndarray, float], dict[str, Any]]
    schema: Json
    engine: str


CLASS_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "label": {"type": ["string", "null"], "description": "The most likely class; null below abstain_below."},
        "confidence": {"type": "number", "description": "Its probability."},
        "probabilities": {
            "type": "object",
            "additionalProperties": {"type": "number"},
            "description": "Of every class.",
        },
    },
}


def class_answer(classes: Sequence[Any]) -> Callable[[Any, np.ndarray, float], dict[str, Any]]:
    """Answers with one class per row."""

    def answer(row: Any, probabilities: np.ndarray, abstain_below: float) -> dict[str, Any]:
        best = int(probabilities.argmax())
        confidence = round(float(probabilities[best]), 6)
        return {
            "label": classes[best] if confidence >= abstain_below else None,
            "confidence": confidence,
            "probabilities": {str(name): round(float(p), 6) for name, p in zip(classes, probabilities, strict=True)},
        }

    return answer


def vector_input(width: int) -> Input:
    """Rows of numbers, such as vectors of an encoder that the sender applied."""

    def read(value: Any, field: str, place: int) -> np.ndarray:
        name = f"{field}[{place}]"
        numbers = isinstance(value, list) and all(isinstance(x, (int, float)) and x is not True for x in value)
        if not numbers or len(value) != width:
            seen = f"{len(value)} values" if isinstance(value, list) else type(value).__name__
            raise DataError(f"{name} is {seen}; send {width} numbers")
        try:
            vector = np.array(value, dtype=np.float32)
        except OverflowError:
            vector = np.array([np.inf])
        if not np.isfinite(vector).all():
            raise DataError(f"{name} has a number that is not finite; send {width} finite numbers")
        return vector

    schema = {"type": "array", "items": {"type": "number"}, "minItems": width, "maxItems": width}
    return Input(read, schema, [[0.0] * width])
