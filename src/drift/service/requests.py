"""What a request asks for, checked; one line says what is wrong."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drift.errors import DataError
from drift.tasks.service import Service

OPTIONS = ("abstain_below", "probabilities")


@dataclass(frozen=True)
class Asked:
    """Rows to predict. name: of their input. probabilities: whether those of all classes are sent."""

    name: str
    rows: list[Any]
    abstain_below: float
    probabilities: bool


def asked(body: bytes, service: Service, most_rows: int) -> Asked:
    """Read a request; DataError says what is wrong with it."""
    try:
        sent = json.loads(body)
    except (ValueError, RecursionError):
        raise DataError("the request is not JSON") from None
    names = ", ".join(f'"{name}"' for name in service.inputs)
    if not isinstance(sent, Mapping):
        raise DataError(f"the request is not an object; send one with {names}")
    if unknown := [name for name in sent if name not in (*service.inputs, *OPTIONS)]:
        raise DataError(f"unknown field {unknown[0][:50]!r}; known are {names}, {', '.join(OPTIONS)}")
    given = [name for name in service.inputs if name in sent]
    if len(given) != 1:
        raise DataError(f"{len(given)} kinds of rows were sent; send one of {names}")
    name, values = given[0], sent[given[0]]
    if not isinstance(values, list):
        raise DataError(f"{name} is {type(values).__name__}; send a list")
    if len(values) > most_rows:
        raise DataError(f"{name} has {len(values):,} rows; send at most {most_rows:,} at once")
    read = service.inputs[name].read
    rows = [read(value, name, place) for place, value in enumerate(values)]
    return Asked(name, rows, _share(sent), _yes(sent))


def _share(sent: Mapping[str, Any]) -> float:
    value = sent.get("abstain_below", 0.0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise DataError("abstain_below is not a number from 0 to 1")
    return float(value)


def _yes(sent: Mapping[str, Any]) -> bool:
    value = sent.get("probabilities", True)
    if not isinstance(value, bool):
        raise DataError("probabilities is neither true nor false")
    return value
