"""Messages between a session and its training process: a line of JSON, and the bytes of the arrays that it names."""

import json
from collections.abc import Mapping
from typing import IO, Any

import numpy as np


def send(stream: IO[bytes], message: Mapping[str, Any], **arrays: np.ndarray) -> None:
    """Write a message."""
    parts = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    shapes = {name: [part.dtype.str, list(part.shape)] for name, part in parts.items()}
    stream.write(json.dumps({**message, "arrays": shapes}).encode() + b"\n")
    for part in parts.values():
        stream.write(part.tobytes())
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
    """Read a message; None at the end of the stream."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    message = json.loads(line)
    arrays = {}
    for name, (dtype, shape) in message.pop("arrays").items():
        size = int(np.dtype(dtype).itemsize * np.prod(shape, dtype=np.int64))
        content = stream.read(size)
        if len(content) < size:
            return None
        arrays[name] = np.frombuffer(content, dtype=dtype).reshape(shape).copy()
    return message, arrays
